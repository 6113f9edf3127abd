"""Entry points of installed packages, read once for each module path: ours come first."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import EntryPoint, entry_points
from typing import Any

_OURS = "dispatcher."


def entries_of(group: str) -> tuple[EntryPoint, ...]:
    """Return what packages name in a group, that of our own package first."""
    entries = _installed(tuple(sys.path)).select(group=group)
    return tuple(sorted(entries, key=lambda each: not each.value.startswith(_OURS)))


@lru_cache(maxsize=16)  # reading the entry points of all packages takes some milliseconds
def _installed(path: tuple[str, ...]) -> Any:  # its class is another one in each Python
    return entry_points()
