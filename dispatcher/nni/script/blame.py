"""Errors of scripts that end by an exception, told apart from faults of bequeath."""

from __future__ import annotations

import traceback
from pathlib import Path

import dispatcher
from dispatcher.errors import UserError
from dispatcher.nni.script.experiment import Experiment

_OURS = Path(dispatcher.__file__).resolve().parent

_CLIENT = "'bequeath run config.yml' runs an experiment file, and what is there of nni.experiment \
stands in 'from-nni' in bequeath's documentation"


def script_error(error: Exception, file: Path) -> UserError | None:
    """Return an exception of a script as an error of its user; None if our own code raised it."""
    steps = traceback.extract_tb(error.__traceback__)
    if not steps or _OURS in Path(steps[-1].filename).resolve().parents:
        return None
    begin = next((n for n, step in enumerate(steps) if step.filename == str(file)), len(steps))
    lines = ["the script ended by an exception", "Traceback (most recent call last):"]
    lines += "".join(traceback.format_list(steps[begin:])).splitlines()
    lines += "".join(traceback.format_exception_only(error)).splitlines()
    return UserError("\n".join(lines), hint=_instead(error), where=str(file))


def _instead(error: Exception) -> str:
    """Return a hint for scripts that use the clients of NNI before ``nni.experiment``."""
    missing = isinstance(error, ModuleNotFoundError) and (error.name or "").startswith("nnicli")
    unknown = isinstance(error, AttributeError) and isinstance(error.obj, Experiment)
    return _CLIENT if missing or unknown else ""
