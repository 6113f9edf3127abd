"""A working directory of an attempt's own, in which the code is found by its usual names."""

from __future__ import annotations

import os


def make_workplace(code_directory: str, folder: str) -> str:
    """Make ``folder``, with a link to each entry of the code directory; returns it.

    Reading goes through the links. A new file of the trial is its own, whatever others make by
    the same name. Entries of the code stay as they are only as long as no trial writes into one
    of them.

    Raises:
        OSError: it cannot be made.
    """
    os.makedirs(folder, exist_ok=True)
    for name in os.listdir(code_directory):
        try:
            os.symlink(os.path.join(code_directory, name), os.path.join(folder, name))
        except FileExistsError:
            pass  # made before, or the trial's
    return folder
