"""Densities of good and of bad points, and a new point where the good ones are denser.

Falkner, Klein, Hutter: BOHB, ICML 2018, section 4.1, algorithm 2 and appendix D: one kernel density
estimate in all dimensions at once for each side, and of some samples near good points the one with
the largest ratio. Bandwidths follow Scott's rule, as in the paper: 1.06 σ n^(-1/(4+d)); the kernel
of numbers is Gaussian, that of choices is of Aitchison and Aitken (1976).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np

_TINY = 1e-32


@dataclass(frozen=True, slots=True, eq=False)
class Density:
    """A kernel on each of ``data`` (n × d). ``options``, by axis: how many options a choice has; 0:
    a number between 0 and 1."""

    data: np.ndarray[Any, Any]
    bandwidths: np.ndarray[Any, Any]
    options: tuple[int, ...]

    def at(self, points: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
        """The density at each of several points (m × d)."""
        import numpy as np

        kernels = np.ones((len(points), len(self.data)))
        for axis, (width, options) in enumerate(zip(self.bandwidths, self.options, strict=True)):
            apart = points[:, axis, None] - self.data[None, :, axis]
            if options:
                other = width / max(options - 1, 1)
                kernels *= np.where(apart == 0, 1 - width, other)
            else:
                kernels *= np.exp(-0.5 * (apart / width) ** 2) / (width * math.sqrt(2 * math.pi))
        density: np.ndarray[Any, Any] = kernels.mean(axis=1)
        return density


def split(count: int, least: int, percent: int, *, apart: bool = False) -> tuple[int, int] | None:
    """The number of the best results that are good ones, and of the worst that are the others.

    Equation 3 of the paper, by which some are both while there are few.

    Args:
        count: how many results there are.
        least: N_min: the number of points that a density needs.
        percent: how many of 100 are good ones; q of the paper.
        apart: no result is on both sides, as in NNI and HpBandSter.

    Returns:
        Both numbers; None: there are too few results.
    """
    good = max(least, count * percent // 100)
    if apart:
        return (good, count - good) if count - good >= least else None
    if count < least + 2:  # algorithm 2, line 2
        return None
    return good, max(least, count - good)


def fit(
    data: np.ndarray[Any, Any],
    options: Sequence[int],
    min_bandwidth: float,
    rng: np.random.Generator,
) -> Density:
    """The density of some points.

    Args:
        data: n × d; what is NaN is taken from another of the points, or drawn where none has it.
        options: by axis, how many options a choice has; 0 for numbers.
        min_bandwidth: of all axes, so that points do not become needles.
        rng: for what is NaN.
    """
    import numpy as np

    whole = _imputed(data, options, rng)
    count, axes = whole.shape
    widths = 1.06 * whole.std(axis=0) * count ** (-1 / (4 + axes))
    # A choice whose other options weigh more than its own is no kernel any more.
    most = np.array([(each - 1) / each if each else math.inf for each in options])
    widths = np.minimum(np.maximum(widths, min_bandwidth), most)
    return Density(whole, widths, tuple(options))


def _imputed(
    data: np.ndarray[Any, Any], options: Sequence[int], rng: np.random.Generator
) -> np.ndarray[Any, Any]:
    import numpy as np

    whole = data.copy()
    for axis, count in enumerate(options):
        absent = np.isnan(whole[:, axis])
        if not absent.any():
            continue
        there = data[~absent, axis]
        size = int(absent.sum())
        if len(there):
            whole[absent, axis] = rng.choice(there, size)
        else:
            whole[absent, axis] = rng.integers(count, size=size) if count else rng.random(size)
    return whole


def promising(
    good: Density, bad: Density, rng: np.random.Generator, samples: int, widen: float
) -> list[float]:
    """Draw points around good ones, and take the one where good are densest beside the bad.

    Args:
        good: the density of good points.
        bad: that of all others.
        rng: the only source of randomness.
        samples: how many points are drawn.
        widen: bandwidths of numbers are so many times as wide for it.
    """
    import numpy as np

    points = np.array([_near(good, rng, widen) for _ in range(samples)])
    ratio = np.maximum(good.at(points), _TINY) / np.maximum(bad.at(points), _TINY)
    best: list[float] = points[int(ratio.argmax())].tolist()
    return best


def _near(density: Density, rng: np.random.Generator, widen: float) -> list[float]:
    middle = density.data[int(rng.integers(len(density.data)))]
    point: list[float] = []
    for at, width, options in zip(middle, density.bandwidths, density.options, strict=True):
        if options:
            stays = rng.random() < 1 - width
            point.append(float(at) if stays else float(rng.integers(options)))
        else:
            point.append(_truncated(float(at), float(width) * widen, float(rng.random())))
    return point


def _truncated(middle: float, width: float, share: float) -> float:
    """A normal number between 0 and 1, by its quantile."""
    bell = NormalDist(middle, width)
    low, high = bell.cdf(0.0), bell.cdf(1.0)
    quantile = min(max(low + share * (high - low), _TINY), 1 - 1e-16)
    return min(max(bell.inv_cdf(quantile), 0.0), 1.0)
