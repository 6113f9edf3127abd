"""NNI's interfaces for tuners, assessors and trials, as of v0.5 to v3.0, provided by bequeath.

Where a real NNI is installed for the interpreter that runs a trial, ``import nni`` imports that
one, and the agent reads the files of its own protocol.
"""

from __future__ import annotations

from ._standing_aside import stand_aside

if not stand_aside(__name__):
    from . import _aliases
    from ._json import dump, load
    from .common import NoMoreTrialError
    from .common.serializer import trace
    from .trial import (
        get_current_parameter,
        get_experiment_id,
        get_next_parameter,
        get_next_parameters,
        get_parameters,
        get_sequence_id,
        get_trial_id,
        report_final_result,
        report_intermediate_result,
    )
    from .utils import ClassArgsValidator

    #: The release whose interfaces these are; by it code distinguishes v1, v2 and v3.
    __version__ = "3.0"

    __all__ = [
        "ClassArgsValidator",
        "NoMoreTrialError",
        "dump",
        "get_current_parameter",
        "get_experiment_id",
        "get_next_parameter",
        "get_next_parameters",
        "get_parameters",
        "get_sequence_id",
        "get_trial_id",
        "load",
        "report_final_result",
        "report_intermediate_result",
        "trace",
    ]

    _aliases.install(__name__)

    def enable_global_logging(enable: bool = True) -> None:
        """Do nothing: printed text goes into the trial's log in any case."""

    def silence_stdout() -> None:
        """Do nothing: the log goes only into its file."""

    def __getattr__(name: str) -> object:
        return _aliases.part(__name__, name)
