"""Numbers for Prometheus: of the server, and of the experiments that run."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from starlette.requests import Request
from starlette.responses import Response

from dispatcher.errors import DispatcherError
from dispatcher.experiments.find import running_folders
from dispatcher.experiments.standing import Standing
from dispatcher.operations.operation import Scope
from dispatcher.web.audit import AuditLog
from dispatcher.web.live import Hub
from dispatcher.web.route import demand_scope
from dispatcher.web.work import Pools

#: Running experiments that are described.
_MOST: Final = 20

_MEDIA: Final = "text/plain; version=0.0.4; charset=utf-8"


class Gauges:
    """Answers `/metrics`."""

    def __init__(self, base: Path | None, pools: Pools, hub: Hub, audit: AuditLog) -> None:
        self._base = base
        self._pools = pools
        self._hub = hub
        self._audit = audit
        self._began = time.time()

    async def metrics(self, request: Request) -> Response:
        """Answer with all numbers as text."""
        demand_scope(request, Scope.READ)
        lines = [*_described("bequeath_web_start_time_seconds", "gauge", [("", self._began)])]
        counts = self._hub.described()
        lines += _described("bequeath_web_streams", "gauge", [("", counts["streams"])])
        lines += _described("bequeath_web_experiments", "gauge", [("", counts["experiments"])])
        answered = [(f'{{code="{code}"}}', n) for code, n in sorted(self._audit.statuses.items())]
        lines += _described("bequeath_web_responses_total", "counter", answered)
        folders = await self._pools.stores.run(running_folders, self._base)
        found = []
        for folder in folders[:_MOST]:
            try:
                found.append((folder.name, await (await self._hub.watch(folder)).standing()))
            except DispatcherError:
                continue  # it has just ended, or cannot be read
        lines += _of_experiments(found)
        return Response("\n".join(lines) + "\n", media_type=_MEDIA)


def _of_experiments(standings: list[tuple[str, Standing]]) -> list[str]:
    trials, ended, slots, busy, best, rate = [], [], [], [], [], []
    for name, one in standings:
        label = f'{{experiment="{name}"}}'
        for state, count in one.experiment.states.items():
            trials.append((f'{{experiment="{name}",state="{state}"}}', count))
        ended.append((label, one.experiment.ended))
        if one.head is not None:
            slots.append((label, one.head.slots))
            busy.append((label, one.head.counts.running))
        if one.experiment.best is not None and one.experiment.best.value is not None:
            best.append((label, one.experiment.best.value))
        if one.experiment.rate is not None:
            rate.append((label, one.experiment.rate))
    return [
        *_described("bequeath_trials", "gauge", trials),
        *_described("bequeath_trials_ended", "gauge", ended),
        *_described("bequeath_slots", "gauge", slots),
        *_described("bequeath_slots_busy", "gauge", busy),
        *_described("bequeath_best_value", "gauge", best),
        *_described("bequeath_trials_per_second", "gauge", rate),
    ]


def _described(name: str, kind: str, samples: Iterable[tuple[str, float]]) -> Iterable[str]:
    """Return the lines of one metric; names of experiments have no letter that would need care."""
    lines = [f"{name}{label} {value}" for label, value in samples]
    return [f"# TYPE {name} {kind}", *lines] if lines else []
