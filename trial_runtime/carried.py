"""Modules that were copied to this machine for our code, where its Python has none of its own.

An agent's environment names their folders, and its child processes inherit it. The folders come
after all that the Python has itself, so that no module of a trial is replaced. Modules of which
the Python has too old a version are the exception: they come first. Folders for another Python are
passed over, since a trial's command may call any.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

#: Folders, separated as those of PATH are. Each lies in one that is called by the tag of the
#: Python that it fits, as in ``modules/cpython-39/…``.
LAST, FIRST = "BEQUEATH_MODULES", "BEQUEATH_MODULES_FIRST"


def use() -> None:
    """Let this process import the modules. Calling it again changes nothing."""
    last, first = _folders(LAST), _folders(FIRST)
    sys.path[:0] = [folder for folder in first if folder not in sys.path]
    sys.path += [folder for folder in last if folder not in sys.path]


def are_there() -> bool:
    """Whether there are any such modules, for whatever Python."""
    return bool(os.environ.get(LAST) or os.environ.get(FIRST))


def variables(last: Sequence[str], first: Sequence[str]) -> dict[str, str]:
    """The environment variables that name these folders; empty without any."""
    named = {LAST: os.pathsep.join(last), FIRST: os.pathsep.join(first)}
    return {name: text for name, text in named.items() if text}


def _folders(variable: str) -> list[str]:
    tag = sys.implementation.cache_tag
    folders = os.environ.get(variable, "").split(os.pathsep)
    return [folder for folder in folders if os.path.basename(os.path.dirname(folder)) == tag]
