"""Stopping by extrapolated learning curves; ``curves.py`` has the curves and the paper."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from tuners import values
from tuners.assessor import Assessor, AssessResult
from tuners.assessors.curves import LEAST_VALUES, predict
from tuners.assessors.medianstop import better
from tuners.errors import TunerArgumentError


class CurvefittingAssessor(Assessor):
    """Stops a trial whose curve, continued, will not come near the best one so far.

    Domhan, Springenberg, Hutter: Speeding Up Automatic Hyperparameter Optimization of Deep Neural
    Networks by Extrapolation of Learning Curves, IJCAI 2015, the predictive termination criterion,
    with an expected value in place of its probability.

    A trial is stopped when what its curve is expected to reach after ``epoch_num`` steps is below
    ``threshold`` times the best that a trial which ended well has reached (``minimize``: above the
    best divided by it). For results from 0 up, such as accuracies and losses, that approach a limit
    from one side: of a curve that falls where it should rise nothing is foretold, and it is let go
    on.

    Args:
        epoch_num: how many values a whole trial reports.
        start_step: no trial is judged before it has reported so many; 4 or more.
        threshold: how near to the best a trial must be expected to come.
        gap: how many values lie between two judgements of a trial.
        optimize_mode: ``maximize`` or ``minimize``.
    """

    def __init__(
        self,
        epoch_num: int = 20,
        start_step: int = 6,
        threshold: float = 0.95,
        gap: int = 1,
        optimize_mode: str = "maximize",
    ) -> None:
        self.epoch_num = values.whole("epoch_num", epoch_num, 1)
        self.start_step = values.whole("start_step", start_step, 0)
        if start_step >= epoch_num:
            raise TunerArgumentError(
                f"start_step ({start_step}) is not below epoch_num ({epoch_num}): nothing would "
                "be judged."
            )
        self.threshold = values.share("threshold", threshold)
        self.gap = values.whole("gap", gap, 1)
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self._last: dict[str, float] = {}  # of trials under way
        self._judged: dict[str, int] = {}  # at which step last
        self._best = -math.inf

    def assess_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> AssessResult:
        """Bad where nothing good is to be expected."""
        if not self._is_due(trial_job_id, trial_history):
            return AssessResult.Good
        scores = [better(value, self.optimize_mode) for value in trial_history]
        if not all(map(math.isfinite, scores)):
            return AssessResult.Good
        expected = predict(scores, self.epoch_num)
        if expected is None:
            return AssessResult.Good
        return AssessResult.Good if self._is_near(expected) else AssessResult.Bad

    def recall_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> None:
        """Takes note of its last value, and of when its curve was continued."""
        self._is_due(trial_job_id, trial_history)

    def _is_due(self, trial_job_id: str, trial_history: Sequence[Any]) -> bool:
        step = len(trial_history)
        self._last[trial_job_id] = better(trial_history[-1], self.optimize_mode)
        if step < max(self.start_step, LEAST_VALUES) or step >= self.epoch_num:
            return False
        if self._best == -math.inf or step - self._judged.get(trial_job_id, -self.gap) < self.gap:
            return False
        self._judged[trial_job_id] = step
        return True

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Takes the last value of a trial that ended well as a candidate for the best."""
        last = self._last.pop(trial_job_id, -math.inf)
        self._judged.pop(trial_job_id, None)
        if success:
            self._best = max(self._best, last)

    def _is_near(self, expected: float) -> bool:
        if self.optimize_mode == "maximize":
            return expected >= self.threshold * self._best
        return self.threshold * -expected <= -self._best
