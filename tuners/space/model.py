"""A search space as frozen values, and the error at one place of its JSON.

Each value is shown as the short form that a file would have: ``repr`` of one is read back as it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from trial_runtime.errors import BequeathError
from tuners.plain_json import JsonPath, written_path

if TYPE_CHECKING:
    from tuners.space.constraints import Constraint

RangeKind = Literal["uniform", "quniform", "loguniform", "qloguniform"]
BellKind = Literal["normal", "qnormal", "lognormal", "qlognormal"]

RANGES: tuple[RangeKind, ...] = ("uniform", "quniform", "loguniform", "qloguniform")
BELLS: tuple[BellKind, ...] = ("normal", "qnormal", "lognormal", "qlognormal")
TYPES = ("choice", "randint", *RANGES, *BELLS)
"""NNI's types."""
OWN_INTEGERS = ("qrandint", "lograndint")
"""Types of ours: integers in steps, and integers even by their logarithm."""
BLOCKS = "blocks"
"""The type of ours for lists of blocks."""
OWN_TYPES = (*OWN_INTEGERS, BLOCKS)
"""All types of ours."""
INTEGERS = ("randint", *OWN_INTEGERS)
"""Types of whole numbers below an upper bound."""

CONSTRAINTS = "_constraints"
"""The key of a search space that holds conditions between its parameters."""

MOST_BLOCKS = 1_000
"""Blocks that one parameter may have, those within blocks included."""


class SpaceError(BequeathError, ValueError):
    """The search space cannot be read.

    Attributes:
        path: keys and indexes from the top to the place, e.g. ``("conv", "_value", 1, "size")``.
        message: what is wrong there, to stand behind the place.
        hint: what to write instead, or empty.
    """

    def __init__(self, path: JsonPath, message: str, hint: str = "") -> None:
        super().__init__(message, hint=hint, where=written_path(path))
        self.path = path

    @property
    def sentence(self) -> str:
        """Place, message and hint in one."""
        return f"{self.where} {self.message}".strip() + (f" ({self.hint})" if self.hint else "")

    def __str__(self) -> str:
        return f"search space: {self.sentence}"


@dataclass(frozen=True, slots=True, repr=False)
class Branch:
    """An option of a nested choice: a name, and parameters that exist only below it."""

    name: str
    space: Space

    def __repr__(self) -> str:
        inner = ", ".join([f"'_name': {self.name!r}", *_items(self.space)])
        return f"{{{inner}}}"


@dataclass(frozen=True, slots=True, repr=False)
class Choice:
    """One of ``options``, each a plain JSON value or a Branch."""

    options: tuple[Any, ...]

    def __repr__(self) -> str:
        options = self.options
        if options and all(isinstance(option, Branch) for option in options):
            branches = (f"{one.name!r}: {{{', '.join(_items(one.space))}}}" for one in options)
            return f"choice({{{', '.join(branches)}}})"
        shown = ", ".join(map(repr, options))
        # One list or mapping alone would be taken for all options.
        alone = len(options) == 1 and isinstance(options[0], list | tuple | dict)
        return f"choice([{shown}])" if alone else f"choice({shown})"


@dataclass(frozen=True, slots=True, repr=False)
class RandInt:
    """An integer, ``low <= n < high``: ``low`` and any number of steps more.

    With ``log`` all powers are as likely: as many draws between 1 and 10 as between 10 and 100.
    """

    low: int
    high: int
    step: int = 1
    log: bool = False

    @property
    def count(self) -> int:
        """The number of integers."""
        return (self.high - 1 - self.low) // self.step + 1

    @property
    def last(self) -> int:
        """The largest one."""
        return self.low + (self.count - 1) * self.step

    def __repr__(self) -> str:
        step = f", {self.step}" if self.step != 1 else ""
        return f"int({self.low}, {self.last}{step}{', log=True' if self.log else ''})"


@dataclass(frozen=True, slots=True, repr=False)
class Range:
    """A number between ``low`` and ``high``; the ``q`` kinds are rounded to multiples of it."""

    kind: RangeKind
    low: float
    high: float
    q: float | None

    def __repr__(self) -> str:
        return _call(self.kind, self.low, self.high, self.q)


@dataclass(frozen=True, slots=True, repr=False)
class Bell:
    """An unbounded normal number, or (``log…``) one whose logarithm is normal."""

    kind: BellKind
    mu: float
    sigma: float
    q: float | None

    def __repr__(self) -> str:
        return _call(self.kind, self.mu, self.sigma, self.q)


@dataclass(frozen=True, slots=True, repr=False)
class BlockList:
    """A list of ``low`` to ``high`` blocks, such as the layers of a network.

    Each block is a value of one dimension, or has the parameters of a small space.
    """

    low: int
    high: int
    block: Dimension | Space

    @property
    def most(self) -> int:
        """The most blocks that there can be, those within blocks included."""
        return self.high * (1 + _most_within(self.block))

    def __repr__(self) -> str:
        return f"{BLOCKS}({self.low}, {self.high}, {self.block!r})"


Single: TypeAlias = Choice | RandInt | Range | Bell
"""A parameter that has one value, and so a place on an axis."""
Dimension: TypeAlias = Choice | RandInt | Range | Bell | BlockList


@dataclass(frozen=True, slots=True, repr=False)
class Space:
    """Parameters by name, in the order of the file, and what has to hold between them."""

    dimensions: tuple[tuple[str, Dimension], ...]
    constraints: tuple[Constraint, ...] = ()

    def admits(self, parameters: Mapping[str, Any]) -> bool:
        """Whether all constraints hold for these parameters."""
        return all(each.holds(parameters) for each in self.constraints)

    def __repr__(self) -> str:
        items = list(_items(self))
        if self.constraints:
            items.append(f"{CONSTRAINTS!r}: {[each.text for each in self.constraints]!r}")
        return f"{{{', '.join(items)}}}"


def no_axis(path: JsonPath) -> SpaceError:
    """The error for a list of blocks where a model needs an axis; ``path``: of the parameter."""
    return SpaceError(
        path,
        "is a list of blocks, and this tuner models single values",
        "take RegularizedEvolution, PBT, ASHA, Hyperband or Random for lists",
    )


def _most_within(one: Dimension | Space) -> int:
    match one:
        case Space(dimensions=dimensions):
            return sum(_most_within(each) for _, each in dimensions)
        case BlockList():
            return one.most
        case Choice(options=options):
            branches = [option.space for option in options if isinstance(option, Branch)]
            return max(map(_most_within, branches), default=0)
        case _:
            return 0


def _call(name: str, *numbers: float | None) -> str:
    return f"{name}({', '.join(repr(each) for each in numbers if each is not None)})"


def _items(space: Space) -> Iterator[str]:
    for name, dimension in space.dimensions:
        yield f"{name!r}: {dimension!r}"
