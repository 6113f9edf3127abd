"""Several objectives: the trials that no other one beats in all of them."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import TypeAlias

from dispatcher.queries.notes import trials_with_annotations
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import OptimizeMode, TrialSummary
from dispatcher.queries.where import parse_condition

#: By name, in the order of the tuner's argument.
Objectives: TypeAlias = dict[str, OptimizeMode]

_POINT = tuple[float, ...]


def objectives(reader: ExperimentReader) -> Objectives:
    """Read the objectives that the tuner's argument names; empty unless it names several."""
    tuner = reader.config.get("tuner")
    arguments = tuner.get("classArgs") if isinstance(tuner, Mapping) else None
    named = arguments.get("objectives") if isinstance(arguments, Mapping) else None
    if not isinstance(named, Mapping) or len(named) < 2:
        return {}
    return {str(name): OptimizeMode.of(mode) for name, mode in named.items()}


def objective_of(one: TrialSummary, name: str) -> float | None:
    """Return a finite number of the final result, by name; None if there is none."""
    value = one.result.get(name) if isinstance(one.result, dict) else None
    if value is None and name == "default":
        value = one.value
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        return None
    return float(value)


def front(reader: ExperimentReader, condition: str = "") -> list[TrialSummary]:
    """Find the Pareto front of delivered results, by the first objective, the best first; of equal
    results the first trial. Empty with one objective.

    Args:
        reader: the experiment.
        condition: only among trials for which it holds, as people type it.

    Raises:
        WhereError: the condition cannot be read.
    """
    wanted = objectives(reader)
    if not wanted:
        return []
    found: list[tuple[_POINT, TrialSummary]] = []
    where = parse_condition(condition)
    trials = f"SELECT * FROM {trials_with_annotations(reader)} WHERE told IS NOT NULL"  # noqa: S608
    for row in reader.rows(f"{trials} AND {where.text} ORDER BY id", where.values):
        one = TrialSummary.from_row(row)
        point = _point(one, wanted)
        if point is None or any(_at_least(other, point) for other, _ in found):
            continue
        found = [(other, known) for other, known in found if not _at_least(point, other)]
        found.append((point, one))
    return [one for _, one in sorted(found, key=lambda each: each[0], reverse=True)]


def _point(one: TrialSummary, wanted: Objectives) -> _POINT | None:
    """Return coordinates of which larger is better; None if one is missing."""
    point = []
    for name, mode in wanted.items():
        value = objective_of(one, name)
        if value is None:
            return None
        point.append(value if mode is OptimizeMode.MAXIMIZE else -value)
    return tuple(point)


def _at_least(one: _POINT, other: _POINT) -> bool:
    return all(a >= b for a, b in zip(one, other, strict=True))
