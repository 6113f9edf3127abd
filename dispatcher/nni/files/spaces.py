"""Search spaces in the form of old releases of NNI."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def as_now(space: dict[str, Any]) -> dict[str, Any]:
    """Return the space in the form that all releases since v0.9 read.

    Up to v0.7 ``randint`` had an upper bound alone.

    >>> as_now({"n": {"_type": "randint", "_value": [10]}})["n"]["_value"]
    [0, 10]
    """
    return {name: _parameter(entry) for name, entry in space.items()}


def _parameter(entry: Any) -> Any:
    if not isinstance(entry, Mapping) or "_type" not in entry:
        return entry
    kind, value = entry["_type"], entry.get("_value")
    if kind == "randint" and isinstance(value, list) and len(value) == 1:
        return {**entry, "_value": [0, *value]}
    if kind == "choice" and isinstance(value, list):
        return {**entry, "_value": [_option(each) for each in value]}
    return dict(entry)


def _option(option: Any) -> Any:
    if isinstance(option, Mapping) and "_name" in option:
        return {
            key: value if key == "_name" else _parameter(value) for key, value in option.items()
        }
    return option
