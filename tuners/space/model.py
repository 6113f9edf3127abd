"""A search space as frozen values, and reading it from NNI's JSON."""

from __future__ import annotations

import difflib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

RangeKind = Literal["uniform", "quniform", "loguniform", "qloguniform"]
BellKind = Literal["normal", "qnormal", "lognormal", "qlognormal"]

RANGES: tuple[RangeKind, ...] = ("uniform", "quniform", "loguniform", "qloguniform")
BELLS: tuple[BellKind, ...] = ("normal", "qnormal", "lognormal", "qlognormal")
TYPES = ("choice", "randint", *RANGES, *BELLS)


class SpaceError(ValueError):
    """The search space cannot be read.

    Attributes:
        path: keys from the top to the offending place, e.g. ``("conv", "_value", "1", "size")``.
        hint: what to write instead, or empty.
    """

    def __init__(self, path: tuple[str, ...], message: str, hint: str = "") -> None:
        self.path = path
        self.message = message
        self.hint = hint
        where = ".".join(path)
        super().__init__(f"search space{': ' + where if where else ''}: {message} {hint}".strip())


@dataclass(frozen=True, slots=True)
class Branch:
    """An option of a nested choice: a name, and parameters that exist only below it."""

    name: str
    space: Space


@dataclass(frozen=True, slots=True)
class Choice:
    """One of ``options``, each a plain JSON value or a Branch."""

    options: tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class RandInt:
    """An integer, ``low <= n < high``."""

    low: int
    high: int


@dataclass(frozen=True, slots=True)
class Range:
    """A number between ``low`` and ``high``; the ``q`` kinds are rounded to multiples of it."""

    kind: RangeKind
    low: float
    high: float
    q: float | None


@dataclass(frozen=True, slots=True)
class Bell:
    """An unbounded normal number, or (``log…``) one whose logarithm is normal."""

    kind: BellKind
    mu: float
    sigma: float
    q: float | None


Dimension: TypeAlias = Choice | RandInt | Range | Bell


@dataclass(frozen=True, slots=True)
class Space:
    """Parameters by name, in the order of the file."""

    dimensions: tuple[tuple[str, Dimension], ...]


def parse(search_space: Any) -> Space:
    """Reads NNI's search-space JSON; a parsed Space passes through.

    An empty object and NNI's empty string are the empty space.

    Raises:
        SpaceError: with the keys that lead to the place and what is wrong there.
    """
    if isinstance(search_space, Space):
        return search_space
    if search_space in ("", None):
        return Space(())
    return _parse_object(search_space, ())


def _parse_object(entries: Any, path: tuple[str, ...]) -> Space:
    if not isinstance(entries, Mapping):
        raise SpaceError(path, f"expected an object of parameters, found {_kind(entries)}.")
    return Space(
        tuple(
            (str(name), _parse_dimension(entry, (*path, str(name))))
            for name, entry in entries.items()
            if name != "_name"
        )
    )


def _parse_dimension(entry: Any, path: tuple[str, ...]) -> Dimension:
    if not isinstance(entry, Mapping) or "_type" not in entry or "_value" not in entry:
        raise SpaceError(
            path,
            f"expected an object with '_type' and '_value', found {_kind(entry)}.",
            'Write for instance {"_type": "choice", "_value": [1, 2]}.',
        )
    kind, value = entry["_type"], entry["_value"]
    if kind not in TYPES:
        near = difflib.get_close_matches(str(kind), TYPES, n=1)
        hint = f"Did you mean {near[0]!r}?" if near else f"Known types: {', '.join(TYPES)}."
        raise SpaceError((*path, "_type"), f"unknown type {kind!r}.", hint)
    at = (*path, "_value")
    if not isinstance(value, list | tuple):
        raise SpaceError(at, f"expected a list, found {_kind(value)}.")
    if kind == "choice":
        return _parse_choice(value, at)
    if kind == "randint":
        low, high = _numbers(value, 2, "[low, high]", at)
        if int(low) != low or int(high) != high:
            raise SpaceError(at, f"randint takes integers, found {list(value)}.")
        _ordered(low, high, at)
        return RandInt(int(low), int(high))
    if kind in RANGES:
        return _parse_range(kind, value, at)
    return _parse_bell(kind, value, at)


def _parse_choice(options: Any, path: tuple[str, ...]) -> Choice:
    if not options:
        raise SpaceError(path, "a choice needs at least one option.")
    parsed: list[Any] = []
    for index, option in enumerate(options):
        if isinstance(option, Mapping) and "_name" in option:
            branch = Branch(str(option["_name"]), _parse_object(option, (*path, str(index))))
            if any(isinstance(other, Branch) and other.name == branch.name for other in parsed):
                raise SpaceError((*path, str(index)), f"two branches are named {branch.name!r}.")
            parsed.append(branch)
        else:
            parsed.append(option)
    return Choice(tuple(parsed))


def _parse_range(kind: RangeKind, value: Any, path: tuple[str, ...]) -> Range | Choice:
    """A range; where both bounds are one number (NNI's files may have that), that number."""
    if kind.startswith("q"):
        low, high, q = _numbers(value, 3, "[low, high, q]", path)
        _positive(q, "q", path)
    else:
        (low, high), q = _numbers(value, 2, "[low, high]", path), None
    if low != high:
        _ordered(low, high, path)
    if "log" in kind and low <= 0:
        raise SpaceError(path, f"{kind} needs low > 0, found {low:g}.")
    if low == high:
        return Choice((float(low),))
    return Range(kind, low, high, q)


def _parse_bell(kind: BellKind, value: Any, path: tuple[str, ...]) -> Bell:
    if kind.startswith("q"):
        mu, sigma, q = _numbers(value, 3, "[mu, sigma, q]", path)
        _positive(q, "q", path)
    else:
        (mu, sigma), q = _numbers(value, 2, "[mu, sigma]", path), None
    _positive(sigma, "sigma", path)
    return Bell(kind, mu, sigma, q)


def _numbers(value: Any, count: int, form: str, path: tuple[str, ...]) -> list[float]:
    if len(value) != count:
        raise SpaceError(path, f"expected {form}, found {len(value)} values.")
    for number in value:
        plain = isinstance(number, int | float) and not isinstance(number, bool)
        if not plain or not math.isfinite(number):
            raise SpaceError(path, f"expected {form} with finite numbers, found {number!r}.")
    return list(value)


def _ordered(low: float, high: float, path: tuple[str, ...]) -> None:
    if not high > low:
        raise SpaceError(path, f"high must be above low, found low {low:g} and high {high:g}.")


def _positive(number: float, name: str, path: tuple[str, ...]) -> None:
    if not number > 0:
        raise SpaceError(path, f"{name} must be above 0, found {number:g}.")


def _kind(value: Any) -> str:
    names = {dict: "an object", list: "a list", str: "text", type(None): "nothing"}
    return names.get(type(value), f"{value!r}")
