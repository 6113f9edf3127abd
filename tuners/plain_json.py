"""Plain JSON values: what they are called, how a place in them is written, what JSON cannot say."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from typing import Any, TypeAlias

JsonPath: TypeAlias = tuple[str | int, ...]
"""Keys and indexes that lead to one place of a JSON value."""


def written_path(path: JsonPath, root: str = "") -> str:
    """Return the path as a person writes it.

    >>> written_path(("lr", "_value", 1), "searchSpace")
    'searchSpace.lr._value[1]'
    """
    written = root
    for part in path:
        written += f"[{part}]" if isinstance(part, int) else f".{part}" if written else str(part)
    return written


MOST_WHOLE = 2**63 - 1
"""The largest integer that msgpack carries with its sign."""


def unjson(value: object, path: JsonPath) -> Iterator[tuple[JsonPath, str]]:
    """Yield what JSON cannot say: infinities, sets, objects."""
    if isinstance(value, float) and not math.isfinite(value):
        yield path, f"must be finite, not {value}"
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            if not isinstance(key, str):
                yield path, f"has the key {key!r}, and keys must be text"
            yield from unjson(entry, (*path, str(key)))
    elif isinstance(value, list | tuple):
        for index, entry in enumerate(value):
            yield from unjson(entry, (*path, index))
    elif isinstance(value, int) and not -MOST_WHOLE <= value <= MOST_WHOLE:
        yield path, f"must fit into 64 bits, not {str(value)[:24]}…"
    elif value is not None and not isinstance(value, str | int | float):
        yield path, f"must be a JSON value, not {kind_of(value)}"


def plain(value: Any, path: JsonPath = ()) -> Any:
    """Return a deep copy as JSON would give it back: tuples as lists, subclasses as their base.

    Args:
        value: nests of mappings, lists and tuples.
        path: where it is within another one, for the error.

    Raises:
        ValueError: JSON cannot say it; names the place.
    """
    match value:
        case Mapping():
            return {str(key): plain(entry, (*path, str(key))) for key, entry in value.items()}
        case list() | tuple():
            return [plain(entry, (*path, index)) for index, entry in enumerate(value)]
        case None | bool():
            return value
        case str():
            return str(value)
        case int():
            return int(value)
        case float():
            return float(value)
        case _:
            inside = f"holds '{written_path(path)}', which " if path else ""
            raise ValueError(f"{inside}must be a JSON value, not {kind_of(value)}")


def of_numpy(value: Any) -> Any:
    """Return numbers and arrays of numpy as Python's, which JSON has; all else as it is."""
    if type(value).__module__ == "numpy" and hasattr(value, "tolist"):
        return value.tolist()
    if type(value) in (list, tuple):
        return type(value)(map(of_numpy, value))
    if type(value) is dict:
        return {key: of_numpy(each) for key, each in value.items()}
    return value


def kind_of(value: object) -> str:
    """Say in a few words what a value is, for the end of a sentence."""
    match value:
        case None:
            return "nothing"
        case bool():
            return f"the switch {str(value).lower()}"
        case str():
            return f"the text {value!r}"
        case int() | float():
            return f"the number {value}"
        case Mapping():
            return "a mapping"
        case list() | tuple():
            return "a list"
        case _:
            return f"a {type(value).__name__}"
