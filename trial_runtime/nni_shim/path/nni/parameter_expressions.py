"""Samplers of single parameters; the last argument is a numpy ``RandomState``."""

from __future__ import annotations

from math import exp, log
from typing import Any


def choice(options: Any, random_state: Any) -> Any:
    """One of the options."""
    return random_state.choice(options)


def randint(lower: int, upper: int, random_state: Any) -> int:
    """A whole number from ``lower`` to below ``upper``.

    Args:
        lower: the least number.
        upper: above the largest number.
        random_state: a numpy ``RandomState``.
    """
    return int(random_state.randint(lower, upper))


def uniform(low: float, high: float, random_state: Any) -> float:
    """A number between two bounds.

    Args:
        low: the lower bound.
        high: the upper bound.
        random_state: a numpy ``RandomState``.
    """
    return float(random_state.uniform(low, high))


def quniform(low: float, high: float, q: float, random_state: Any) -> float:
    """A uniform number, rounded to steps of ``q`` and kept between the bounds.

    Args:
        low: the lower bound.
        high: the upper bound.
        q: the step.
        random_state: a numpy ``RandomState``.
    """
    return min(max(round(uniform(low, high, random_state) / q) * q, low), high)


def loguniform(low: float, high: float, random_state: Any) -> float:
    """A number whose logarithm is uniform.

    Args:
        low: the lower bound of the number, above 0.
        high: the upper bound of the number.
        random_state: a numpy ``RandomState``.
    """
    return exp(uniform(log(low), log(high), random_state))


def qloguniform(low: float, high: float, q: float, random_state: Any) -> float:
    """A log-uniform number, rounded to steps of ``q`` and kept between the bounds.

    Args:
        low: the lower bound of the number, above 0.
        high: the upper bound of the number.
        q: the step.
        random_state: a numpy ``RandomState``.
    """
    return min(max(round(loguniform(low, high, random_state) / q) * q, low), high)


def normal(mu: float, sigma: float, random_state: Any) -> float:
    """A normally distributed number.

    Args:
        mu: the mean.
        sigma: the standard deviation.
        random_state: a numpy ``RandomState``.
    """
    return float(random_state.normal(mu, sigma))


def qnormal(mu: float, sigma: float, q: float, random_state: Any) -> float:
    """A normally distributed number, rounded to steps of ``q``.

    Args:
        mu: the mean.
        sigma: the standard deviation.
        q: the step.
        random_state: a numpy ``RandomState``.
    """
    return round(normal(mu, sigma, random_state) / q) * q


def lognormal(mu: float, sigma: float, random_state: Any) -> float:
    """A number whose logarithm is normally distributed.

    Args:
        mu: the mean of the logarithm.
        sigma: the standard deviation of the logarithm.
        random_state: a numpy ``RandomState``.
    """
    return exp(normal(mu, sigma, random_state))


def qlognormal(mu: float, sigma: float, q: float, random_state: Any) -> float:
    """A log-normally distributed number, rounded to steps of ``q``.

    Args:
        mu: the mean of the logarithm.
        sigma: the standard deviation of the logarithm.
        q: the step.
        random_state: a numpy ``RandomState``.
    """
    return round(lognormal(mu, sigma, random_state) / q) * q
