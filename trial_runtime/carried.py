"""Modules that were brought to this machine for our code, where its Python has none of its own.

An agent's environment names their folders, and whatever it starts inherits that. They come after
all that the Python has itself, so that nothing of a trial's is replaced; but for those that its
own are too old for, which come first. Folders that are meant for another Python are passed over:
a trial's command may call any.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

#: Folders, separated as those of PATH are. Each lies in one that is called by the tag of the
#: Python that it fits, as in ``modules/cpython-39/…``.
LAST, FIRST = "BEQUEATH_MODULES", "BEQUEATH_MODULES_FIRST"


def use() -> None:
    """Let this process import them. Saying it again changes nothing."""
    last, first = _folders(LAST), _folders(FIRST)
    sys.path[:0] = [folder for folder in first if folder not in sys.path]
    sys.path += [folder for folder in last if folder not in sys.path]


def are_there() -> bool:
    """Whether any were brought, for whatever Python."""
    return bool(os.environ.get(LAST) or os.environ.get(FIRST))


def variables(last: Sequence[str], first: Sequence[str]) -> dict[str, str]:
    """The environment that names these folders; empty without any."""
    named = {LAST: os.pathsep.join(last), FIRST: os.pathsep.join(first)}
    return {name: text for name, text in named.items() if text}


def _folders(variable: str) -> list[str]:
    tag = sys.implementation.cache_tag
    folders = os.environ.get(variable, "").split(os.pathsep)
    return [folder for folder in folders if os.path.basename(os.path.dirname(folder)) == tag]
