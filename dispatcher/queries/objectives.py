"""The objectives of a search: numbers of a result, which way each is better, and their bounds."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import TypeAlias

from dispatcher.queries.names import Scalar, Sql
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import OptimizeMode, TrialSummary
from tuners.objectives import Objective, bounded_ones, directions_of, number_of, written_objectives

#: By name, in the order of the file.
Objectives: TypeAlias = dict[str, OptimizeMode]


def objectives(reader: ExperimentReader) -> Objectives:
    """Read the objectives that have a direction; empty unless there are several."""
    named = {name: OptimizeMode(mode) for name, mode in directions_of(_known(reader)).items()}
    return named if len(named) > 1 else {}


def bounded(reader: ExperimentReader) -> tuple[Objective, ...]:
    """Read the objectives of an experiment that have a bound."""
    return bounded_ones(_known(reader))


def objective_of(one: TrialSummary, name: str) -> float | None:
    """Return a finite number of the final result, by name; None if there is none."""
    number = number_of(one.result, name)
    if number is None and name == "default":
        number = one.value
    return number if number is not None and math.isfinite(number) else None


def within(value: object, bounds: tuple[Objective, ...]) -> bool:
    """Whether a result keeps its bounds; one without a number that is bounded does not.

    Args:
        value: of the result, decoded.
        bounds: as :func:`bounded` has them.
    """
    numbers = [(one, number_of(value, one.name)) for one in bounds]
    return all(number is not None and one.beyond(number) <= 0 for one, number in numbers)


def bounds_as_sql(reader: ExperimentReader) -> Sql:
    """Return the condition on a trial whose result was delivered that it keeps its bounds."""
    terms: list[str] = []
    values: list[Scalar] = []
    for one in bounded(reader):
        number = "number"
        if one.name != "default":
            number = "CASE WHEN json_valid(told) THEN json_extract(told, ?) END"
            values.append(f"$.{json.dumps(one.name, ensure_ascii=False)}")
        terms.append(f"({number}) {'<=' if one.is_most else '>='} ?")
        values.append(one.bound)
    return Sql(" AND ".join(terms) or "1", tuple(values))


def _known(reader: ExperimentReader) -> tuple[Objective, ...]:
    tuner = reader.config.get("tuner")
    arguments = tuner.get("classArgs") if isinstance(tuner, Mapping) else None
    return written_objectives(reader.config.get("objectives"), arguments)
