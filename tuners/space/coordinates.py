"""Parameters as points of a cube, for models that count distances between them.

Each dimension of the space is an axis, those below branches included: a number stands at its
quantile, between 0 and 1, a choice at the place of its option. A coordinate of a branch that was
not chosen is NaN.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import Any

from tuners.space.lattice import value_at
from tuners.space.model import (
    Bell,
    BlockList,
    Branch,
    Choice,
    RandInt,
    Range,
    Single,
    Space,
    no_axis,
)
from tuners.space.sampling import branch_of, is_option, share_of

#: How far into the tails of a normal distribution points lie: 4.75 sigma.
_TAIL = 1e-6


@dataclass(frozen=True, slots=True)
class Axis:
    """One dimension. ``path``: names of parameters and branches, in turn. ``options``: how many a
    choice has; 0: a number."""

    path: tuple[str, ...]
    dimension: Single
    options: int = 0


def axes_of(space: Space, path: tuple[str, ...] = ()) -> tuple[Axis, ...]:
    """All axes of a space, in order.

    Raises:
        SpaceError: it has a list of blocks, which is no axis.
    """
    found: list[Axis] = []
    for name, dimension in space.dimensions:
        here = (*path, name)
        if isinstance(dimension, BlockList):
            raise no_axis(here)
        if not isinstance(dimension, Choice):
            found.append(Axis(here, dimension))
            continue
        found.append(Axis(here, dimension, len(dimension.options)))
        for option in dimension.options:
            if isinstance(option, Branch):
                found += axes_of(option.space, (*here, option.name))
    return tuple(found)


def locate(space: Space, axes: Sequence[Axis], parameters: Mapping[str, Any]) -> list[float]:
    """The point where parameters lie.

    Args:
        space: the search space.
        axes: of this space, from :func:`axes_of`.
        parameters: a value for each dimension; others are ignored.

    Raises:
        ValueError: one is missing, or is none that the space has.
    """
    there = dict(_places(space, parameters, ()))
    return [there.get(axis.path, math.nan) for axis in axes]


def _places(
    space: Space, parameters: Mapping[str, Any], path: tuple[str, ...]
) -> Iterator[tuple[tuple[str, ...], float]]:
    for name, dimension in space.dimensions:
        if name not in parameters:
            raise ValueError(f"there is no {name!r}")
        value, here = parameters[name], (*path, name)
        assert not isinstance(dimension, BlockList)  # such a space has no axes
        yield here, _coordinate(name, dimension, value)
        branch = branch_of(dimension, value)
        if branch is not None:
            yield from _places(branch.space, value, (*here, branch.name))


def _coordinate(name: str, dimension: Single, value: Any) -> float:
    if isinstance(dimension, Choice):
        for place, option in enumerate(dimension.options):
            if is_option(option, value):
                return place
        raise ValueError(f"{name} has no option {value!r}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{name} is no number: {value!r}")
    if isinstance(dimension, RandInt):
        share = share_of(dimension, value)
    elif isinstance(dimension, Range):
        share = _share(dimension, value)
    else:
        share = _below(dimension, value)
    if not 0 <= share <= 1:
        raise ValueError(f"{name} lies outside of its bounds: {value!r}")
    return share


def _share(dimension: Range, value: float) -> float:
    low, high = dimension.low, dimension.high
    if "log" in dimension.kind:
        if value <= 0:
            return -1.0
        low, high, value = math.log(low), math.log(high), math.log(value)
    return (value - low) / (high - low)


def _below(dimension: Bell, value: float) -> float:
    if "log" in dimension.kind:
        value = math.log(value) if value > 0 else -math.inf
    share = NormalDist(dimension.mu, dimension.sigma).cdf(value)
    return min(max(share, _TAIL), 1 - _TAIL)


def parameters_at(space: Space, axes: Sequence[Axis], point: Sequence[float]) -> dict[str, Any]:
    """The parameters at a point; coordinates of branches that it does not choose do not matter.

    Numbers are rounded and clipped as samples are.

    Args:
        space: the search space.
        axes: of this space, from :func:`axes_of`.
        point: a coordinate for each axis.
    """
    return _values(space, {axis.path: at for axis, at in zip(axes, point, strict=True)}, ())


def _values(
    space: Space, point: Mapping[tuple[str, ...], float], path: tuple[str, ...]
) -> dict[str, Any]:
    values: dict[str, Any] = {}
    for name, dimension in space.dimensions:
        here = (*path, name)
        at = point[here]
        assert not isinstance(dimension, BlockList)  # such a space has no axes
        if not isinstance(dimension, Choice):
            values[name] = value_at(dimension, min(max(at, _TAIL), 1 - _TAIL))
            continue
        option = dimension.options[int(at)]
        if isinstance(option, Branch):
            below = _values(option.space, point, (*here, option.name))
            values[name] = {"_name": option.name, **below}
        else:
            values[name] = copy.deepcopy(option)
    return values
