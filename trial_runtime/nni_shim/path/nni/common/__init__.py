"""The module ``nni.common`` of v0.5 and v1."""

from __future__ import annotations

import logging
import os
from typing import Any, NamedTuple, Optional


class EnvArgs(NamedTuple):
    """The environment that v0.5 keeps as ``env_args``; None for variables that are not set."""

    platform: Optional[str]
    trial_job_id: Optional[str]
    log_dir: Optional[str]
    role: Optional[str]


_VARIABLES = ("NNI_PLATFORM", "NNI_TRIAL_JOB_ID", "NNI_LOG_DIRECTORY", "NNI_ROLE")
env_args = EnvArgs(*map(os.environ.get, _VARIABLES))

#: Values of ``logLevel``.
log_level_map = {
    "fatal": logging.FATAL,
    "error": logging.ERROR,
    "warning": logging.WARNING,
    "info": logging.INFO,
    "debug": logging.DEBUG,
}


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
    return os.environ.get("MULTI_THREAD", "") == "true"


def multi_phase_enabled() -> bool:
    """Always false: each phase is a trial of its own here."""
    return False


def enable_multi_thread() -> None:
    """Do nothing: ``multiThread`` is a key of the experiment file."""


def enable_multi_phase() -> None:
    """Do nothing, see :func:`multi_phase_enabled`."""


def init_logger(*_names: Any, **_options: Any) -> None:
    """Let log records of level INFO and above be printed, where nothing was set up before."""
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(levelname)s %(name)s %(message)s")


init_standalone_logger = init_logger  # v1.6
