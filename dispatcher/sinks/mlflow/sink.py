"""Runs of MLflow: one of the experiment, and one below it for each trial.

What is sent twice is taken once: a run is found by a tag of ours, a point is known by its key, step
and time, and a parameter that is sent again has the same value. A run of an attempt that counts no
more is deleted, and another one is made.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeVar
from urllib.parse import quote

from dispatcher.errors import PermanentBackendError
from dispatcher.sinks.mlflow.answers import PAGE, RunTag
from dispatcher.sinks.mlflow.client import MlflowClient, TrackerRefused
from dispatcher.sinks.naming import flat_numbers, flat_parameters, shown_text
from dispatcher.sinks.protocol import (
    ExperimentRun,
    Flushed,
    Json,
    Point,
    Surroundings,
    TrialEnd,
    TrialRun,
)

T = TypeVar("T")

#: Metrics and parameters of one request, as MLflow takes them.
_MOST_METRICS: Final = 1000
_MOST_PARAMETERS: Final = 100
_MOST_TAG: Final = 4000

#: Answers of one search.
MOST_PAGES: Final = 4_000

#: Numbers of trials and attempts, as texts.
_A_NUMBER: Final = re.compile(r"-1|[0-9]{1,15}")

_NOT_TAKEN: Final = re.compile(r"[^\w\-./ ]")
_NO_PATH: Final = re.compile(r"(^|/)\.*(?=/|$)")

_STATUS: Final = {"completed": "FINISHED", "stopped": "KILLED", "failed": "FAILED"}
_KILLED: Final = frozenset({"killed", "stopped", "stopped early", "cancelled"})


def taken_name(name: str) -> str:
    """Return a name as MLflow takes it: letters, digits, ``_-./`` and blanks, and no path that
    leads elsewhere.

    >>> taken_name("blocks[0].op")
    'blocks.0.op'
    >>> taken_name("../../x")
    '_/_/x'
    """
    plain = re.sub(r"\.{2,}", ".", _NOT_TAKEN.sub(".", name.replace("]", "")))
    if plain.startswith(".") and not name.startswith("../"):
        plain = plain.lstrip(".") or "_"
    return _NO_PATH.sub(r"\1_", plain)[:250]


def _named(values: Iterable[tuple[str, Any]]) -> Iterator[tuple[str, Any]]:
    """The same under names that MLflow takes; of two that become one the second has a number."""
    seen: set[str] = set()
    for name, value in values:
        taken = taken_name(name)
        number = 1
        while taken in seen:
            number += 1
            taken = f"{taken_name(name)[:240]}-{number}"
        seen.add(taken)
        yield taken, value


def _number(value: float) -> float | str:
    """A number as JSON of protobuf has it."""
    if value != value:
        return "NaN"
    if value in (float("inf"), float("-inf")):
        return "Infinity" if value > 0 else "-Infinity"
    return value


def _there(value: T | None, name: str) -> T:
    """Return a part of an answer. Raises ``PermanentBackendError`` if it is missing or empty."""
    if not value:
        raise PermanentBackendError(f"an answer without {name!r} is none of an MLflow server")
    return value


def _numbers_of(tags: Iterable[RunTag]) -> tuple[int, int] | None:
    """Return trial and attempt of a run by its tags, trial -1 for the experiment's own run; None
    for one whose tags somebody has changed, which is ours no more."""
    named = {tag.key: tag.value for tag in tags}
    texts = named.get("bequeath.trial", "-1"), named.get("bequeath.attempt", "0")
    if not all(_A_NUMBER.fullmatch(text) for text in texts):
        return None
    return int(texts[0]), int(texts[1])


@dataclass(slots=True)
class _Run:
    """A run at the server, and what waits to be sent to it."""

    run_id: str
    attempt: int
    params: list[dict[str, str]] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)


class MlflowSink:
    """Sends to one experiment of one server.

    Args:
        client: of the server.
        experiment: the name there.
        surroundings: the experiment here.
    """

    def __init__(self, client: MlflowClient, experiment: str, surroundings: Surroundings) -> None:
        self._client = client
        self._name = experiment
        self._experiment = surroundings.experiment
        self._ident = re.sub(r"[^\w-]", "-", surroundings.experiment.id)
        self._there = ""  # the experiment's id at the server
        self._parent = ""
        self._known: dict[int, tuple[str, int]] = {}  # trial → run, attempt
        self._runs: dict[int, _Run] = {}

    def _reach(self) -> None:
        """Find, or make, what all runs lie below. Once."""
        if self._parent:
            return
        self._there = self._experiment_there()
        found = dict(self._earlier_runs())
        self._known = {trial: each for trial, each in found.items() if trial >= 0}
        self._parent = found[-1][0] if -1 in found else self._made_parent(self._experiment)

    def _experiment_there(self) -> str:
        try:
            path = f"experiments/get-by-name?experiment_name={quote(self._name, safe='')}"
            found = _there(self._client.get(path).experiment, "experiment")
        except TrackerRefused as error:
            if error.code != "RESOURCE_DOES_NOT_EXIST":
                raise
            made = self._client.post("experiments/create", {"name": self._name})
            return _there(made.experiment_id, "experiment_id")
        if found.lifecycle_stage == "deleted":
            raise PermanentBackendError(
                f"the experiment {self._name!r} was deleted at the MLflow server",
                hint="restore it there, or give the sink another 'experiment'",
            )
        return _there(found.experiment_id, "experiment_id")

    def _earlier_runs(self) -> Iterator[tuple[int, tuple[str, int]]]:
        """Yield the runs that sinks before have made; that of the experiment as trial -1."""
        token = ""
        for _ in range(MOST_PAGES):
            answer = self._client.post(
                "runs/search",
                {
                    "experiment_ids": [self._there],
                    "filter": f"tags.`bequeath.experiment` = '{self._ident}'",
                    "max_results": PAGE,
                    **({"page_token": token} if token else {}),
                },
            )
            for run in answer.runs or ():
                numbers = _numbers_of(() if run.data is None else run.data.tags)
                if numbers is not None:
                    yield numbers[0], (_there(run.info.run_id, "run_id"), numbers[1])
            token = answer.next_page_token or ""
            if not token:
                return
        raise PermanentBackendError("the MLflow server's list of runs has no end")

    def _made_parent(self, experiment: ExperimentRun) -> str:
        tags = {
            "bequeath.experiment": self._ident,
            "bequeath.maximize": str(experiment.maximize).lower(),
            "mlflow.source.name": "bequeath",
        }
        return self._created(f"{experiment.name} ({self._ident})", experiment.created_at, tags)

    def _created(self, name: str, at: float, tags: dict[str, str]) -> str:
        body = {
            "experiment_id": self._there,
            "run_name": shown_text(name, 250),
            "start_time": int(at * 1000),
            "tags": [{"key": key, "value": value[:_MOST_TAG]} for key, value in tags.items()],
        }
        made = _there(self._client.post("runs/create", body).run, "run")
        return _there(made.info.run_id, "run_id")

    def begin(self, run: TrialRun, place: Json) -> bool:
        """Find the run of this attempt, or make it."""
        self._reach()
        known = self._known.get(run.trial)
        if known is not None and known[1] != run.attempt:
            self._delete(known[0])
            known = None
        run_id = known[0] if known is not None else self._made(run)
        self._known[run.trial] = (run_id, run.attempt)
        flat = _named(flat_parameters(run.parameters, _MOST_PARAMETERS).items())
        params = [{"key": key, "value": str(value)} for key, value in flat]
        self._runs[run.trial] = _Run(run_id, run.attempt, params)
        return True

    def _made(self, run: TrialRun) -> str:
        tags = {
            "bequeath.experiment": self._ident,
            "bequeath.run": f"{self._ident}/{run.trial}",
            "bequeath.trial": str(run.trial),
            "bequeath.attempt": str(run.attempt),
            "bequeath.generation": str(run.generation),
            "bequeath.worker": run.worker,
            "mlflow.parentRunId": self._parent,
            "mlflow.source.name": "bequeath",
        }
        if run.parent is not None:
            tags["bequeath.parent"] = str(run.parent)
            if run.parent in self._known:
                tags["bequeath.parentRunId"] = self._known[run.parent][0]
        return self._created(f"trial-{run.trial:05d}", run.started_at, tags)

    def _delete(self, run_id: str) -> None:
        self._client.post("runs/delete", {"run_id": run_id})

    def points(self, run: TrialRun, points: Sequence[Point]) -> None:
        """Send metrics, as many at once as the server takes."""
        there = self._runs[run.trial]
        for point in points:
            self._add(there, flat_numbers(point.value, point.number), point.at, point.seq)
            if len(there.metrics) >= _MOST_METRICS:
                self._send(there)

    def _add(self, there: _Run, numbers: dict[str, float], at: float, step: int) -> None:
        there.metrics += [
            {"key": key, "value": _number(value), "timestamp": int(at * 1000), "step": step}
            for key, value in _named(numbers.items())
        ]

    def _send(self, there: _Run, tags: Sequence[dict[str, str]] = ()) -> None:
        """Send what waits. Of a thousand things in one request a hundred may be parameters."""
        while there.params or there.metrics or tags:
            metrics = there.metrics[: _MOST_METRICS - _MOST_PARAMETERS - len(tags)]
            body: dict[str, Any] = {"run_id": there.run_id, "metrics": metrics, "tags": list(tags)}
            self._client.post("runs/log-batch", {**body, "params": there.params})
            there.params, tags = [], ()
            del there.metrics[: len(metrics)]

    def end(self, run: TrialRun, end: TrialEnd) -> None:
        """Send the result, and that the run has ended."""
        there = self._runs.pop(run.trial)
        finals = flat_numbers(end.result, end.value)
        named = {("final" if k == "default" else f"final/{k}"): v for k, v in finals.items()}
        self._add(there, named, end.at, 0)
        told = {"bequeath.outcome": end.outcome, "bequeath.weights": end.weights_digest}
        told["bequeath.error"] = shown_text(end.error, _MOST_TAG)
        self._send(there, [{"key": k, "value": v[:_MOST_TAG]} for k, v in told.items() if v])
        status = "FINISHED" if end.success else "FAILED"
        self._update(there.run_id, "KILLED" if end.outcome in _KILLED else status, end.at)

    def _update(self, run_id: str, status: str, at: float | None) -> None:
        ended = {} if at is None else {"end_time": int(at * 1000)}
        self._client.post("runs/update", {"run_id": run_id, "status": status, **ended})

    def drop(self, trials: Sequence[int]) -> None:
        """Delete runs; MLflow keeps deleted ones for a while."""
        self._reach()
        for trial in trials:
            known = self._known.pop(trial, None)
            if known is not None:
                self._delete(known[0])

    def flush(self) -> Flushed:
        """Send all that waits."""
        for there in self._runs.values():
            self._send(there)
        return Flushed({trial: there.run_id for trial, there in self._runs.items()}, {})

    def close(self, status: str) -> None:
        """Say at the server that the experiment is over, if it is."""
        if status and self._parent:
            self._update(self._parent, _STATUS.get(status, "FINISHED"), None)
