"""What was ``nni.common`` in v0.5 and v1."""

from __future__ import annotations

import logging
from typing import Any


class NoMoreTrialError(Exception):
    """Raise it in ``generate_parameters``: nothing now. Asked again after the next result,
    unless the tuner has kept the callback by which it may answer itself."""

    def __init__(self, ErrorInfo: Any = "the tuner has no more parameters") -> None:  # noqa: N803
        super().__init__(ErrorInfo)
        self.errorinfo = ErrorInfo

    def __str__(self) -> str:
        return str(self.errorinfo)


def multi_thread_enabled() -> bool:
    """Whether calls of this tuner may overlap (``multiThread``)."""
    import os

    return os.environ.get("MULTI_THREAD", "") == "true"


def multi_phase_enabled() -> bool:
    """Always false: each phase is a trial of its own here."""
    return False


def init_logger(*_names: Any, **_options: Any) -> None:
    """Let log records of level INFO and above be printed, where nothing was set up before."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")
