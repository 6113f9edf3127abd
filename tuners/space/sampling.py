"""Drawing parameters from a search space, changing one of them, and moving all a little."""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tuners.space.blocks import changed
from tuners.space.model import (
    CONSTRAINTS,
    Bell,
    BlockList,
    Branch,
    Choice,
    Dimension,
    RandInt,
    Range,
    Single,
    Space,
    SpaceError,
)
from tuners.space.reading import parse

if TYPE_CHECKING:
    import numpy as np

# A quantised number may be drawn again this often before an unchanged one is accepted; continuous
# ones differ at the first draw.
_TRIES = 16

#: Draws of a whole set of parameters before the constraints count as leaving nothing, and changes
#: of one set before it is drawn anew.
_MOST_DRAWS = 5_000
_MOST_CHANGES = 100


def sample(space: Any, rng: np.random.Generator) -> dict[str, Any]:
    """Draws one set of parameters, as plain Python values; again until all constraints hold.

    Args:
        space: a Space, or what :func:`parse` reads as one.
        rng: the only source of randomness, so the same generator gives the same parameters.

    Raises:
        SpaceError: no constraint held for any of 5,000 draws.
    """
    whole = parse(space)
    for _ in range(_MOST_DRAWS):
        drawn = {name: draw(dimension, rng) for name, dimension in whole.dimensions}
        if whole.admits(drawn):
            return drawn
    raise nothing_fits(whole, f"{_MOST_DRAWS:,} draws")


def nothing_fits(space: Space, tried: str) -> SpaceError:
    """The error for constraints that leave nothing; ``tried``: what was tried in vain."""
    texts = " and ".join(repr(each.text) for each in space.constraints)
    return SpaceError(
        (CONSTRAINTS,),
        f"leaves nothing: none of {tried} meets {texts}",
        "loosen them, or narrow the bounds of their parameters",
    )


def fitting(
    space: Space, parameters: Mapping[str, Any], rng: np.random.Generator
) -> Mapping[str, Any]:
    """Returns parameters that meet the constraints: these, or a fresh draw.

    Args:
        space: the search space.
        parameters: values of its dimensions.
        rng: for the draw.

    Raises:
        SpaceError: as :func:`sample`.
    """
    return parameters if space.admits(parameters) else sample(space, rng)


def mutate(space: Any, parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Returns a copy of ``parameters`` with one dimension drawn anew.

    The dimension is chosen evenly among those that these parameters have, those inside the chosen
    branches of nested choices included; a nested choice that is drawn itself changes its branch
    and gets fresh parameters below it. A list of blocks is one dimension and gets one change: see
    :mod:`tuners.space.blocks`. The new value differs from the old where the dimension has another.
    Keys that the space does not know (``save_path`` and the like) are dropped, and those that are
    missing or no longer legal are drawn, so parameters outlive a change of the space.
    Where no change of one dimension meets the constraints, all are drawn anew.

    Args:
        space: a Space, or what :func:`parse` reads as one.
        parameters: of one trial; not changed.
        rng: the only source of randomness.
    """
    whole = parse(space)
    for _ in range(_MOST_CHANGES):
        child = _mutated(whole, parameters, rng)
        if whole.admits(child):
            return child
    return sample(whole, rng)


def _mutated(
    whole: Space, parameters: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    child = conform(whole, parameters, rng)
    places = list(_places(whole, child))
    if places:
        values, name, dimension = places[int(rng.integers(len(places)))]
        values[name] = _draw_other(dimension, values[name], rng)
    return child


def draw(dimension: Dimension | Space, rng: np.random.Generator) -> Any:
    """Draws one value of one dimension, or all parameters of a space.

    Of a list of blocks every length is as likely, and each block is drawn by itself.
    """
    if isinstance(dimension, Space):
        return sample(dimension, rng)
    if isinstance(dimension, BlockList):
        length = int(rng.integers(dimension.low, dimension.high + 1))
        return [draw(dimension.block, rng) for _ in range(length)]
    if isinstance(dimension, Choice):
        return _take(dimension.options[int(rng.integers(len(dimension.options)))], rng)
    if isinstance(dimension, RandInt):
        if dimension.log:
            return integer_at(dimension, float(rng.random()))
        if dimension.step == 1:
            return int(rng.integers(dimension.low, dimension.high))
        return dimension.low + dimension.step * int(rng.integers(dimension.count))
    return _number(dimension, rng)


def integer_at(dimension: RandInt, share: float) -> int:
    """The integer below which ``share`` (from 0, below 1) of the distribution lies."""
    if dimension.log:
        low, high = math.log(dimension.low), math.log(dimension.high)
        number = math.floor(math.exp(low + share * (high - low)))
        return min(max(number, dimension.low), dimension.last)
    return dimension.low + int(share * dimension.count) * dimension.step


def share_of(dimension: RandInt, number: float) -> float:
    """The middle of the share of the distribution that an integer has, see :func:`integer_at`."""
    if dimension.log:
        if number <= 0:
            return -1.0
        low, high = math.log(dimension.low), math.log(dimension.high)
        return ((math.log(number) + math.log(number + 1)) / 2 - low) / (high - low)
    return ((number - dimension.low) / dimension.step + 0.5) / dimension.count


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
    if isinstance(dimension, BlockList):
        return _changed(dimension, old, rng)
    if isinstance(dimension, Choice):
        others = [option for option in dimension.options if not is_option(option, old)]
        return _take(others[int(rng.integers(len(others)))], rng) if others else old
    for _ in range(_TRIES):
        new = draw(dimension, rng)
        if new != old:
            return new
    return old


def _changed(dimension: BlockList, old: list[Any], rng: np.random.Generator) -> list[Any]:
    """A list of blocks with one change."""
    block = dimension.block

    def fresh() -> Any:
        return draw(block, rng)

    def other(one: Any) -> Any:
        if isinstance(block, Space):
            return _mutated(block, one, rng)
        return _mutated(Space((("", block),)), {"": one}, rng)[""]

    return changed(dimension, old, rng, fresh, other)


def conform(
    space: Space, parameters: Mapping[str, Any], rng: np.random.Generator
) -> dict[str, Any]:
    """Returns the legal ones of ``parameters``, copied; all others of the space are drawn.

    Args:
        space: the search space.
        parameters: of one trial; not changed. Names that the space does not know are dropped.
        rng: the only source of randomness.
    """
    return {
        name: (
            _conformed(dimension, parameters[name], rng)
            if name in parameters
            else draw(dimension, rng)
        )
        for name, dimension in space.dimensions
    }


def _conformed(dimension: Dimension | Space, value: Any, rng: np.random.Generator) -> Any:
    """Keeps what is legal of a value, copied, and draws the rest. A list keeps as many blocks as
    it may have."""
    if isinstance(dimension, BlockList) and isinstance(value, list | tuple):
        kept = [_conformed(dimension.block, one, rng) for one in value[: dimension.high]]
        return kept + [draw(dimension.block, rng) for _ in range(dimension.low - len(kept))]
    if isinstance(dimension, Space):
        return conform(dimension, value if isinstance(value, Mapping) else {}, rng)
    if not is_legal(dimension, value):
        return draw(dimension, rng)
    branch = branch_of(dimension, value)
    if branch is None:
        return copy.deepcopy(value)
    return {"_name": branch.name, **conform(branch.space, value, rng)}


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


def is_legal(dimension: Dimension, value: Any) -> bool:
    """Whether a parameter may have a value. Steps of a quantised range are not looked at, and of a
    nested choice the name alone, but not within blocks: these are legal as a whole."""
    if isinstance(dimension, Choice):
        return any(is_option(option, value) for option in dimension.options)
    if isinstance(dimension, BlockList):
        fits = isinstance(value, list | tuple) and dimension.low <= len(value) <= dimension.high
        return fits and all(_is_whole(dimension.block, one) for one in value)
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(dimension, RandInt):
        inside = dimension.low <= value < dimension.high and int(value) == value
        return inside and (value - dimension.low) % dimension.step == 0
    if isinstance(dimension, Range):
        return dimension.low <= value <= dimension.high
    return -math.inf < value < math.inf


def _is_whole(block: Dimension | Space, value: Any) -> bool:
    """Whether a value is legal with all that is below it."""
    if isinstance(block, Space):
        own = dict(block.dimensions)
        named = isinstance(value, Mapping) and value.keys() == own.keys()
        return named and all(_is_whole(one, value[name]) for name, one in own.items())
    branch = branch_of(block, value)
    if branch is None:
        return is_legal(block, value)
    return _is_whole(branch.space, {name: value[name] for name in value if name != "_name"})


def as_spelt(dimension: Dimension | Space, value: Any) -> Any:
    """Returns a legal value as the space spells it: 2.0 is 2 for an integer or the option 2."""
    if isinstance(dimension, Space):
        own = dict(dimension.dimensions)
        return {k: as_spelt(own[k], one) if k in own else one for k, one in value.items()}
    if isinstance(dimension, BlockList):
        return [as_spelt(dimension.block, one) for one in value]
    if isinstance(dimension, RandInt):
        return int(value)
    branch = branch_of(dimension, value)
    if branch is not None:
        return as_spelt(branch.space, value)
    if isinstance(dimension, Choice):
        found = [option for option in dimension.options if is_option(option, value)]
        if found and repr(value) not in map(repr, found):
            return copy.deepcopy(found[0])
    return value


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
    and what is below it moves; a list of blocks gets one change, as by :func:`mutate`. A zero that
    is not quantised can only be drawn anew. Where no move meets the constraints, all are drawn
    anew.

    Args:
        space: a Space, or what :func:`parse` reads as one.
        parameters: what is missing or illegal is drawn, what the space does not know is dropped.
        rng: the only source of randomness.
        factor: relative width of a move.
        resample_probability: for each dimension, how likely it is to be drawn anew instead.
    """
    whole = parse(space)
    for _ in range(_MOST_CHANGES):
        child = conform(whole, parameters, rng)
        _move_all(whole, child, rng, factor, resample_probability)
        if whole.admits(child):
            return child
    return sample(whole, rng)


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
        elif isinstance(dimension, BlockList):
            values[name] = _changed(dimension, values[name], rng)
        else:
            away = bool(rng.random() < 0.5)
            values[name] = _move(dimension, values[name], away, factor)


def _move(dimension: Single, value: Any, away: bool, factor: float) -> Any:
    """``away``: by the factor above 1, away from zero; else towards it."""
    if isinstance(dimension, Choice):
        return _neighbour(dimension, value, 1 if away else -1)
    moved = value * (1 + factor if away else 1 - factor)
    if isinstance(dimension, RandInt):
        step, low = dimension.step, dimension.low
        whole = round(moved) if step == 1 else low + round((moved - low) / step) * step
        if whole == value:
            whole += _direction(value, away) * step
        return int(min(max(whole, low), dimension.last))
    return _quantised(dimension, value, moved, away)


def _quantised(dimension: Range | Bell, value: float, moved: float, away: bool) -> float:
    number = quantise(dimension, moved)
    if dimension.q is not None and number == quantise(dimension, value):
        number = quantise(dimension, value + _direction(value, away) * dimension.q)
        if "log" in dimension.kind:
            number = max(number, 0.0)  # below it lies nothing
    return number


def _direction(value: float, away: bool) -> int:
    return 1 if away == (value >= 0) else -1


def _neighbour(choice: Choice, value: Any, step: int) -> Any:
    place = next(n for n, option in enumerate(choice.options) if is_option(option, value))
    beside = choice.options[min(max(place + step, 0), len(choice.options) - 1)]
    # A branch beside a plain option has parameters of its own to draw; only resampling does that.
    return value if isinstance(beside, Mapping) or hasattr(beside, "space") else beside
