"""The base class of tuners. It keeps no state: authors forget to call its constructor."""

from __future__ import annotations

import logging
import os
from collections.abc import Sequence
from typing import Any

from .common import NoMoreTrialError
from .recoverable import Recoverable

__all__ = ["Tuner"]

_log = logging.getLogger(__name__)


class Tuner(Recoverable):
    """Proposes parameters and learns from results."""

    _accept_customized = False

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> Any:
        """Return the parameters of one trial. Must be overridden, or the next method."""
        raise NotImplementedError(f"{type(self).__name__} must define generate_parameters")

    def generate_multiple_parameters(
        self, parameter_id_list: Sequence[int], **kwargs: Any
    ) -> list[Any]:
        """Return parameters for several trials; stops at the first ``NoMoreTrialError``."""
        proposed = []
        for parameter_id in parameter_id_list:
            try:
                proposed.append(self.generate_parameters(parameter_id, **kwargs))
            except NoMoreTrialError:
                return proposed
        return proposed

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """Take a final result. Must be overridden.

        Args:
            parameter_id: of the trial.
            parameters: as :meth:`generate_parameters` returned them.
            value: the result as the trial reported it.
            **kwargs: more, by NNI's version, such as ``trial_job_id``.
        """
        raise NotImplementedError(f"{type(self).__name__} must define receive_trial_result")

    def _accept_customized_trials(self, accept: bool = True) -> None:
        """Choose whether results of trials that a user added are delivered, too."""
        self._accept_customized = accept

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Called when a trial has ended, after its result."""

    def update_search_space(self, search_space: Any) -> None:
        """Take the search space: at the start, and when a user changes it."""

    def load_checkpoint(self) -> None:
        """Part of NNI's interface; bequeath rebuilds a tuner from the journal in place of it."""
        _log.info("load_checkpoint is not overridden: nothing to load")

    def save_checkpoint(self) -> None:
        """Part of NNI's interface; nothing calls it, there or here, but the tuner itself."""
        _log.info("save_checkpoint is not overridden: nothing to save")

    def get_checkpoint_path(self) -> str | None:
        """The folder for checkpoints, if there is one."""
        folder = os.environ.get("NNI_CHECKPOINT_DIRECTORY")
        return folder if folder and os.path.isdir(folder) else None

    def import_data(self, data: Any) -> None:
        """Take results of another experiment."""

    def extract_scalar_reward(self, value: Any, scalar_key: str = "default") -> Any:
        """The number in a result, as tuners of v0.3 to v0.6 asked for it."""
        from .utils import extract_scalar_reward

        return extract_scalar_reward(value, scalar_key)

    def _on_exit(self) -> None:
        """Called when the experiment is over."""

    def _on_error(self) -> None:
        """Part of NNI's interface; bequeath writes a traceback to the tuner's log instead."""
