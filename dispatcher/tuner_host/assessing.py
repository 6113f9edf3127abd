"""The assessor: sees intermediate results, and may have a trial stopped early.

It has a thread of its own, so a slow assessor delays verdicts and nothing else. An
exception counts as "go on" and is shown once for each trial.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterable
from queue import SimpleQueue
from typing import Any

from dispatcher.core.actions import Assess, Deliver
from dispatcher.core.events import TrialStopRequested
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.ports import AssessorInput
from dispatcher.tuner_host.shown import BEFORE_ALL
from dispatcher.tuner_host.tracebacks import describe
from trial_runtime.trial_wire import brief


class Assessing:
    """Calls ``assess_trial`` with the history of each trial, in the order of the metrics.

    Histories are kept while their trials run; the number of metrics of a trial is bounded
    by its agent.

    Args:
        assessor: the author's.
        say: takes an event for the head.
        note: takes a text for the user when the assessor raises.
        past: metrics of before this process, shown first; those that an earlier assessor has
            answered are not assessed again. Read in the assessor's thread.
    """

    def __init__(
        self,
        assessor: Any,
        say: Callable[[object], None],
        note: Callable[[str], None],
        past: Iterable[AssessorInput] = (),
    ) -> None:
        self._assessor = assessor
        self._say = say
        self._note = note
        self._queue: SimpleQueue[Assess | Deliver] = SimpleQueue()
        self._histories: dict[int, list[Any]] = {}
        self._settled: set[int] = set()  # stopped, or its assessor raised
        self._past = past
        self._recalled: dict[int, tuple[int, int]] = {}  # attempt and number of the last metric
        threading.Thread(target=self._serve, name="tuner-assessor", daemon=True).start()

    def put(self, work: Assess | Deliver) -> None:
        """Queue a metric, or the end of a trial. I/O thread only."""
        self._queue.put(work)

    def on_exit(self) -> None:
        """Tell the assessor that the experiment is over.

        Runs in another thread than ``assess_trial``, which may be blocked in the author's code.
        """
        on_exit = getattr(self._assessor, "_on_exit", None)
        if on_exit is not None:
            on_exit()

    def _serve(self) -> None:
        self._recall()
        while True:
            work = self._queue.get()
            if not isinstance(work, Assess):
                self._end(work.trial, work.success)
            elif (work.attempt, work.seq) > self._recalled.get(work.trial, BEFORE_ALL):
                self._show(work.trial, work.value)

    def _recall(self) -> None:
        recall = getattr(self._assessor, "recall_trial", None) or self._assessor.assess_trial
        for one in self._past:
            if one.value is None:
                self._end(one.trial, one.success)
                continue
            self._recalled[one.trial] = (one.attempt, one.seq)
            if not one.answered:
                self._show(one.trial, one.value)
                continue
            history = self._histories.setdefault(one.trial, [])
            try:
                history.append(json.loads(one.value))
            except (ValueError, RecursionError):
                continue  # it was noted then
            try:
                recall(str(one.trial), list(history))
            except BaseException:  # noqa: BLE001, S112 - author's code; it was noted then
                continue

    def _show(self, trial: int, text: str) -> None:
        """Assess by a metric. One that is not JSON is left out: head and agent check metrics, but
        those of an older store may be anything."""
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            self._note(
                f"the assessor is not shown a metric of trial {trial}, which is not JSON: "
                f"{brief(error)}; what its agent relays is at fault"
            )
            return
        self._assess(trial, value)

    def _assess(self, trial: int, value: Any) -> None:
        history = self._histories.setdefault(trial, [])
        history.append(value)
        if trial in self._settled:
            return
        try:
            answer = self._assessor.assess_trial(str(trial), list(history))
            go_on = _means_go_on(answer)
        except BaseException as error:  # noqa: BLE001 - author's code; the trial goes on
            self._settled.add(trial)
            self._note(f"assess_trial raised for trial {trial}:\n{describe(error)}")
            return
        if not go_on:
            self._settled.add(trial)
            self._say(TrialStopRequested(TrialId(trial), EndReason.STOPPED_EARLY))

    def _end(self, trial: int, success: bool) -> None:
        self._settled.discard(trial)
        self._recalled.pop(trial, None)
        if self._histories.pop(trial, None) is None:
            return
        trial_end = getattr(self._assessor, "trial_end", None)
        if trial_end is None:
            return
        try:
            trial_end(str(trial), success)
        except BaseException as error:  # noqa: BLE001 - author's code
            self._note(f"the assessor's trial_end raised:\n{describe(error)}")


def _means_go_on(answer: Any) -> bool:
    """Read ``AssessResult.Good``/``Bad`` of any package, or a plain bool."""
    value = getattr(answer, "value", answer)
    if not isinstance(value, bool):
        raise TypeError(f"assess_trial returned {answer!r}, not AssessResult or a bool")
    return value
