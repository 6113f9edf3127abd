"""Commands of the form ``python script.py arguments``, which need no new interpreter in a fork."""

from __future__ import annotations

import os
import re
import shlex
import sys
from typing import NamedTuple

from trial_runtime.namesakes import admit

#: Anything that means something to a shell; such a command is left to bash.
_SHELL = re.compile(r"[$`|&;<>(){}\[\]*?~#!\n\\=]")


class Script(NamedTuple):
    """A script and its arguments."""

    path: str
    arguments: tuple[str, ...]


def script_of(command: str) -> Script | None:
    """The script a command runs, or None if it has to be left to bash."""
    if _SHELL.search(command):
        return None
    try:
        parts = shlex.split(command)
    except ValueError:
        return None
    if len(parts) < 2 or parts[0] not in ("python", "python3", sys.executable):
        return None
    if parts[1].startswith("-") or not parts[1].endswith(".py"):
        return None
    return Script(parts[1], tuple(parts[2:]))


def run_script(script: Script, folder: str) -> None:
    """Run a script as ``__main__`` in ``folder``, the current one. Raises what it raises."""
    import runpy

    sys.argv = [script.path, *script.arguments]
    beside = os.path.dirname(os.path.join(folder, script.path))
    admit(beside)
    sys.path[0] = beside
    runpy.run_path(script.path, run_name="__main__")
