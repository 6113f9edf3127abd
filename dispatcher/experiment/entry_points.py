"""Entry points of installed packages, read once for each module path: ours come first."""

from __future__ import annotations

import sys
from functools import lru_cache
from importlib.metadata import Distribution, EntryPoint, entry_points
from typing import Any

_OURS = "dispatcher."
_OUR_DISTRIBUTION = "bequeath"


def entries_of(group: str) -> tuple[EntryPoint, ...]:
    """Return what packages name in a group, that of our own package first."""
    entries = _installed(tuple(sys.path)).select(group=group)
    return tuple(sorted(entries, key=lambda each: not is_ours(each)))


def is_ours(entry: EntryPoint) -> bool:
    """Whether our own distribution names it: anybody may name a module of ours."""
    return entry.value.startswith(_OURS) and brought_by(entry) == _OUR_DISTRIBUTION


def brought_by(entry: EntryPoint) -> str:
    """Return the name of the distribution that names it."""
    return _name_of(entry.dist) if entry.dist is not None else entry.value


@lru_cache(maxsize=256)  # each time reads and parses its metadata, a page of text
def _name_of(distribution: Distribution) -> str:
    return distribution.name


@lru_cache(maxsize=16)  # reading the entry points of all packages takes some milliseconds
def _installed(path: tuple[str, ...]) -> Any:  # its class is another one in each Python
    return entry_points()
