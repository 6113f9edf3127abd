"""Names of a package that are fetched at their first use (PEP 562): an import of one module of a
large room does not wait for the others."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping
from importlib import import_module


def fetched_late(package: str, homes: Mapping[str, str]) -> Callable[[str], object]:
    """Return what a package takes for its ``__getattr__``.

    Args:
        package: its name.
        homes: the module of each name, below the package. A module never has the name of something
            in it: once imported, it would stand in its place.
    """

    def fetch(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        value: object = getattr(import_module(f"{package}.{homes[name]}"), name)
        setattr(sys.modules[package], name, value)
        return value

    return fetch
