"""The base class of assessors, and their answers."""

from __future__ import annotations

from enum import Enum
from typing import Any

from .recoverable import Recoverable

__all__ = ["AssessResult", "Assessor"]


class AssessResult(Enum):
    """Whether a trial may go on."""

    Good = True
    Bad = False


class Assessor(Recoverable):
    """Looks at the intermediate results of a trial."""

    def assess_trial(self, trial_job_id: str, trial_history: list[Any]) -> Any:
        """Return ``AssessResult.Good`` or ``Bad``, or a bool. Must be overridden."""
        raise NotImplementedError(f"{type(self).__name__} must define assess_trial")

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Called when a trial that was assessed has ended."""

    def _on_exit(self) -> None:
        """Part of NNI's interface."""

    def _on_error(self) -> None:
        """Part of NNI's interface."""
