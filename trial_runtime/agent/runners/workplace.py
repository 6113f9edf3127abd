"""Folders of an attempt's own: to work in, with the code's usual names, and for checkpoints."""

from __future__ import annotations

import os
from collections.abc import Collection

from trial_runtime.agent.attempt import Unpreparable
from trial_runtime.checkpoints import make_folder
from trial_runtime.errors import PathError


def make_workplace(code_directory: str, folder: str, without: Collection[str] = ()) -> str:
    """Make ``folder``, with a link to each entry of the code directory; returns it.

    Reading goes through the links. A new file of the trial is its own, whatever others make by
    the same name. Entries of the code stay as they are only as long as no trial writes into one
    of them.

    Args:
        code_directory: of the trials.
        folder: of this one.
        without: names that get no link, since each trial writes a file of its own by that name.

    Raises:
        OSError: it cannot be made.
    """
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(code_directory):
        if name in without:
            continue
        try:
            os.symlink(os.path.join(code_directory, name), os.path.join(folder, name))
        except FileExistsError:
            pass  # made before, or the trial's
    return folder


def make_checkpoints(folder: str) -> None:
    """Make the folder of a trial's checkpoints.

    Raises:
        Unpreparable: the disk or its permissions do not allow it, or a link is in the way.
    """
    from trial_runtime.weights.storage.faults import named

    try:
        make_folder(folder)
    except OSError as error:
        raise Unpreparable(str(named(error, folder) or error)) from error
    except PathError as error:
        raise Unpreparable(f"cannot prepare {folder}: {error}") from error
