"""Several objectives: the trials that no other one beats in all of them."""

from __future__ import annotations

import math

from dispatcher.queries.notes import trials_with_annotations
from dispatcher.queries.objectives import Objectives, bounded, objectives, within
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import OptimizeMode, TrialSummary, json_value
from dispatcher.queries.trials import numbered
from dispatcher.queries.where import parse_condition
from tuners.objectives import number_of

_POINT = tuple[float, ...]


def front(reader: ExperimentReader, condition: str = "") -> list[TrialSummary]:
    """Find the Pareto front of delivered results, by the first objective, the best first; of equal
    results the first trial. Empty with one objective. A trial that breaks a bound is not on it.

    Args:
        reader: the experiment.
        condition: only among trials for which it holds, as people type it.

    Raises:
        WhereError: the condition cannot be read.
    """
    with reader.moment():
        return numbered(reader, front_numbers(reader, condition) or [])


def front_numbers(reader: ExperimentReader, condition: str = "") -> list[int] | None:
    """Return the numbers of the trials on the front, in its order; None with one objective.

    Args:
        reader: the experiment.
        condition: only among trials for which it holds, as people type it.

    Raises:
        WhereError: the condition cannot be read.
    """
    wanted = objectives(reader)
    where = parse_condition(condition)
    if not wanted:
        return None
    bounds = bounded(reader)
    source = trials_with_annotations(reader)
    trials = f"SELECT id, told FROM {source} WHERE told IS NOT NULL"  # noqa: S608 - our own texts
    points: list[tuple[_POINT, int]] = []
    for row in reader.rows(f"{trials} AND {where.text} ORDER BY id", where.values):
        value = json_value(row["told"])
        point = _point(value, wanted)
        if point is not None and within(value, bounds):
            points.append((point, row["id"]))
    points.sort(key=lambda each: ([-one for one in each[0]], each[1]))
    return [points[at][1] for at in unbeaten([point for point, _ in points])]


def _point(value: object, wanted: Objectives) -> _POINT | None:
    """Return coordinates of which larger is better; None if one is missing."""
    point = []
    for name, mode in wanted.items():
        number = number_of(value, name)
        if number is None or not math.isfinite(number):
            return None
        point.append(number if mode is OptimizeMode.MAXIMIZE else -number)
    return tuple(point)


def unbeaten(points: list[_POINT]) -> list[int]:
    """Return the places of those that none before them equals or beats; the best first come first.

    Of two objectives it takes no longer than the sort before; of more, ten thousand of which all
    stay take a second.
    """
    if points and len(points[0]) == 2:
        highest, kept = -math.inf, []
        for at, (_, second) in enumerate(points):
            if second > highest:
                highest = second
                kept.append(at)
        return kept
    if not points:
        return []
    import numpy as np  # not by everybody who asks a store

    kept, front = [], np.empty((len(points), len(points[0])))
    for at, point in enumerate(points):
        if not (front[: len(kept)] >= point).all(axis=1).any():
            front[len(kept)] = point
            kept.append(at)
    return kept
