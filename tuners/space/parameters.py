"""The parameters of a search space, as Python writes them.

    >>> from tuners.space import parameters as bq
    >>> {"lr": bq.loguniform(1e-4, 1e-1), "layers": bq.int(1, 8)}
    {'lr': loguniform(0.0001, 0.1), 'layers': int(1, 8)}

Each function returns a frozen value of :mod:`tuners.space.model`, the same that built-in tuners
work with, and shows itself as the short form of a file. ``rendered`` gives NNI's JSON.
"""

from __future__ import annotations

import builtins
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from tuners.plain_json import kind_of, of_numpy, written_path
from tuners.space.forms import FORMS, entry
from tuners.space.model import Bell, BlockList, Choice, Dimension, RandInt, Range, Space, SpaceError
from tuners.space.reading import dimension_of, parse
from tuners.space.writing import rendered

__all__ = [
    "Space",
    "SpaceError",
    "blocks",
    "choice",
    "int",
    "lognormal",
    "loguniform",
    "normal",
    "qlognormal",
    "qloguniform",
    "qnormal",
    "quniform",
    "randint",
    "rendered",
    "space",
    "uniform",
]


def choice(*options: Any) -> Choice:
    """One of several options: `choice("relu", "gelu")`, or a list of them. Of a mapping one name,
    with parameters that only trials with that name have: `choice({"sgd": {"momentum": uniform(0,
    1)}, "adam": {}})`.

    Raises:
        SpaceError: no options, or what is no JSON.
    """
    made = _made("choice", *options)
    assert isinstance(made, Choice)
    return made


def int(
    low: builtins.int, high: builtins.int, step: builtins.int = 1, log: bool = False
) -> RandInt:
    """A whole number from `low` to `high`, both included, in steps from `low`. With `log` every
    factor is as likely as any other: 1 to 10 as often as 10 to 100.

    Args:
        low: the smallest number.
        high: no number is above it.
        step: the distance of two numbers.
        log: spread evenly by the logarithm; not together with a step.

    Raises:
        SpaceError: no whole numbers, or bounds that hold nothing.
    """
    made = _made("int", low, high, step=step, log=log)
    assert isinstance(made, RandInt)
    return made


def randint(low: builtins.int, high: builtins.int) -> RandInt:
    """A whole number from `low` to below `high`, as NNI has it: `randint(0, 10)` is 0 to 9.

    Raises:
        SpaceError: no whole numbers, or bounds that hold nothing.
    """
    made = _made("randint", low, high)
    assert isinstance(made, RandInt)
    return made


def uniform(low: float, high: float) -> Range:
    """A number between two bounds.

    Raises:
        SpaceError: bounds that hold nothing.
    """
    return _range("uniform", low, high)


def quniform(low: float, high: float, q: float) -> Range:
    """A number between two bounds, rounded to a multiple of `q`; the ends come half as often.

    Args:
        low: the lower bound.
        high: the upper bound.
        q: the distance of two numbers.

    Raises:
        SpaceError: bounds that hold nothing, or a step that is not above 0.
    """
    return _range("quniform", low, high, q)


def loguniform(low: float, high: float) -> Range:
    """A number above 0 whose logarithm is spread evenly between those of the bounds.

    Raises:
        SpaceError: bounds that hold nothing, or a lower one that is not above 0.
    """
    return _range("loguniform", low, high)


def qloguniform(low: float, high: float, q: float) -> Range:
    """As `loguniform`, rounded to a multiple of `q`.

    Args:
        low: the lower bound, above 0.
        high: the upper bound.
        q: the distance of two numbers.

    Raises:
        SpaceError: bounds that hold nothing, or a step that is not above 0.
    """
    return _range("qloguniform", low, high, q)


def normal(mu: float, sigma: float) -> Bell:
    """A normal number with mean `mu` and standard deviation `sigma`, without bounds.

    Raises:
        SpaceError: a sigma that is not above 0.
    """
    return _bell("normal", mu, sigma)


def qnormal(mu: float, sigma: float, q: float) -> Bell:
    """As `normal`, rounded to a multiple of `q`.

    Args:
        mu: the mean.
        sigma: the standard deviation.
        q: the distance of two numbers.

    Raises:
        SpaceError: a sigma or a step that is not above 0.
    """
    return _bell("qnormal", mu, sigma, q)


def lognormal(mu: float, sigma: float) -> Bell:
    """A number whose logarithm is normal: `mu` and `sigma` are those of the logarithm.

    Raises:
        SpaceError: a sigma that is not above 0.
    """
    return _bell("lognormal", mu, sigma)


def qlognormal(mu: float, sigma: float, q: float) -> Bell:
    """As `lognormal`, rounded to a multiple of `q`.

    Args:
        mu: the mean of the logarithm.
        sigma: the standard deviation of the logarithm.
        q: the distance of two numbers.

    Raises:
        SpaceError: a sigma or a step that is not above 0.
    """
    return _bell("qlognormal", mu, sigma, q)


def blocks(
    low: builtins.int, high: builtins.int, block: Mapping[str, Any] | Dimension | Space
) -> BlockList:
    """A list of `low` to `high` blocks, such as the layers of a network. Each has parameters of its
    own: `blocks(1, 8, {"op": choice("conv", "pool"), "width": int(8, 64)})`; or it is one value:
    `blocks(1, 4, int(16, 256))`.

    Args:
        low: the fewest blocks, from 0 up.
        high: the most blocks.
        block: parameters by name, or one parameter. Lists may be nested.

    Raises:
        SpaceError: bounds that hold nothing, more than 1,000 blocks in all, or a block that cannot
            be read.
    """
    made = _made("blocks", low, high, block)
    assert isinstance(made, BlockList)
    return made


def space(parameters: Mapping[str, Any], constraints: Sequence[str] = ()) -> Space:
    """A whole search space with conditions that each trial meets.

    Args:
        parameters: by name, in any form that a file or Python has.
        constraints: conditions such as ``"layers * width <= 4096"``.

    Raises:
        SpaceError: for the first mistake.

    Example:
        >>> space({"a": int(1, 8), "b": int(1, 8)}, ["a * b <= 16"])
        {'a': int(1, 8), 'b': int(1, 8), '_constraints': ['a * b <= 16']}
    """
    if isinstance(constraints, str):
        constraints = [constraints]
    given: tuple[tuple[object, type], ...] = ((parameters, Mapping), (constraints, Iterable))
    for value, kind in given:
        if not isinstance(value, kind):
            hint = "write space({'a': int(1, 8), 'b': int(1, 8)}, ['a * b <= 16'])"
            raise SpaceError((), f"cannot be made of {kind_of(value)}", hint)
    return parse({**parameters, **({"_constraints": list(constraints)} if constraints else {})})


def _range(name: str, *numbers: float) -> Range:
    made = _made(name, *numbers)
    if isinstance(made, Choice):  # both bounds are one number, which only NNI's files may write
        raise SpaceError((), f"{_shown(name, numbers, {})} holds one number", "fix it in the trial")
    assert isinstance(made, Range)
    return made


def _bell(name: str, *numbers: float) -> Bell:
    made = _made(name, *numbers)
    assert isinstance(made, Bell)
    return made


def _made(name: str, *given: Any, **named: Any) -> Dimension:
    given, named = of_numpy(given), of_numpy(named)
    try:
        return dimension_of(entry(name, given, named))
    except SpaceError as error:
        at, call = error.path[1:], _shown(name, given, named)
        if at:
            call += f": {FORMS[name].argument(builtins.int(at[0]))}"
        if at[1:]:
            call += f" at {written_path(at[1:])}"
        problem = SpaceError((), f"{call} {error.message}", error.hint)
    raise problem from None


def _shown(name: str, given: Sequence[Any], named: Mapping[str, Any]) -> str:
    """The call as it was made, without what it would have had anyway."""
    usual = FORMS[name].defaults
    more = [f"{key}={value!r}" for key, value in named.items() if value is not usual.get(key)]
    return f"{name}({', '.join([*map(repr, given), *more])[:80]})"
