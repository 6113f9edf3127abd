"""Bounds that an intermediate result may not leave."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tuners import values
from tuners.assessor import Assessor, AssessResult
from tuners.errors import TunerArgumentError


class ThresholdAssessor(Assessor):
    """Stops a trial whose value lies below ``lower`` or above ``upper``, or is NaN.

    Args:
        lower: smallest value that a trial may report; null: no bound.
        upper: largest value that a trial may report; null: no bound.
        start_step: values before this step are not looked at.
        gap: how many values in a row must lie outside.
    """

    def __init__(
        self,
        lower: float | None = None,
        upper: float | None = None,
        start_step: int = 0,
        gap: int = 1,
    ) -> None:
        for name, bound in (("lower", lower), ("upper", upper)):
            number = isinstance(bound, int | float) and not isinstance(bound, bool)
            if bound is not None and not number:
                raise TunerArgumentError(f"{name} is a number or null, not {bound!r}.")
        if lower is None and upper is None:
            raise TunerArgumentError(
                "Threshold needs a bound.", "Give lower, upper, or both under classArgs."
            )
        if lower is not None and upper is not None and lower > upper:
            raise TunerArgumentError(f"lower ({lower:g}) is above upper ({upper:g}).")
        self.lower, self.upper = lower, upper
        self.start_step = values.whole("start_step", start_step, 0)
        self.gap = values.whole("gap", gap, 1)

    def assess_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> AssessResult:
        """Bad once the last ``gap`` values lie outside."""
        seen = trial_history[max(0, self.start_step - 1) :]
        last = [values.scalar(value) for value in seen[-self.gap :]]
        if len(last) < self.gap or any(self._fits(number) for number in last):
            return AssessResult.Good
        return AssessResult.Bad

    def recall_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> None:
        """Each trial is judged by itself: there is nothing to know of others."""

    def _fits(self, number: float) -> bool:
        low = self.lower is None or number >= self.lower
        high = self.upper is None or number <= self.upper
        return low and high and number == number
