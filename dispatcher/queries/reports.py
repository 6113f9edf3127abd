"""Intermediate metrics of many trials at once: all of some, the newest of each."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import MetricPoint

# Of a group with max(), SQLite takes the other columns from the row that has the greatest.
_NEWEST: Final = """
SELECT trial, attempt, count(*) AS many, max(seq) AS seq, at, final, counted, value, number
FROM metrics WHERE NOT final {which} GROUP BY trial, attempt ORDER BY trial, attempt
"""


@dataclass(frozen=True, slots=True)
class NewestReport:
    """The intermediate metrics of one attempt: how many there are, and the newest of them."""

    trial: int
    many: int
    point: MetricPoint


def newest_reports(
    reader: ExperimentReader, numbers: Sequence[int] | None = None
) -> list[NewestReport]:
    """Read the newest intermediate metric of each attempt, in the order of trials and attempts.

    Args:
        reader: the experiment.
        numbers: only of these trials; None: of all.
    """
    found = reader.rows_about(_NEWEST, "AND trial IN ({marks})", numbers)
    return [NewestReport(row["trial"], row["many"], MetricPoint.from_row(row)) for row in found]


def metrics_between(
    reader: ExperimentReader, first: int, last: int
) -> dict[int, list[MetricPoint]]:
    """Read the metrics of trials by number, in the order in which each reported them.

    Args:
        reader: the experiment.
        first: the first trial.
        last: the last one.
    """
    found: dict[int, list[MetricPoint]] = {}
    for row in reader.rows(
        "SELECT * FROM metrics WHERE trial BETWEEN ? AND ? ORDER BY trial, attempt, seq",
        (first, last),
    ):
        found.setdefault(row["trial"], []).append(MetricPoint.from_row(row))
    return found
