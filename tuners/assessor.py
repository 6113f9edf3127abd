"""The class that decides whether a running trial is worth going on with."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any


class AssessResult(enum.Enum):
    """NNI's two answers; a plain bool is taken as well."""

    Good = True
    Bad = False


class Assessor:
    """Sees the intermediate results of running trials, and may have one stopped early."""

    def assess_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> AssessResult | bool:
        """Returns Bad (False) to stop the trial.

        Args:
            trial_job_id: the trial's job id (not its ``parameter_id``).
            trial_history: its intermediate results so far, in order and without gaps. Called only
                when it has grown.
        """
        raise NotImplementedError(f"{type(self).__name__} must define assess_trial")

    def recall_trial(self, trial_job_id: str, trial_history: Sequence[Any]) -> None:
        """Takes once more, in a fresh assessor, what :meth:`assess_trial` took before.

        Called after a restart of the tuner's process, in the order in which it happened, ends of
        trials in between; nothing is stopped by it. Override it where the answer costs much.

        Args:
            trial_job_id: as there.
            trial_history: as there.
        """
        self.assess_trial(trial_job_id, trial_history)

    def trial_end(self, trial_job_id: str, success: bool) -> None:
        """Called when a trial that was assessed at least once has ended."""

    def _on_exit(self) -> None:
        """Called when the experiment is over."""

    def _on_error(self) -> None:
        """Part of NNI's interface; bequeath does not call it."""
