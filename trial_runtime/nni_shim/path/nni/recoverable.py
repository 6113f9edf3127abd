"""The common base of tuners and assessors: the folder for checkpoints, and parameter ids."""

from __future__ import annotations

import os
from typing import Any


class Recoverable:
    """Base of tuners and assessors, without state of its own."""

    def load_checkpoint(self) -> None:
        """Load the state that :meth:`save_checkpoint` has saved."""

    def save_checkpoint(self) -> None:
        """Save a state for :meth:`load_checkpoint`."""

    def get_checkpoint_path(self) -> str | None:
        """The folder for checkpoints, if there is one."""
        folder = os.environ.get("NNI_CHECKPOINT_DIRECTORY")
        return folder if folder and os.path.isdir(folder) else None

    def recover_parameter_id(self, data: Any) -> int:
        """Return 0: ids go on where they stopped without the help of a tuner."""
        return 0

    def is_created_in_previous_exp(self, parameter_id: int | None) -> bool:
        """Return false: after a resume it is the same experiment."""
        return False

    def get_previous_param(self, parameter_id: int | None) -> Any:
        """Return None, see :meth:`is_created_in_previous_exp`."""
        return None
