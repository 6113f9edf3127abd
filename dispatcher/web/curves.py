"""Curves with fewer points: those that a picture shows (largest triangle three buckets)."""

from __future__ import annotations

from typing import Any

import numpy as np


def thinned(steps: list[int], values: list[float], points: int) -> tuple[list[int], list[float]]:
    """Return a curve of at most so many points that looks the same.

    Of each bucket the point is kept that spans the largest triangle with the one kept before and
    the mean of the next bucket (Steinarsson, 2013). The first and the last stay.

    Args:
        steps: where the points are, rising.
        values: finite numbers, as many.
        points: at least 3.
    """
    many = len(steps)
    if many <= points:
        return steps, values
    x = np.asarray(steps, dtype=float)
    y = np.asarray(values, dtype=float)
    edges = np.linspace(1, many - 1, points - 1).astype(int)
    kept = [0]
    for bucket in range(points - 2):
        first, last = int(edges[bucket]), max(int(edges[bucket]) + 1, int(edges[bucket + 1]))
        after = _mean_of_next(x, y, edges, bucket, many)
        area = np.abs(
            (x[kept[-1]] - after[0]) * (y[first:last] - y[kept[-1]])
            - (x[kept[-1]] - x[first:last]) * (after[1] - y[kept[-1]])
        )
        kept.append(first + int(np.argmax(area)))
    kept.append(many - 1)
    return [steps[one] for one in kept], [values[one] for one in kept]


def _mean_of_next(x: Any, y: Any, edges: Any, bucket: int, many: int) -> tuple[float, float]:
    first = int(edges[bucket + 1])
    last = int(edges[bucket + 2]) if bucket + 2 < len(edges) else many
    last = max(first + 1, last)
    return float(x[first:last].mean()), float(y[first:last].mean())
