"""Numbers in results: JSON texts, of which the core reads nothing else."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

_DEFAULT = "default"


def number_in(text: str, name: str = _DEFAULT) -> float | None:
    """The number in a result: itself, or what a mapping calls ``default``, or by another name. None
    if there is none that is finite.

    >>> number_in("0.5"), number_in('{"default": 2, "loss": 1}'), number_in('"fast"')
    (0.5, 2.0, None)
    """
    try:
        number = float(text)  # nearly all are plain numbers, and this is the fast way
    except ValueError:
        number = _number_of(_decoded(text), name)
    else:
        if name != _DEFAULT:
            return None
    return number if number - number == 0 else None  # neither infinite nor NaN


def keeps(text: str, at_most: Mapping[str, float], at_least: Mapping[str, float]) -> bool:
    """Whether a result keeps its bounds; one that lacks a number with a bound does not.

    >>> keeps('{"default": 2, "size": 1}', {"size": 4}, {}), keeps("2", {}, {"default": 3})
    (True, False)

    Args:
        text: of the result.
        at_most: the most that numbers of it may be, by name.
        at_least: the least.
    """
    if not at_most and not at_least:
        return True
    value = _decoded(text)
    return all(_number_of(value, name) <= most for name, most in at_most.items()) and all(
        _number_of(value, name) >= least for name, least in at_least.items()
    )


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
            return float("inf" if value > 0 else "-inf")
    return float("nan")
