"""No experiment begins while code of another one is imported, nor endlessly inside trials."""

from __future__ import annotations

from dispatcher.errors import UserError
from trial_runtime import nesting


def refuse_nested() -> None:
    """Return if an experiment may be started from this process.

    Raises:
        UserError: a trial or a tuner imports this process's code at the moment, or the process
            is a trial of an experiment that is inside a trial itself.
    """
    why = nesting.refusal()
    if why:
        raise UserError(why)
