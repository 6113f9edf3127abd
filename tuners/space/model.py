"""A search space as frozen values, and the error at one place of its JSON."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from tuners.plain_json import JsonPath, written_path

RangeKind = Literal["uniform", "quniform", "loguniform", "qloguniform"]
BellKind = Literal["normal", "qnormal", "lognormal", "qlognormal"]

RANGES: tuple[RangeKind, ...] = ("uniform", "quniform", "loguniform", "qloguniform")
BELLS: tuple[BellKind, ...] = ("normal", "qnormal", "lognormal", "qlognormal")
TYPES = ("choice", "randint", *RANGES, *BELLS)


class SpaceError(ValueError):
    """The search space cannot be read.

    Attributes:
        path: keys and indexes from the top to the place, e.g. ``("conv", "_value", 1, "size")``.
        message: what is wrong there, to stand behind the place.
        hint: what to write instead, or empty.
    """

    def __init__(self, path: JsonPath, message: str, hint: str = "") -> None:
        self.path = path
        self.message = message
        self.hint = hint
        sentence = f"{written_path(path)} {message}".strip() + (f" ({hint})" if hint else "")
        super().__init__(f"search space: {sentence}")


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
