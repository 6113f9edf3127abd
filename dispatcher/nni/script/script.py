"""Running a script that starts experiments by ``nni.experiment``, and saying why it failed."""

from __future__ import annotations

import runpy
import sys
import traceback
from collections.abc import Sequence
from pathlib import Path

import dispatcher
from dispatcher.errors import DispatcherError, UserError
from dispatcher.nni.script import children, experiment, modules
from dispatcher.nni.script.experiment import Experiment
from trial_runtime import nni_shim

_OURS = Path(dispatcher.__file__).resolve().parent

_CLIENT = "'bequeath run config.yml' runs an experiment file, and what is there of nni.experiment \
stands in 'from-nni' in bequeath's documentation"


def run_script(file: Path, arguments: Sequence[str] = ()) -> None:
    """Run a script as ``python file arguments…`` would, with ``nni.experiment`` being ours.

    Experiments that it has started and that still run stop when it ends, as with NNI.

    Raises:
        UserError: there is no such file, or the script itself raised something.
    """
    if not file.is_file():
        raise UserError("does not exist", where=str(file))
    sys.path.append(nni_shim.folder())
    modules.install()
    children.provide_to_children()
    sys.argv = [str(file), *arguments]
    there = file.absolute()  # as Python has it in ``__file__``, so that scripts may change folder
    sys.path.insert(0, str(there.parent))
    try:
        runpy.run_path(str(there), run_name="__main__")
    except DispatcherError:
        raise
    except Exception as error:
        user_error = script_error(error, there)
        if user_error is None:
            raise
        raise user_error from error
    finally:
        for one in experiment.started:
            one.stop()


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
