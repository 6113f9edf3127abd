"""The median stopping rule.

Golovin, Solnik, Moitra, Kochanski, Karro, Sculley: Google Vizier: A Service for Black-Box
Optimization, KDD 2017, "Automated Early Stopping", "Median Stopping Rule".
"""

from __future__ import annotations

import math
from bisect import insort
from collections.abc import Sequence
from itertools import accumulate
from typing import Any

from tuners import values
from tuners.assessor import Assessor, AssessResult


class MedianstopAssessor(Assessor):
    """Stops a trial whose best value so far is worse than the median of the others' averages.

    At step s the best value of the trial up to s is compared with the median, over all trials that
    ended well and got as far, of their average value up to s. The first trials are never stopped,
    as there is nothing to compare them with. Memory: one number a step of each finished trial.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        start_step: no trial is stopped before it has reported so many values.
        min_trials: no trial is stopped before so many others have ended well.
    """

    def __init__(
        self, optimize_mode: str = "maximize", start_step: int = 0, min_trials: int = 0
    ) -> None:
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.start_step = values.whole("start_step", start_step, 0)
        self.min_trials = values.whole("min_trials", min_trials, 0)
        self._running: dict[str, list[float]] = {}
        self._averages: list[list[float]] = []  # by step: of each finished trial, sorted

    def assess_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> AssessResult:
        """See :meth:`.Assessor.assess_trial`; Bad by the median stopping rule."""
        self.recall_trial(trial_job_id, trial_history)
        scores = self._running[trial_job_id]
        step = len(scores)
        if step < self.start_step or step > len(self._averages):
            return AssessResult.Good
        if len(self._averages[0]) < self.min_trials:
            return AssessResult.Good
        middle = _median(self._averages[step - 1])
        return AssessResult.Good if max(scores) >= middle else AssessResult.Bad

    def recall_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> None:
        """Takes note of its values."""
        scores = self._running.setdefault(trial_job_id, [])
        scores += [better(value, self.optimize_mode) for value in trial_history[len(scores) :]]

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Takes a trial that ended well among those that others are compared with."""
        scores = self._running.pop(trial_job_id, [])
        if success and all(map(math.isfinite, scores)):
            sums = accumulate(scores)
            for step, total in enumerate(sums, 1):
                if step > len(self._averages):
                    self._averages.append([])
                insort(self._averages[step - 1], total / step)


def _median(ordered: list[float]) -> float:
    """The median of sorted numbers."""
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else (ordered[middle - 1] + ordered[middle]) / 2


def better(value: Any, mode: values.OptimizeMode) -> float:
    """The number in a value, larger is better; what is not finite is worse than any."""
    score = values.score(value, mode)
    return -math.inf if score is None else score
