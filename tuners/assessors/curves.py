"""Families of learning curves, fitted to the beginning of one and continued.

Domhan, Springenberg, Hutter: Speeding Up Automatic Hyperparameter Optimization of Deep Neural
Networks by Extrapolation of Learning Curves, IJCAI 2015, its parametric models of curves. Of the
eleven these are five that are ``c - a g(x)`` with a falling ``g`` of up to two more parameters: for
each value of those on a grid that closes in on the best, ``a`` and ``c`` follow by least squares.
(Janoschek's and Weibull's are exp4 under other names.) The paper samples from a weighted sum of
families by Markov chain Monte Carlo; here each family's best fit is weighted by its likelihood,
which needs numpy alone, and gives a number and no probability.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import product
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    import numpy as np

    Numbers: TypeAlias = np.ndarray[tuple[int, ...], np.dtype[np.float64]]

Shape: TypeAlias = tuple[float, ...]

#: Values of the shape parameters that are tried.
_POWERS = (0.1, 0.2, 0.3, 0.5, 0.7, 1.0, 1.5, 2.0, 3.0)
_RATES = (0.003, 0.01, 0.03, 0.1, 0.3, 1.0)
_SHIFTS = (0.5, 2.0, 8.0)
_BENDS = (0.5, 0.75, 1.0, 1.5, 2.0)

#: Fewer values than this say nothing about a curve of up to four parameters.
LEAST_VALUES = 4

#: Standard deviation of a value that no fit may claim to be below, as a share of the range seen.
_NOISE = 0.001


#: How often the grid is drawn closer around the best shape.
_ROUNDS = 4


def predict(values: Sequence[float], at: int) -> float | None:
    """The value that a rising curve will have reached at step ``at``; None if no family fits.

    Args:
        values: those of steps 1, 2, …, all finite; larger is better.
        at: a step from ``len(values)`` up.
    """
    import numpy as np

    if len(values) < LEAST_VALUES:
        return None
    y = np.asarray(values, dtype=np.float64)
    span = float(y.max() - y.min())
    if span == 0:
        return float(y[-1])
    fits = [fit for g, shapes in _families() if (fit := _fit(g, shapes, y, at)) is not None]
    if not fits:
        return None
    least = (_NOISE * span) ** 2
    variances = np.array([max(variance, least) for variance, _ in fits])
    # The likelihood of normal noise at its best standard deviation, relative to the best family.
    logs = -0.5 * len(y) * np.log(variances)
    weights = np.exp(logs - logs.max())
    weights /= weights.sum()
    return float(np.dot(weights, [ahead for _, ahead in fits]))


def _families() -> list[tuple[Callable[..., Numbers], list[Shape]]]:
    """``g`` of steps and shape, and the shapes to begin with."""
    import numpy as np

    powers: list[Shape] = [(power,) for power in _POWERS]
    return [
        (lambda x, p: x**-p, powers),  # pow3
        (lambda x, r, b: np.exp(-((r * x) ** b)), list(product(_RATES, _BENDS))),  # exp4
        (lambda x: 1 / np.log(x + 1), [()]),  # ilog2, from the second step: log 1 is 0
        (lambda x, r, p: 1 / (1 + (r * x) ** p), list(product(_RATES, _BENDS))),  # MMF
        (lambda x, s, p: (x + s) ** -p, list(product(_SHIFTS, _POWERS))),  # pow4
    ]


def _fit(
    g: Callable[..., Numbers], shapes: list[Shape], y: Numbers, at: int
) -> tuple[float, float] | None:
    """A family's smallest variance and its continuation; None if none of its curves rises."""
    import numpy as np

    x = np.array([*range(1, len(y) + 1), at], dtype=np.float64)
    best: tuple[float, float, Shape] | None = None
    width = 1.5
    for _ in range(_ROUNDS + 1):
        for shape in shapes:
            found = _least_squares(g(x, *shape), y)
            if found is not None and (best is None or found[0] < best[0]):
                best = (*found, shape)
        if best is None:
            return None
        steps = (1 / width, width**-0.5, 1.0, width**0.5, width)
        shapes = [
            tuple(one * step for one, step in zip(best[2], around, strict=True))
            for around in product(steps, repeat=len(best[2]))
        ]
        width **= 0.5
    return None if best is None else best[:2]


def _least_squares(g: Numbers, y: Numbers) -> tuple[float, float] | None:
    """Variance and continuation of ``c - a g`` for one shape; the last of ``g`` lies ahead."""
    seen, ahead = g[:-1], float(g[-1])
    mean = float(seen.mean())
    away = seen - mean
    square = float(away @ away)
    if square < 1e-18:
        return None
    a = -float(away @ y) / square
    if a < 0:
        return None  # it would fall
    c = float(y.mean()) + a * mean
    rest = y - (c - a * seen)
    return float(rest @ rest) / len(y), c - a * ahead
