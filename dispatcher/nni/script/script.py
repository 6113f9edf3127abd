"""Running a script that starts experiments by ``nni.experiment``."""

from __future__ import annotations

import runpy
import sys
from collections.abc import Sequence
from pathlib import Path

from dispatcher.errors import BequeathError, UserError
from dispatcher.nni.script import children, experiment, modules
from dispatcher.nni.script.blame import script_error
from trial_runtime import nni_shim


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
    except BequeathError:
        raise
    except Exception as error:
        user_error = script_error(error, there)
        if user_error is None:
            raise
        raise user_error from error
    finally:
        for one in experiment.started:
            one.stop()
