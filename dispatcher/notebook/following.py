"""Events of an experiment as its store tells them: trials that start, report and end."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal, NamedTuple

from dispatcher.queries import ExperimentReader, OptimizeMode, TrialSummary, changes
from dispatcher.queries.changed import Changes, ReportedMetric
from dispatcher.queries.objectives import bounded, within
from tuners.objectives import Objective

EventKind = Literal["trial_start", "metric", "trial_end", "new_best", "experiment_end"]

#: Trials and metrics that are read at once.
MOST: Final = 400


@dataclass(frozen=True, slots=True)
class ExperimentEvent:
    """One thing that has happened in an experiment.

    Attributes:
        kind: ``trial_start``, ``metric``, ``trial_end``, ``new_best`` or ``experiment_end``.
        number: of the trial; None at the end of the experiment.
        value: the reported number, or the result, if there is one.
        trial: the trial as it was read, which may be later; None for metrics and the end.
        text: the status at the end, and its reason.
    """

    kind: EventKind
    number: int | None = None
    value: float | None = None
    trial: TrialSummary | None = None
    text: str = ""


class EventPage(NamedTuple):
    """Events in their order, and whether there are more at once."""

    events: list[ExperimentEvent]
    more: bool


class EventFollower:
    """Reads an experiment's store page by page; each start, report and end comes once.

    Any thread, one at a time. A page is a bounded read, and needs no running head.

    Args:
        folder: of the experiment.
        metrics: whether reports of trials that go on are events.
    """

    def __init__(self, folder: Path, *, metrics: bool = True) -> None:
        self._folder = folder
        self._metrics = metrics
        self._cursor = ""
        self._started: dict[int, int] = {}  # trial → attempt
        self._ended: set[int] = set()
        self._reported: dict[int, tuple[int, int]] = {}  # trial → attempt, seq
        self._best: float | None = None

    def page(self) -> EventPage:
        """Read what has happened since the page before.

        Raises:
            StoreError: the store cannot be read.
        """
        with ExperimentReader.open(self._folder) as reader:
            read = changes(reader, self._cursor, most=MOST, metrics=self._metrics)
            mode, bounds = reader.mode, bounded(reader)
        # In a store that counts no changes, all is read again, and what came before is passed over.
        self._cursor = read.cursor if read.exact or read.more else ""
        return EventPage(self._events(read, mode, bounds), read.more)

    def _events(
        self, read: Changes, mode: OptimizeMode, bounds: tuple[Objective, ...]
    ) -> list[ExperimentEvent]:
        events: list[ExperimentEvent] = []
        trials = [each.trial for each in read.trials if each.trial.attempt]
        for trial in trials:
            if trial.id not in self._ended and self._started.get(trial.id) != trial.attempt:
                self._started[trial.id] = trial.attempt
                events.append(ExperimentEvent("trial_start", trial.id, trial=trial))
        events += [event for each in read.metrics if (event := self._metric(each)) is not None]
        for trial in trials:
            if trial.over and trial.id not in self._ended:
                self._ended.add(trial.id)
                self._started.pop(trial.id, None)
                events += self._ends(trial, mode, bounds)
        return events

    def _metric(self, each: ReportedMetric) -> ExperimentEvent | None:
        point = each.point
        place = (point.attempt, point.seq)
        if point.final or place <= self._reported.get(each.trial, (0, -1)):
            return None
        self._reported[each.trial] = place
        return ExperimentEvent("metric", each.trial, point.number)

    def _ends(
        self, trial: TrialSummary, mode: OptimizeMode, bounds: tuple[Objective, ...]
    ) -> list[ExperimentEvent]:
        end = ExperimentEvent("trial_end", trial.id, trial.value, trial)
        if trial.value is None or not mode.better(trial.value, self._best):
            return [end]
        if not within(trial.result, bounds):
            return [end]
        self._best = trial.value
        return [end, ExperimentEvent("new_best", trial.id, trial.value, trial)]
