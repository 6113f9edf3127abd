"""The hypervolume of points: how much of the space above a reference they reach, exactly.

By slicing one objective after another (Knowles, *Local-Search and Hybrid Evolutionary Algorithms
for Pareto Optimization*, 2002; While, Hingston, Barone, Huband: A Faster Algorithm for Calculating
Hypervolume, IEEE Transactions on Evolutionary Computation 10(1), 2006), with a sweep for the last
two. See decision 0106.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray


def volume_of(heights: NDArray[np.float64]) -> float:
    """The volume of the union of the boxes from 0 to each point.

    >>> volume_of(np.array([[1.0, 3.0], [2.0, 1.0]]))
    4.0

    Args:
        heights: a row a point, a column an objective, above the reference; one that is nowhere
            above it adds nothing.
    """
    above = heights[(heights > 0).all(axis=1)]
    return _sliced(above) if len(above) else 0.0


def sweeps(points: int, objectives: int) -> int:
    """How many sweeps the volume of so many points takes."""
    return max(1, int(points ** max(0, objectives - 2)))


def _sliced(heights: NDArray[np.float64]) -> float:
    if heights.shape[1] == 1:
        return float(heights.max())
    order = np.argsort(-heights[:, 0], kind="stable")
    first, rest = heights[order, 0], heights[order, 1:]
    # Between one height and the next lower one, the points before it are those that reach it.
    thick = first - np.append(first[1:], 0.0)
    if rest.shape[1] == 1:
        return float(thick @ np.maximum.accumulate(rest[:, 0]))
    return sum(
        float(thick[at]) * _sliced(rest[: at + 1]) for at in range(len(first)) if thick[at] > 0
    )
