"""Several objectives against one another: the Pareto front, and what it beats."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from dispatcher import queries
from dispatcher.errors import UserError
from dispatcher.plots.sampling import metric_names, results, spread
from dispatcher.plots.shapes import Front, Objective
from dispatcher.queries import ExperimentReader, OptimizeMode

#: Trials of the front that are drawn, and others; objectives at once.
MOST_FRONT: Final = 2_000
MOST_OTHERS: Final = 1_500
MOST_OBJECTIVES: Final = 6

_WORDS: Final = (OptimizeMode.MAXIMIZE.value, OptimizeMode.MINIMIZE.value)


def pareto_front(reader: ExperimentReader, *, objectives: Sequence[str] = ()) -> Front:
    """Show the trials that no other one beats in all objectives; of equal ones the first.

    Args:
        reader: the experiment.
        objectives: numbers in the final result, as ``accuracy`` or ``latency:minimize``; empty:
            those of the tuner. Without a word it is the tuner's direction, else the experiment's.

    Raises:
        UserError: there is one only, or too many, or no result has such a number.
    """
    with reader.moment():
        cursor = queries.cursor_now(reader)
        metrics = metric_names(reader)
        chosen = _chosen(reader, objectives)
        if chosen and not 2 <= len(chosen) <= MOST_OBJECTIVES:
            text = f"a front is of 2 to {MOST_OBJECTIVES} objectives, not of {len(chosen)}"
            raise UserError(text, hint=f"results hold: {', '.join(metrics[:12])}")
        names = [one.name for one in chosen]
        found = [(n, [told[name] for name in names]) for n, _, told in results(reader, names)
                 if len(told) == len(names)] if names else []  # fmt: skip
        unknown = [name for name in names if name not in metrics]
        if unknown and not found:
            raise UserError(
                f"no result holds a number {unknown[0][:200]!r}",
                hint=f"there are: {', '.join(metrics[:12])}",
            )
    notes = [] if names else [
        "the tuner names one objective: name several, as in accuracy and latency:minimize"
    ]  # fmt: skip
    signs = np.array([1.0 if one.mode is OptimizeMode.MAXIMIZE else -1.0 for one in chosen])
    points = np.array([point for _, point in found]).reshape(len(found), len(names)) * signs
    first = front_of(points)
    others = sorted(set(range(len(found))) - set(first), key=lambda at: (-points[at, 0], at))
    shown = first[:MOST_FRONT]
    if len(shown) < len(first):
        notes.append(f"{len(shown):,} of {len(first):,} trials of the front are drawn")
    drawn = [*shown, *spread(others, MOST_OTHERS, 0)]
    return Front(
        reader.id, reader.name, cursor, notes, metrics, chosen, len(found), len(first), len(shown),
        [found[at][0] for at in drawn], [found[at][1] for at in drawn],
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


def _chosen(reader: ExperimentReader, wanted: Sequence[str]) -> list[Objective]:
    known = queries.objectives(reader)
    if not wanted:
        return [Objective(name, mode) for name, mode in known.items()]
    found: dict[str, Objective] = {}
    for text in wanted:
        name, _, word = text.rpartition(":")
        if word not in _WORDS or not name:
            name, word = text, known.get(text, reader.mode).value
        found[name] = Objective(name, OptimizeMode(word))
    return list(found.values())
