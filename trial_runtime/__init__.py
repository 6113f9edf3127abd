"""The functions that a trial imports: parameters in, metrics and weights out.

The same script runs by hand: without a dispatcher parameters are empty (or come from the
JSON file that ``BEQUEATH_PARAMETERS`` names), reports are printed, weights stay here.
Read :mod:`trial_runtime.api` first. Importing this package loads nothing else. The functions
import msgspec, and zmq under an agent; numpy, torch and the weight store come with weights.

>>> import trial_runtime as bq
>>> bq.get_parameters()
{}
>>> bq.load_weights() is None  # there is no parent
True
>>> bq.report_intermediate(0.25)
[bequeath] intermediate result 1: 0.25
>>> bq.report_final({"default": 0.5, "loss": 1.5})
[bequeath] final result: {"default":0.5,"loss":1.5}
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from trial_runtime import carried

carried.use()

if TYPE_CHECKING:
    from trial_runtime.api import (
        attempt,
        checkpoint_dir,
        devices,
        get_next_parameter,
        get_parameters,
        load_checkpoint,
        load_weights,
        log,
        report_final,
        report_final_result,
        report_intermediate,
        report_intermediate_result,
        save_artefact,
        save_checkpoint,
        save_weights,
        seed,
        shared_store,
        should_stop,
        trial_id,
    )

__all__ = [
    "attempt",
    "checkpoint_dir",
    "devices",
    "get_next_parameter",
    "get_parameters",
    "load_checkpoint",
    "load_weights",
    "log",
    "report_final",
    "report_final_result",
    "report_intermediate",
    "report_intermediate_result",
    "save_artefact",
    "save_checkpoint",
    "save_weights",
    "seed",
    "shared_store",
    "should_stop",
    "trial_id",
]


def __getattr__(name: str) -> Any:
    if name in __all__:
        from trial_runtime import api

        globals().update({each: getattr(api, each) for each in __all__})
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
