"""Samplers of single parameters; the last argument is a numpy ``RandomState``."""

from __future__ import annotations

from math import exp, log
from typing import Any


def choice(options: Any, random_state: Any) -> Any:
    """One of the options."""
    return random_state.choice(options)


def randint(lower: int, upper: int, random_state: Any) -> int:
    """A whole number from ``lower`` to below ``upper``."""
    return int(random_state.randint(lower, upper))


def uniform(low: float, high: float, random_state: Any) -> float:
    """A number between two bounds."""
    return float(random_state.uniform(low, high))


def quniform(low: float, high: float, q: float, random_state: Any) -> float:
    """The same in steps of ``q``, kept between the bounds."""
    return min(max(round(uniform(low, high, random_state) / q) * q, low), high)


def loguniform(low: float, high: float, random_state: Any) -> float:
    """A number whose logarithm is uniform."""
    return exp(uniform(log(low), log(high), random_state))


def qloguniform(low: float, high: float, q: float, random_state: Any) -> float:
    """The same in steps of ``q``, kept between the bounds."""
    return min(max(round(loguniform(low, high, random_state) / q) * q, low), high)


def normal(mu: float, sigma: float, random_state: Any) -> float:
    """A number around ``mu``."""
    return float(random_state.normal(mu, sigma))


def qnormal(mu: float, sigma: float, q: float, random_state: Any) -> float:
    """The same in steps of ``q``."""
    return round(normal(mu, sigma, random_state) / q) * q


def lognormal(mu: float, sigma: float, random_state: Any) -> float:
    """A number whose logarithm is normal."""
    return exp(normal(mu, sigma, random_state))


def qlognormal(mu: float, sigma: float, q: float, random_state: Any) -> float:
    """The same in steps of ``q``."""
    return round(lognormal(mu, sigma, random_state) / q) * q
