"""Whether one tuner falls short of another: mean differences over seeds, and how sure that is."""

from __future__ import annotations

import math
import statistics
from collections.abc import Sequence
from dataclasses import dataclass

#: Student's t that 5 % lie above, by degrees of freedom from 1 on.
_T = (
    *(6.314, 2.920, 2.353, 2.132, 2.015, 1.943, 1.895, 1.860, 1.833, 1.812),
    *(1.796, 1.782, 1.771, 1.761, 1.753, 1.746, 1.740, 1.734, 1.729, 1.725),
    *(1.721, 1.717, 1.714, 1.711, 1.708, 1.706, 1.703, 1.701, 1.699, 1.697),
)
_NORMAL = 1.645


@dataclass(frozen=True)
class Shortfall:
    """By how much ours is worse, as shares of the range; below 0 it is better.

    Attributes:
        mean: of the differences between seeds.
        bound: with 95 % confidence (one-sided) the expected difference lies below it.
        seeds: how many there were.
        equal: in how many of these both reached the same, to nine digits.
    """

    mean: float
    bound: float
    seeds: int
    equal: int

    def within(self, share: float) -> bool:
        """Whether ours is not worse by more than this share of the range, and that for sure."""
        return self.bound <= share


def shortfall(ours: Sequence[float], theirs: Sequence[float], low: float, high: float) -> Shortfall:
    """Compare two tuners seed by seed; larger is better.

    The bound is Student's: the mean of the differences and t times its standard error. Where
    the two share a seed's randomness (the same sampler, the same noise) pairing narrows it; where
    they do not, pairs are independent and it is as wide as it should be.

    Args:
        ours: scores, one a seed.
        theirs: scores of the same seeds in the same order.
        low: the worst value there is.
        high: the best one.

    Raises:
        ValueError: not as many of one as of the other, fewer than two, or no range.
    """
    if len(ours) != len(theirs) or len(ours) < 2:
        raise ValueError(f"{len(ours)} scores and {len(theirs)} cannot be compared seed by seed")
    if not high > low:
        raise ValueError(f"from {low} to {high} is no range")
    pairs = list(zip(ours, theirs, strict=True))
    differences = [(other - own) / (high - low) for own, other in pairs]
    mean = statistics.fmean(differences)
    error = statistics.stdev(differences) / math.sqrt(len(differences))
    return Shortfall(
        mean,
        mean + student(len(differences) - 1) * error,
        len(differences),
        sum(math.isclose(own, other, rel_tol=1e-9, abs_tol=1e-12) for own, other in pairs),
    )


def student(freedom: int) -> float:
    """Student's t that 5 % lie above; from 30 degrees on by its expansion around the normal one."""
    if freedom <= len(_T):
        return _T[freedom - 1]
    z = _NORMAL
    first = (z**3 + z) / 4
    second = (5 * z**5 + 16 * z**3 + 3 * z) / 96
    return z + first / freedom + second / freedom**2
