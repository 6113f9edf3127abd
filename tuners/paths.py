"""Paths through a supernet, and breeding one generation of them from the best before it.

A path takes one option at each choice block; here it is a tuple of the options' numbers. Pure
functions of a generator, for the tuner ``SPOS``.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from tuners.space.model import Branch, Choice, RandInt, Space
from tuners.space.sampling import is_option

if TYPE_CHECKING:
    import numpy as np

Path: TypeAlias = tuple[int, ...]
Admits: TypeAlias = Callable[[Path], bool]

#: How often another path is drawn in place of one that is refused or there already.
_TRIES = 200


@dataclass(frozen=True, slots=True)
class Blocks:
    """The choice blocks of a supernet: name and options each, in the order of the file."""

    options: tuple[tuple[str, Sequence[Any]], ...]

    @classmethod
    def of(cls, space: Space) -> Blocks:
        """Reads a search space that :func:`refusal` has nothing against."""
        found: list[tuple[str, Sequence[Any]]] = []
        for name, dimension in space.dimensions:
            if isinstance(dimension, Choice):
                found.append((name, dimension.options))
            elif isinstance(dimension, RandInt):
                found.append((name, range(dimension.low, dimension.high, dimension.step)))
        return cls(tuple(found))

    def parameters(self, path: Path) -> dict[str, Any]:
        """A path as the parameters of a trial: the option at each block."""
        pairs = zip(self.options, path, strict=True)
        return {name: copy.deepcopy(options[number]) for (name, options), number in pairs}

    def path(self, parameters: Mapping[str, Any]) -> Path | None:
        """The path that some parameters name; None when a block or its option is not known."""
        found = []
        for name, options in self.options:
            if name not in parameters:
                return None
            value = parameters[name]
            number = next((n for n, one in enumerate(options) if is_option(one, value)), None)
            if number is None:
                return None
            found.append(number)
        return tuple(found)

    # ---- the three ways to a new path ---------------------------------------------------------

    def draw(self, rng: np.random.Generator) -> Path:
        """One path, evenly."""
        return tuple(int(rng.integers(len(options))) for _, options in self.options)

    def cross(self, one: Path, other: Path, rng: np.random.Generator) -> Path:
        """A path that has each block from either parent, with even odds.

        Args:
            one: a parent.
            other: the other parent.
            rng: the only source of randomness.
        """
        of_one = rng.random(len(one)) < 0.5
        return tuple(a if here else b for a, b, here in zip(one, other, of_one, strict=True))

    def mutate(self, one: Path, probability: float, rng: np.random.Generator) -> Path:
        """A path in which some blocks were drawn anew.

        Args:
            one: the parent.
            probability: of each block to be drawn anew.
            rng: the only source of randomness.
        """
        again = rng.random(len(one)) < probability
        fresh = self.draw(rng)
        return tuple(new if here else a for a, new, here in zip(one, fresh, again, strict=True))


def refusal(space: Space) -> str:
    """The reason why a search space is none of paths; empty if it is one."""
    if not space.dimensions:
        return "the search space is empty, and a supernet without choices has one path only."
    for name, dimension in space.dimensions:
        if isinstance(dimension, Choice):
            if any(isinstance(option, Branch) for option in dimension.options):
                return f"{name!r} is a nested choice: name the options of a choice block plainly."
        elif not isinstance(dimension, RandInt):
            return (
                f"{name!r} is no choice between a few: paths do not train, so that what the "
                "supernet trains by goes into the argument 'supernet'."
            )
    return ""


def generation(
    blocks: Blocks,
    best: Sequence[Path],
    admits: Admits,
    rng: np.random.Generator,
    *,
    size: int,
    crossovers: int,
    probability: float,
) -> list[Path]:
    """One pass of Guo et al. (2020), Algorithm 1: the paths to evaluate next.

    ``crossovers`` of them have two random ones of the best as parents, the others are mutations of
    a random one of the best; either is drawn again until the constraint admits it. What the paper
    leaves open: a path that is among the best, or that this generation has already, is drawn again
    as well; what cannot be bred so after a bounded number of tries is drawn evenly, as the first
    generation is. Where there are too few paths some come twice.

    Args:
        blocks: of the supernet.
        best: the Top-k so far; empty for the first generation.
        admits: the constraint.
        rng: the only source of randomness.
        size: P of the paper.
        crossovers: n of the paper.
        probability: of a mutation, for each block.

    Returns:
        ``size`` paths; none at all if the constraint admits nothing that was tried.
    """
    found: dict[Path, None] = {}

    def fill(count: int, fresh: Callable[[], Path]) -> None:
        for _ in range(_TRIES * max(0, count - len(found))):
            if len(found) >= count:
                return
            path = fresh()
            if path not in found and path not in best and admits(path):
                found[path] = None

    def pick() -> Path:
        return best[int(rng.integers(len(best)))]

    if best:
        fill(crossovers, lambda: blocks.cross(pick(), pick(), rng))
        fill(size, lambda: blocks.mutate(pick(), probability, rng))
    fill(size, lambda: blocks.draw(rng))
    paths = list(found) or [path for path in best if admits(path)]
    return [paths[at % len(paths)] for at in range(size)] if paths else []
