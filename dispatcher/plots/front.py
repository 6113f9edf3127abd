"""Several objectives against one another: the Pareto front, and what it beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dispatcher import queries
from dispatcher.plots.points import points_of
from dispatcher.plots.sampling import spread
from dispatcher.plots.shapes import Front
from dispatcher.queries import ExperimentReader

#: Trials of the front that are drawn, and others.
MOST_FRONT: Final = 2_000
MOST_OTHERS: Final = 1_500


def pareto_front(reader: ExperimentReader, *, objectives: Sequence[str] = ()) -> Front:
    """Show the trials that no other one beats in all objectives; of equal ones the first. Trials
    that are not within the bounds of the experiment are among the others.

    Args:
        reader: the experiment.
        objectives: numbers in the final result, as ``accuracy`` or ``latency:minimize``; empty:
            those of the experiment. Without a word it is the objective's direction, else the
            experiment's.

    Raises:
        UserError: there is one only, or too many, or no result has such a number.
    """
    with reader.moment():
        cursor = queries.cursor_now(reader)
        found = points_of(reader, objectives)
    heights = found.heights
    within = [at for at, kept in enumerate(found.kept) if kept]
    first = [within[at] for at in front_of(heights[within])]
    others = sorted(
        set(range(len(found.trials))) - set(first), key=lambda at: (-heights[at, 0], at)
    )
    shown = first[:MOST_FRONT]
    notes = list(found.notes)
    if len(shown) < len(first):
        notes.append(f"{len(shown):,} of {len(first):,} trials of the front are drawn")
    drawn = [*shown, *spread(others, MOST_OTHERS, 0)]
    return Front(
        reader.id, reader.name, cursor, notes, found.metrics, found.objectives, len(found.trials),
        len(first), len(shown), [found.trials[at] for at in drawn],
        [found.points[at] for at in drawn],
    )  # fmt: skip


def front_of(points: NDArray[np.float64]) -> list[int]:
    """Return the rows that no other one reaches in all columns, the greatest of the first column
    first; of equal rows the first.

    Args:
        points: a row a trial, a column an objective; greater is better.
    """
    if not len(points):
        return []
    keys = [-points[:, column] for column in reversed(range(points.shape[1]))]
    order = np.lexsort([np.arange(len(points)), *keys])
    front: list[int] = []
    held = np.empty_like(points)
    for at in order:
        # Whoever beats it stands before it in this order.
        if not (held[: len(front)] >= points[at]).all(axis=1).any():
            held[len(front)] = points[at]
            front.append(int(at))
    return front
