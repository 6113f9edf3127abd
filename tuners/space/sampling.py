"""Drawing parameters from a search space, and changing one of them."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tuners.space.model import Bell, Branch, Choice, Dimension, RandInt, Range, Space, parse

if TYPE_CHECKING:
    import numpy as np

# A quantised number may be drawn again this often before an unchanged one is accepted; continuous
# ones differ at the first draw.
_TRIES = 16


def sample(space: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Draws one set of parameters, as plain Python values.

    Args:
        space: a Space, or NNI's JSON.
        rng: the only source of randomness, so the same generator gives the same parameters.
    """
    return {name: draw(dimension, rng) for name, dimension in parse(space).dimensions}


def mutate(space: Any, parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Returns a copy of ``parameters`` with one dimension drawn anew.

    The dimension is chosen evenly among those that these parameters have, those inside the chosen
    branches of nested choices included; a nested choice that is drawn itself changes its branch
    and gets fresh parameters below it. The new value differs from the old where the dimension has
    another. Keys that the space does not know (``save_path`` and the like) are dropped, and those
    that are missing or no longer legal are drawn, so parameters outlive a change of the space.

    Args:
        space: a Space, or NNI's JSON.
        parameters: of one trial; not changed.
        rng: the only source of randomness.
    """
    whole = parse(space)
    child = conform(whole, parameters, rng)
    places = list(_places(whole, child))
    if places:
        values, name, dimension = places[int(rng.integers(len(places)))]
        values[name] = _draw_other(dimension, values[name], rng)
    return child


def draw(dimension: Dimension, rng: np.random.Generator) -> Any:
    """Draws one value of one dimension."""
    if isinstance(dimension, Choice):
        return _take(dimension.options[int(rng.integers(len(dimension.options)))], rng)
    if isinstance(dimension, RandInt):
        return int(rng.integers(dimension.low, dimension.high))
    return _number(dimension, rng)


def _number(dimension: Range | Bell, rng: np.random.Generator) -> float:
    if isinstance(dimension, Bell):
        raw = float(rng.normal(dimension.mu, dimension.sigma))
        return quantise(dimension, math.exp(raw) if "log" in dimension.kind else raw)
    if "log" in dimension.kind:
        raw = math.exp(rng.uniform(math.log(dimension.low), math.log(dimension.high)))
    else:
        raw = float(rng.uniform(dimension.low, dimension.high))
    return quantise(dimension, raw)


def quantise(dimension: Range | Bell, number: float) -> float:
    """Rounds to a multiple of q if the dimension has one; a Range also clips to its bounds."""
    if dimension.q is not None:
        number = round(number / dimension.q) * dimension.q
    if isinstance(dimension, Range):
        number = min(max(number, dimension.low), dimension.high)
    return float(number)


def _take(option: Any, rng: np.random.Generator) -> Any:
    if isinstance(option, Branch):
        return {"_name": option.name, **sample(option.space, rng)}
    return copy.deepcopy(option)  # so that a trial's parameters never alias the space


def _draw_other(dimension: Dimension, old: Any, rng: np.random.Generator) -> Any:
    if isinstance(dimension, Choice):
        others = [option for option in dimension.options if not is_option(option, old)]
        return _take(others[int(rng.integers(len(others)))], rng) if others else old
    for _ in range(_TRIES):
        new = draw(dimension, rng)
        if new != old:
            return new
    return old


def conform(
    space: Space, parameters: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Returns the legal ones of ``parameters``, copied; all others of the space are drawn.

    Args:
        space: the search space.
        parameters: of one trial; not changed. Names that the space does not know are dropped.
        rng: the only source of randomness.
    """
    conformed: dict[str, Any] = {}
    for name, dimension in space.dimensions:
        if name in parameters and _legal(dimension, parameters[name]):
            value = parameters[name]
            branch = branch_of(dimension, value)
            conformed[name] = (
                copy.deepcopy(value)
                if branch is None
                else {"_name": branch.name, **conform(branch.space, value, rng)}
            )
        else:
            conformed[name] = draw(dimension, rng)
    return conformed


def _places(
    space: Space, values: dict[str, Any]
) -> Iterator[tuple[dict[str, Any], str, Dimension]]:
    """Yields every dimension these values have, with the dict that holds its value."""
    for name, dimension in space.dimensions:
        yield values, name, dimension
        branch = branch_of(dimension, values[name])
        if branch is not None:
            yield from _places(branch.space, values[name])


def branch_of(dimension: Dimension, value: Any) -> Branch | None:
    """The branch of a nested choice that a value stands for; None for any other value."""
    if isinstance(dimension, Choice):
        for option in dimension.options:
            if isinstance(option, Branch) and is_option(option, value):
                return option
    return None


def is_option(option: Any, value: Any) -> bool:
    """Whether a value came from this option."""
    if isinstance(option, Branch):
        return isinstance(value, Mapping) and value.get("_name") == option.name
    # True == 1 in Python, but they are two options in JSON.
    return bool(option == value) and isinstance(option, bool) == isinstance(value, bool)


def _legal(dimension: Dimension, value: Any) -> bool:
    if isinstance(dimension, Choice):
        return any(is_option(option, value) for option in dimension.options)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(dimension, RandInt):
        return dimension.low <= value < dimension.high and int(value) == value
    if isinstance(dimension, Range):
        return dimension.low <= value <= dimension.high
    return True
