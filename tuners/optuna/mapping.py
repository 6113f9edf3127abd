"""Our search spaces in Optuna's terms: parameters to suggest, and suggestions as our values.

Every type of ours is taken but lists of blocks. Optuna knows no normal distribution: the normal
kinds are suggested as a quantile between 0 and 1 and looked up in the distribution, so that a
sampler that knows nothing draws from the space's distribution. Quantised kinds with bounds that are
multiples of ``q`` are steps to Optuna; others are continuous to it and rounded afterwards. A nested
choice is a choice of branches, and below it Optuna's "define by run": parameters that exist only
where their branch was chosen.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import Any

from tuners.space.model import (
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
    no_axis,
)
from tuners.space.sampling import is_option, quantise

#: Floating-point numbers, which Optuna computes with, that the range of an integer needs at least.
_FEWEST_FLOATS = 1_000

#: Integers up to here are floating-point numbers, too.
_MOST_EXACT = 2**53

#: Steps of a grid of larger ones: a sampler still finds a difference between two of so many.
_MOST_STEPS = 2**48

#: The share of a step by which Optuna takes a number for one of the grid.
_MOST_OFF = 1e-8

#: How far into the tails of a normal distribution suggestions go: 4.75 sigma.
_TAIL = 1e-6

_PLAIN = (str, int, float, type(None))


@dataclass(frozen=True, slots=True)
class OptunaAxis:
    """One parameter: ``key`` in ours, ``name`` among Optuna's; ``labels`` of a choice's options."""

    key: str
    name: str
    dimension: Single
    labels: tuple[Any, ...] = ()
    branches: Mapping[int, tuple[OptunaAxis, ...]] = field(default_factory=dict)

    @property
    def is_stepped(self) -> bool:
        """Whether a quantised range is a grid to Optuna, too."""
        one = self.dimension
        return (
            isinstance(one, Range)
            and one.kind == "quniform"
            and one.q is not None
            and all(
                math.isclose(bound / one.q, round(bound / one.q), abs_tol=1e-9)
                for bound in (one.low, one.high)
            )
        )

    @property
    def count(self) -> int:
        """The number of values that a grid has to Optuna; 0 for what is continuous to it."""
        one = self.dimension
        if isinstance(one, Choice):
            return len(one.options)
        if isinstance(one, RandInt):
            return one.count
        if self.is_stepped and isinstance(one, Range) and one.q is not None:
            return round((one.high - one.low) / one.q) + 1
        return 0


def axes_of(space: Space, prefix: str = "") -> tuple[OptunaAxis, ...]:
    """The parameters of a space, in order.

    Raises:
        SpaceError: two parameters would have one name in Optuna, or one is a list of blocks, or
            has integers that Optuna cannot tell apart.
    """
    axes = tuple(_axis(key, dimension, f"{prefix}{key}") for key, dimension in space.dimensions)
    if not prefix:
        seen: set[str] = set()
        for axis in every(axes):
            if axis.name in seen:
                raise SpaceError(
                    (axis.key,), f"is one of two: another parameter is called {axis.name!r}, too"
                )
            seen.add(axis.name)
    return axes


def every(axes: tuple[OptunaAxis, ...]) -> Iterator[OptunaAxis]:
    """All axes, those below branches included."""
    for axis in axes:
        yield axis
        for below in axis.branches.values():
            yield from every(below)


def _axis(key: str, dimension: Dimension, name: str) -> OptunaAxis:
    if isinstance(dimension, BlockList):
        raise no_axis((name,))
    if isinstance(dimension, RandInt) and _is_blurred(dimension):
        text = f"has integers as large as {dimension.last}, which Optuna cannot tell apart"
        raise SpaceError((name,), text, "search by their distance from the lowest one")
    if not isinstance(dimension, Choice):
        return OptunaAxis(key, name, dimension)
    branches = {
        place: axes_of(option.space, f"{name}/{option.name}/")
        for place, option in enumerate(dimension.options)
        if isinstance(option, Branch)
    }
    return OptunaAxis(key, name, dimension, _labels(dimension), branches)


def _is_blurred(one: RandInt) -> bool:
    apart = math.ulp(float(max(abs(one.low), abs(one.last))))
    return apart > one.step and one.last - one.low < _FEWEST_FLOATS * apart


def _as_floats(one: RandInt) -> tuple[int, int, int]:
    """The bounds and the step of integers as Optuna's floating-point numbers can name them.

    Steps that fall between large numbers are none to Optuna, and densities of far too many values
    are none to its samplers: such integers are a coarser grid to it, of powers of two.
    """
    most = max(abs(one.low), abs(one.last))
    apart = int(math.ulp(float(most)))
    if most <= _MOST_EXACT or apart < _MOST_OFF * one.step:
        return one.low, one.last, one.step
    if one.log:  # which has no steps
        return int(float(one.low)), int(float(one.last)), 1
    apart = max(one.step, apart, (one.last - one.low) // _MOST_STEPS)
    step = 1 << (apart.bit_length() - 1)
    return _nearest(one.low, 0, step), _nearest(one.last, 0, step), step


def _nearest(number: int, low: int, step: int) -> int:
    """The nearest integer of a grid without an end."""
    return low + (2 * (number - low) + step) // (2 * step) * step


def _labels(choice: Choice) -> tuple[Any, ...]:
    """The options themselves where Optuna can distinguish them, else texts that stand for them."""
    options = choice.options
    plain = all(isinstance(option, _PLAIN) for option in options)
    if plain and all(one not in options[:place] for place, one in enumerate(options)):
        return options
    texts = [
        option.name if isinstance(option, Branch) else json.dumps(option, sort_keys=True)
        for option in options
    ]
    if len(set(texts)) == len(texts):
        return tuple(texts)
    return tuple(f"{place}: {text}" for place, text in enumerate(texts))


def suggest(axes: tuple[OptunaAxis, ...], trial: Any) -> dict[str, Any]:
    """Asks an ``optuna.Trial`` for every parameter, and returns them in our terms."""
    return {axis.key: _suggest(axis, trial) for axis in axes}


def _suggest(axis: OptunaAxis, trial: Any) -> Any:
    one = axis.dimension
    if isinstance(one, Choice):
        place = axis.labels.index(trial.suggest_categorical(axis.name, axis.labels))
        option = one.options[place]
        if isinstance(option, Branch):
            return {"_name": option.name, **suggest(axis.branches[place], trial)}
        return json.loads(json.dumps(option))  # so that parameters never alias the space
    if isinstance(one, RandInt):
        low, high, apart = _as_floats(one)
        number = trial.suggest_int(axis.name, low, high, step=apart, log=one.log)
        return min(max(_nearest(int(number), one.low, one.step), one.low), one.last)
    if isinstance(one, Bell):
        quantile = trial.suggest_float(axis.name, _TAIL, 1 - _TAIL)
        raw = NormalDist(one.mu, one.sigma).inv_cdf(quantile)
        return quantise(one, math.exp(raw) if "log" in one.kind else raw)
    step = one.q if axis.is_stepped else None
    return quantise(
        one, trial.suggest_float(axis.name, one.low, one.high, step=step, log="log" in one.kind)
    )


def distribution(axis: OptunaAxis, distributions: Any) -> Any:
    """The distribution that :func:`suggest` asks for. ``distributions``: Optuna's module."""
    one = axis.dimension
    if isinstance(one, Choice):
        return distributions.CategoricalDistribution(axis.labels)
    if isinstance(one, RandInt):
        low, high, apart = _as_floats(one)
        return distributions.IntDistribution(low, high, step=apart, log=one.log)
    if isinstance(one, Bell):
        return distributions.FloatDistribution(_TAIL, 1 - _TAIL)
    step = one.q if axis.is_stepped else None
    return distributions.FloatDistribution(one.low, one.high, step=step, log="log" in one.kind)


def to_optuna(
    axes: tuple[OptunaAxis, ...], parameters: Mapping[str, Any]
) -> dict[str, tuple[OptunaAxis, Any]]:
    """Parameters that Optuna did not suggest, in its terms: name → axis and value.

    Raises:
        ValueError: one is missing, or lies outside of the space.
    """
    found: dict[str, tuple[OptunaAxis, Any]] = {}
    for axis in axes:
        if axis.key not in parameters:
            raise ValueError(f"there is no {axis.key!r}")
        value = parameters[axis.key]
        found[axis.name] = (axis, _to_optuna(axis, value))
        if isinstance(axis.dimension, Choice):
            below = axis.branches.get(axis.labels.index(found[axis.name][1]))
            if below is not None:
                found.update(to_optuna(below, value))
    return found


def _to_optuna(axis: OptunaAxis, value: Any) -> Any:
    one = axis.dimension
    if isinstance(one, Choice):
        for label, option in zip(axis.labels, one.options, strict=True):
            if is_option(option, value):
                return label
        raise ValueError(f"{axis.key} has no option {value!r}")
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise ValueError(f"{axis.key} is no number: {value!r}")
    if isinstance(one, Bell):
        if "log" in one.kind:
            value = math.log(value) if value > 0 else -math.inf
        return min(max(NormalDist(one.mu, one.sigma).cdf(value), _TAIL), 1 - _TAIL)
    high = one.last if isinstance(one, RandInt) else one.high
    if not one.low <= value <= high:
        raise ValueError(f"{axis.key} lies outside of its bounds: {value!r}")
    if isinstance(one, RandInt):
        if (value - one.low) % one.step:
            raise ValueError(f"{axis.key} lies between two steps: {value!r}")
        low, high, step = _as_floats(one)
        return min(max(_nearest(int(value), low, step), low), high)
    return float(value)
