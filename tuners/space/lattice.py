"""Enumerating a search space: all of a finite one, ever finer grids of a continuous one.

Each dimension is a list of points, each with the level at which it appears: choices and ranges of
integers have all theirs at level 0; a number has the middle of its distribution at level 0, the
quarters at level 1, the odd eighths at level 2, and so on, as in NNI's grid search. (Ranges of
more than 1024 integers are treated as numbers, so that nobody waits for a million integers.)
A list of blocks has a point for each combination of points of its blocks, and is refused where
those are many. Level *n* of the whole space is the combinations of points of levels up to *n* that
have at least one of level *n*.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from itertools import product
from statistics import NormalDist
from typing import Any, TypeGuard

from tuners.space.model import (
    Bell,
    BlockList,
    Branch,
    Choice,
    Dimension,
    RandInt,
    Range,
    Space,
    SpaceError,
)
from tuners.space.reading import parse
from tuners.space.sampling import integer_at, nothing_fits, quantise

# 2**21 - 1 points on one axis: no search gets there, and it bounds the hunt for a quantised value
# that a narrow bell practically never takes.
_FINEST_LEVEL = 20
_MOST_INTEGERS_AT_ONCE = 1024
_MOST_LISTS = 10_000  # of one list of blocks
_MOST_IN_VAIN = 100_000  # points that no constraint admits, one after another

_GOLDEN = (math.sqrt(5) - 1) / 2

_Point = tuple[int, Any]
"""The level at which a value appears, and the value."""


def grid(space: Any, *, spread: bool = False) -> Iterator[dict[str, Any]]:
    """Yields every combination once, coarse before fine, the last parameter fastest.

    Lazy, deterministic, and endless for practical purposes when a dimension is continuous. Points
    that the space's constraints exclude are left out.

    Args:
        space: a Space, or what :func:`parse` reads as one.
        spread: within a level, in an order that leaves no holes: a search that stops early has
            seen some of every value of each parameter.

    Raises:
        SpaceError: the constraints exclude 100,000 points in a row, or :func:`endless` names a
            list of blocks.
    """
    whole = parse(space)
    reason = endless(whole)
    if reason:
        raise SpaceError((), reason)
    in_vain = 0
    for level in range(_FINEST_LEVEL + 1):
        for values in _strewn(whole, level) if spread else _in_order(whole, level):
            if whole.admits(values):
                in_vain = 0
                yield copy.deepcopy(values)
            else:
                in_vain += 1
                if in_vain == _MOST_IN_VAIN:
                    raise nothing_fits(whole, f"{in_vain:,} points of the grid in a row")
        if not _may_refine(whole, level):
            return


def endless(space: Space) -> str:
    """The reason why a list of blocks cannot be enumerated; empty if all can."""
    for name, dimension in space.dimensions:
        if isinstance(dimension, Choice):
            branches = [option for option in dimension.options if isinstance(option, Branch)]
            below = next(filter(None, (endless(branch.space) for branch in branches)), "")
            if below:
                return below
        elif isinstance(dimension, BlockList):
            count = _count(dimension)
            if count is None or count > _MOST_LISTS:
                many = "numbers without steps" if count is None else "too many combinations"
                return f"{name!r} is a list of blocks with {many}, and a grid names all of them."
    return ""


def _in_order(space: Space, level: int) -> Iterator[dict[str, Any]]:
    return (values for born, values in _combinations(space, level) if born == level)


def size(space: Any) -> int | None:
    """Returns how many different parameter sets there are; None when without bound.

    Those that a constraint excludes are counted as well.
    """
    total = 1
    for _, dimension in parse(space).dimensions:
        count = _count(dimension)
        if count is None:
            return None
        total *= count
    return total


def _combinations(space: Space, level: int) -> Iterator[tuple[int, dict[str, Any]]]:
    names = [name for name, _ in space.dimensions]
    axes = [_points(dimension, level) for _, dimension in space.dimensions]
    for combination in product(*axes):
        born = max((point[0] for point in combination), default=0)
        yield born, {name: point[1] for name, point in zip(names, combination, strict=True)}


def _strewn(space: Space, level: int) -> Iterator[dict[str, Any]]:
    """The points of one level, with steps of the golden ratio of the number of all points up to it:
    a lattice of rank one, which covers any axis evenly."""
    names = [name for name, _ in space.dimensions]
    axes = [_points(dimension, level) for _, dimension in space.dimensions]
    total = math.prod(len(axis) for axis in axes)
    step = round(total * _GOLDEN) or 1
    while math.gcd(step, total) > 1:  # else it would come back before it has seen all
        step += 1
    rows = [(len(axis), axis) for axis in reversed(axes)]
    for turn in range(total):
        rest, newest, values = turn * step % total, 0, []
        for length, axis in rows:
            rest, place = divmod(rest, length)
            born, value = axis[place]
            newest = max(newest, born)
            values.append(value)
        if newest == level:  # up to half are older, and are passed by quickly
            yield dict(zip(names, reversed(values), strict=True))


def _points(dimension: Dimension | Space, level: int) -> list[_Point]:
    if isinstance(dimension, Space):
        return list(_combinations(dimension, level))
    if isinstance(dimension, BlockList):
        block = _points(dimension.block, level)
        return [
            (max((born for born, _ in blocks), default=0), [value for _, value in blocks])
            for length in range(dimension.low, dimension.high + 1)
            for blocks in product(block, repeat=length)
        ]
    if _is_short(dimension):
        return [(0, number) for number in range(dimension.low, dimension.high, dimension.step)]
    if isinstance(dimension, Choice):
        points: list[_Point] = []
        for option in dimension.options:
            if isinstance(option, Branch):
                points += [
                    (born, {"_name": option.name, **values})
                    for born, values in _combinations(option.space, level)
                ]
            else:
                points.append((0, option))
        return points
    seen: dict[float, int] = {}
    for born in range(level + 1):
        for odd in range(1, 2 ** (born + 1), 2):
            seen.setdefault(value_at(dimension, odd / 2 ** (born + 1)), born)
        if len(seen) == _count(dimension):
            break
    return [(born, value) for value, born in seen.items()]


def _is_short(dimension: Dimension) -> TypeGuard[RandInt]:
    return isinstance(dimension, RandInt) and dimension.count <= _MOST_INTEGERS_AT_ONCE


def value_at(dimension: RandInt | Range | Bell, share: float) -> float:
    """The value below which ``share`` of the distribution lies, rounded as samples are.

    ``share`` is below 1, and above 0 for normal numbers.
    """
    if isinstance(dimension, RandInt):
        return integer_at(dimension, share)
    if isinstance(dimension, Range):
        if "log" in dimension.kind:
            low, high = math.log(dimension.low), math.log(dimension.high)
            return quantise(dimension, math.exp(low + share * (high - low)))
        return quantise(dimension, dimension.low + share * (dimension.high - dimension.low))
    raw = NormalDist(dimension.mu, dimension.sigma).inv_cdf(share)
    return quantise(dimension, math.exp(raw) if "log" in dimension.kind else raw)


def _may_refine(space: Space, level: int) -> bool:
    """Whether a later level could bring a point that levels up to this one have not."""
    for _, dimension in space.dimensions:
        if isinstance(dimension, Choice):
            branches = [option for option in dimension.options if isinstance(option, Branch)]
            if any(_may_refine(branch.space, level) for branch in branches):
                return True
        elif not _is_short(dimension) and len(_points(dimension, level)) != _count(dimension):
            return True
    return False


def _count(dimension: Dimension | Space) -> int | None:
    if isinstance(dimension, Space):
        return size(dimension)
    if isinstance(dimension, BlockList):
        each, lengths = _count(dimension.block), range(dimension.low, dimension.high + 1)
        return None if each is None else sum(each**length for length in lengths)
    if isinstance(dimension, RandInt):
        return dimension.count
    if isinstance(dimension, Choice):
        counts = [
            size(option.space) if isinstance(option, Branch) else 1 for option in dimension.options
        ]
        return None if None in counts else sum(count for count in counts if count is not None)
    if isinstance(dimension, Range) and dimension.q is not None:
        # Multiples of q from the first to the last that rounding reaches from within the bounds
        # (clipping moves only the ends; a low of 0.5 q rounds to 0, all above it to 1).
        first = round(math.nextafter(dimension.low / dimension.q, math.inf))
        last = round(math.nextafter(dimension.high / dimension.q, -math.inf))
        return last - first + 1
    return None
