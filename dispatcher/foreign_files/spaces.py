"""Search spaces in our form, from bounds, steps and lists as services have them."""

from __future__ import annotations

import math
from typing import Any

#: Values of a stepped parameter that are listed one by one, at most.
MOST_VALUES = 1_000

#: More steps than anything has, and few enough to count.
_FAR = 1e15

Parameter = dict[str, Any]


class UnfitSpace(ValueError):
    """Raised for bounds or steps that make no parameter; says why, as the end of a sentence."""


def is_number(value: Any) -> bool:
    """Return whether a value is a number of a service: finite, and of 64 bits if it is whole.

    >>> is_number(0.5), is_number(2**63), is_number(float("nan")), is_number(True)
    (True, False, False, False)
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return -(2**63) <= value < 2**63
    return isinstance(value, float) and math.isfinite(value)


def options(values: list[Any]) -> Parameter:
    """Return a choice among values."""
    if not values:
        raise UnfitSpace("names no values")
    return {"_type": "choice", "_value": list(values)}


def whole(low: int, high: int, *, log: bool = False) -> Parameter:
    """Return a whole number from ``low`` to ``high``, both included.

    Args:
        low: the least.
        high: the most.
        log: whether it is drawn by its logarithm.

    >>> whole(1, 5)
    {'_type': 'randint', '_value': [1, 6]}
    """
    _in_order(low, high)
    if low == high:
        return options([low])
    if not log:
        return {"_type": "randint", "_value": [low, high + 1]}
    _above_zero(low)
    return {"_type": "qloguniform", "_value": [low, high, 1]}


def real(low: float, high: float, *, log: bool = False) -> Parameter:
    """Return a number from ``low`` to ``high``.

    Args:
        low: the least.
        high: the most.
        log: whether it is drawn by its logarithm.

    >>> real(0.1, 1, log=True)
    {'_type': 'loguniform', '_value': [0.1, 1]}
    """
    _in_order(low, high)
    if low == high:
        return options([low])
    if log:
        _above_zero(low)
    return {"_type": "loguniform" if log else "uniform", "_value": [low, high]}


def stepped(low: float, high: float, step: float) -> Parameter:
    """Return a number of the row that begins at ``low``, in steps.

    Args:
        low: the first.
        high: the last is no more than this.
        step: between two.

    >>> stepped(1, 7, 2)
    {'_type': 'choice', '_value': [1, 3, 5, 7]}
    >>> stepped(0.5, 2.0, 0.5)
    {'_type': 'quniform', '_value': [0.5, 2.0, 0.5]}
    """
    _in_order(low, high)
    if step <= 0:
        raise UnfitSpace(f"has the step {step}, which must be above 0")
    is_whole = all(isinstance(each, int) for each in (low, high, step))
    if not is_whole and _divides(step, low) and _divides(step, high):
        return {"_type": "quniform", "_value": [low, high, step]}
    many = math.floor(min((high - low) / step, _FAR) + 1e-9) + 1
    if many > MOST_VALUES:
        raise UnfitSpace(f"has {many:,} values, and {MOST_VALUES:,} are listed at most")
    digits = 12
    listed = [low + index * step for index in range(many)]
    return options([each if is_whole else round(each, digits) for each in listed])


def bell(low: float, high: float, step: float | None, *, log: bool = False) -> Parameter:
    """Return a normal number whose bounds are three sigma away, as Katib means it.

    Args:
        low: three sigma below the mean.
        high: three sigma above it.
        step: between two values; None: any value.
        log: whether its logarithm is normal.

    >>> bell(0.0, 6.0, None)
    {'_type': 'normal', '_value': [3.0, 1.0]}
    """
    _in_order(low, high)
    if low == high:
        return options([low])
    if log:
        _above_zero(low)
        low, high = math.log(low), math.log(high)
    kind = "lognormal" if log else "normal"
    values = [low / 2 + high / 2, high / 6 - low / 6]
    if step is None:
        return {"_type": kind, "_value": values}
    return {"_type": f"q{kind}", "_value": [*values, step]}


def _in_order(low: float, high: float) -> None:
    if low > high:
        raise UnfitSpace(f"is contradictory: {low} to {high} holds nothing")


def _above_zero(low: float) -> None:
    if low <= 0:
        raise UnfitSpace(f"has a logarithm, and begins at {low}, which must be above 0")


def _divides(step: float, value: float) -> bool:
    ratio = value / step
    return abs(ratio) < _FAR and math.isclose(ratio, round(ratio), abs_tol=1e-9)
