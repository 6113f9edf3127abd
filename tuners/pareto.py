"""Several objectives at once: dominance, crowding, and an archive.

Deb, Pratap, Agarwal, Meyarivan: A Fast and Elitist Multiobjective Genetic Algorithm: NSGA-II, IEEE
Transactions on Evolutionary Computation 6(2), 2002. Everything here takes points whose
coordinates are all the larger the better; ``Objectives`` makes such points of trials' results.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeAlias, TypeVar

from tuners import values
from tuners.errors import TunerArgumentError
from tuners.objectives import (
    EXAMPLES,
    Objective,
    bounded_ones,
    directions_of,
    number_of,
    read_objectives,
)

Point: TypeAlias = tuple[float, ...]
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Objectives:
    """The numbers that are read out of a final result, and the sense in which each is better.

    Args:
        modes: name of a number in the result → ``maximize`` or ``minimize``.
        bounded: those that have a bound, in their order; some of them may have no sense.
    """

    modes: tuple[tuple[str, values.OptimizeMode], ...]
    bounded: tuple[Objective, ...] = ()

    @classmethod
    def of(cls, modes: Mapping[str, str]) -> Objectives:
        """Reads a class argument such as ``{"default": "maximize", "size": "minimize <= 4096"}``.

        Raises:
            TunerArgumentError: no objective, or a text that is none.
        """
        try:
            known = read_objectives(modes)
        except ValueError as error:
            raise TunerArgumentError(f"{error}.", f"{EXAMPLES[0].upper()}{EXAMPLES[1:]}.") from None
        senses = tuple(directions_of(known).items())
        return cls(senses, bounded_ones(known))

    def point(self, value: Any) -> Point | None:
        """The coordinates of a result; None when one of them is NaN or infinite.

        Raises:
            ValueError: one of them is missing or no number.
        """
        numbers = [(self._number(value, name), mode) for name, mode in self.modes]
        coordinates = tuple(number if mode == "maximize" else -number for number, mode in numbers)
        return coordinates if all(map(math.isfinite, coordinates)) else None

    def beyond(self, value: Any) -> tuple[float, ...]:
        """How far a result is beyond each bound, in their order; 0 or less: it keeps it.

        Raises:
            ValueError: a number that is bounded is missing or no number.
        """
        return tuple(one.beyond(self._number(value, one.name)) for one in self.bounded)

    def _number(self, value: Any, name: str) -> float:
        number = number_of(value, name)
        if number is None:
            raise ValueError(
                f"a final result needs a number {name!r}, which is an objective; "
                f"this trial reported {value!r}"
            )
        return number


#: Stands for all that is farther from keeping its bounds.
FARTHEST = sys.float_info.max


def excess(beyond: Sequence[float]) -> float:
    """How far a result is beyond its bounds together; 0: it keeps them all, NaN counts as far.

    >>> excess((3.0, -1.0, 2.0))
    5.0
    """
    far = float(sum(one for one in beyond if not one <= 0))
    return far if far < FARTHEST else FARTHEST


def dominates(one: Point, other: Point) -> bool:
    """Whether ``one`` is nowhere worse and somewhere better."""
    return one != other and all(a >= b for a, b in zip(one, other, strict=True))


def fronts(points: Sequence[Point]) -> list[list[int]]:
    """Fast non-dominated sorting, section III-A: indices by front, the best front first.

    Costs O(m n²) for n points of m coordinates, and O(n²) memory.
    """
    below: list[list[int]] = [[] for _ in points]
    above = [0] * len(points)
    for one, this in enumerate(points):
        for other, that in enumerate(points):
            if dominates(this, that):
                below[one].append(other)
                above[other] += 1
    front = [one for one, count in enumerate(above) if not count]
    found = []
    while front:
        found.append(front)
        following = []
        for one in front:
            for other in below[one]:
                above[other] -= 1
                if not above[other]:
                    following.append(other)
        front = sorted(following)
    return found


def crowding(points: Sequence[Point]) -> list[float]:
    """Crowding distance of each point of one front, section III-B; infinite at the ends.

    The sum over coordinates of the distance between the two neighbours, each divided by the
    range of that coordinate.
    """
    distance = [0.0] * len(points)
    for axis in range(len(points[0]) if points else 0):
        order = sorted(range(len(points)), key=lambda one: points[one][axis])
        span = points[order[-1]][axis] - points[order[0]][axis]
        distance[order[0]] = distance[order[-1]] = math.inf
        if span > 0:
            for before, one, after in zip(order, order[1:], order[2:], strict=False):
                distance[one] += (points[after][axis] - points[before][axis]) / span
    return distance


def best_first(points: Sequence[Point], far: Sequence[float] = ()) -> list[int]:
    """All indices by the crowded comparison, section III-B: front first, then lonely ones.

    Args:
        points: the larger the better.
        far: how far each is beyond its bounds, see :func:`excess`; those that are beyond come
            last, the nearest first (section VI). Empty: all keep them.
    """
    kept = [one for one in range(len(points)) if not far or far[one] == 0]
    order: list[int] = []
    for front in fronts([points[one] for one in kept]):
        distance = dict(zip(front, crowding([points[kept[one]] for one in front]), strict=True))
        order += (kept[one] for one in sorted(front, key=lambda one: (-distance[one], one)))
    beyond = [one for one in range(len(points)) if far and far[one] != 0]
    return order + sorted(beyond, key=lambda one: (far[one], one))


class Archive(Generic[T]):
    """The non-dominated ones of all that were added, bounded. Not thread-safe by itself.

    Args:
        capacity: how many are kept at most; beyond, the one in the thickest crowd leaves.
    """

    def __init__(self, capacity: int = 100) -> None:
        self.capacity = values.whole("capacity", capacity, 1)
        self._members: list[tuple[Point, T]] = []

    def add(self, point: Point, member: T) -> bool:
        """Takes a member in unless it is dominated or has an equal; those it dominates leave.

        Returns:
            Whether it is a member now.
        """
        if any(kept == point or dominates(kept, point) for kept, _ in self._members):
            return False
        self._members = [each for each in self._members if not dominates(point, each[0])]
        self._members.append((point, member))
        if len(self._members) > self.capacity:
            distance = crowding([kept for kept, _ in self._members])
            gone = min(range(len(distance)), key=lambda one: (distance[one], -one))
            del self._members[gone]
            return gone != len(self._members)
        return True

    def members(self) -> list[tuple[Point, T]]:
        """All of them with their points, in order of the first coordinate, the best first."""
        return sorted(self._members, key=lambda each: each[0], reverse=True)

    def state(self) -> list[list[Any]]:
        """The members in the form that ``restore`` takes, for a tuner's ``state``: JSON if they
        are."""
        return [[list(point), member] for point, member in self._members]

    def restore(self, state: Sequence[Sequence[Any]]) -> None:
        """Takes over what ``state`` returned."""
        self._members = [(tuple(point), member) for point, member in state]

    def __len__(self) -> int:
        return len(self._members)
