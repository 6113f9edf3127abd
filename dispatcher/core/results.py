"""Numbers in results: JSON texts, of which the core reads nothing else."""

import json
from collections.abc import Iterable
from typing import Any

_DEFAULT = "default"


def number_in(text: str) -> float | None:
    """The number in a result: itself, or what a mapping calls ``default``. None if there is none
    that is finite.

    >>> number_in("0.5"), number_in('{"default": 2, "loss": 1}'), number_in('"fast"')
    (0.5, 2.0, None)
    """
    try:
        number = float(text)  # nearly all are plain numbers, and this is the fast way
    except ValueError:
        number = _number_of(_decoded(text), _DEFAULT)
    return number if number - number == 0 else None  # neither infinite nor NaN


def lacking(text: str, names: Iterable[str]) -> str:
    """The first of some names under which a result has no finite number; empty if there is none.

    >>> lacking('{"default": 2, "size": 1}', ["default", "size", "cost"]), lacking("2", ["default"])
    ('cost', '')

    Args:
        text: of the result.
        names: ``default`` is the name of a result that is a number.
    """
    value = _decoded(text)
    for name in names:
        number = _number_of(value, name)
        if number - number != 0:
            return name
    return ""


def _decoded(text: str) -> Any:
    try:
        return json.loads(text, parse_constant=float)
    except (ValueError, RecursionError):
        return None


def _number_of(value: Any, name: str) -> float:
    """NaN if there is none."""
    if isinstance(value, dict):
        value = value.get(name)
    elif name != _DEFAULT:
        value = None
    if isinstance(value, int | float) and not isinstance(value, bool):
        try:
            return float(value)
        except OverflowError:
            pass
    return float("nan")
