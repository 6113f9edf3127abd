"""The moments at which jobs began, for a service whose list does not say them."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable

from dispatcher.errors import BackendError
from dispatcher.platforms.allocations.allocation import AllocationState
from dispatcher.platforms.http_jobs.jobs import ServiceJob, States


class Beginnings:
    """Notes when jobs were last seen to wait: not later than that, they began. Of those that a head
    before has ordered it asks, about one at each look. Threads: one.

    Args:
        states: what the words of the service stand for.
        now: the time as the service has it (seconds since the epoch).
        ask: returns when the job of that name began; None: nobody knows. May raise
            ``BackendError``: it is asked again at the next look.
    """

    def __init__(
        self,
        states: States,
        now: Callable[[], float],
        ask: Callable[[str], float | None],
    ) -> None:
        self._states, self._now, self._ask = states, now, ask
        self._began: dict[str, float] = {}

    def ordered(self, name: str) -> None:
        """Note that a job has been asked for just now."""
        self._began[name] = self._now()

    def of(self, jobs: Iterable[ServiceJob], *, asks: bool = True) -> list[ServiceJob]:
        """Return jobs with the moments at which they began, as far as these are known.

        Args:
            jobs: as listed.
            asks: whether anybody needs to know.
        """
        made: list[ServiceJob] = []
        for job in jobs:
            meaning = self._states.get(job.word)
            if meaning in (AllocationState.WAITING, AllocationState.STARTING):
                self._began[job.name] = self._now()
            elif meaning is AllocationState.RUNNING and asks and job.name not in self._began:
                asks = False
                with contextlib.suppress(BackendError):
                    moment = self._ask(job.name)
                    self._began |= {} if moment is None else {job.name: moment}
            made.append(job._replace(started_at=self._began.get(job.name)))
        return made
