"""Moving every parameter a little, as population based training explores."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from tuners.space.model import Bell, Choice, Dimension, RandInt, Range, Space, parse
from tuners.space.sampling import branch_of, conform, draw, is_option, quantise

if TYPE_CHECKING:
    import numpy as np


def perturb(
    space: Any,
    parameters: Mapping[str, Any],
    rng: np.random.Generator,
    *,
    factor: float = 0.2,
    resample_probability: float = 0.0,
) -> dict[str, Any]:
    """Returns a copy of ``parameters`` in which each dimension moved, independently of the others.

    Jaderberg et al. (2017), "PBT for RL", explore: a number is multiplied by ``1 + factor`` or
    ``1 - factor`` with even odds (1.2 and 0.8 in the paper), or drawn anew from the space. What
    the paper leaves open: results are clipped to the bounds; an integer or a quantised number that
    rounds back to itself goes one step in that direction; a choice moves to the option before or
    after it in the order of the file and stays at the ends; of a nested choice the branch stays
    and what is below it moves. A zero that is not quantised can only be drawn anew.

    Args:
        space: a Space, or NNI's JSON.
        parameters: what is missing or illegal is drawn, what the space does not know is dropped.
        rng: the only source of randomness.
        factor: relative width of a move.
        resample_probability: for each dimension, how likely it is to be drawn anew instead.
    """
    whole = parse(space)
    child = conform(whole, parameters, rng)
    _move_all(whole, child, rng, factor, resample_probability)
    return child


def _move_all(
    space: Space,
    values: dict[str, Any],
    rng: np.random.Generator,
    factor: float,
    resample_probability: float,
) -> None:
    for name, dimension in space.dimensions:
        branch = branch_of(dimension, values[name])
        if rng.random() < resample_probability:
            values[name] = draw(dimension, rng)
        elif branch is not None:
            _move_all(branch.space, values[name], rng, factor, resample_probability)
        else:
            away = bool(rng.random() < 0.5)
            values[name] = _move(dimension, values[name], away, factor)


def _move(dimension: Dimension, value: Any, away: bool, factor: float) -> Any:
    """``away``: by the factor above 1, away from zero; else towards it."""
    if isinstance(dimension, Choice):
        return _neighbour(dimension, value, 1 if away else -1)
    moved = value * (1 + factor if away else 1 - factor)
    if isinstance(dimension, RandInt):
        whole = round(moved)
        if whole == value:
            whole += _direction(value, away)
        return int(min(max(whole, dimension.low), dimension.high - 1))
    return _quantised(dimension, value, moved, away)


def _quantised(dimension: Range | Bell, value: float, moved: float, away: bool) -> float:
    number = quantise(dimension, moved)
    if dimension.q is not None and number == quantise(dimension, value):
        number = quantise(dimension, value + _direction(value, away) * dimension.q)
    return number


def _direction(value: float, away: bool) -> int:
    return 1 if away == (value >= 0) else -1


def _neighbour(choice: Choice, value: Any, step: int) -> Any:
    place = next(n for n, option in enumerate(choice.options) if is_option(option, value))
    beside = choice.options[min(max(place + step, 0), len(choice.options) - 1)]
    # A branch beside a plain option has parameters of its own to draw; only resampling does that.
    return value if isinstance(beside, Mapping) or hasattr(beside, "space") else beside
