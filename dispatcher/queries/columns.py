"""Trials as rows of a table that a page holds: plain values, parameters in columns of their own."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Final

from dispatcher.queries.export import flat_parameters, flatten
from dispatcher.queries.notes import given_to
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import json_value

_TRIALS: Final = """
SELECT {given}, t.id, t.state, t.outcome, t.parent, t.number, t.asked_at, t.proposed_at, t.since,
       t.started_at, t.ended_at, t.attempt, t.worker, t.parameters,
       coalesce(t.told, t.final) AS result, p.trial IS NOT NULL AS pinned
FROM trials t LEFT JOIN pins p ON p.trial = t.id
"""

# Of a group with max(), SQLite takes the other columns from the row that has the greatest.
_REPORTED: Final = """
SELECT trial, attempt, count(*) AS many, max(seq) AS seq, number FROM metrics
WHERE counted AND NOT final {which} GROUP BY trial, attempt ORDER BY trial, attempt
"""


@dataclass(frozen=True, slots=True)
class FlatTrial:
    """One trial. ``reports`` counts the intermediate metrics of the newest attempt that has any,
    ``latest`` is the newest of them."""

    trial: int
    state: str
    outcome: str | None
    parent: int | None
    value: float | None
    created: float | None
    started: float | None
    ended: float | None
    attempts: int
    reports: int
    latest: float | None
    worker: str | None
    pinned: int
    tags: str | None  # in order, with spaces between them, as no tag has one
    starred: int
    notes: int  # how many
    parameters: dict[str, Any]  # nested ones by names with dots
    metrics: dict[str, Any]  # of the final result, without ``default``


def flat_trials(reader: ExperimentReader, numbers: Sequence[int] | None = None) -> list[FlatTrial]:
    """Read trials by number, in order; within a moment of the caller's, as of that.

    Args:
        reader: the experiment.
        numbers: only these, those that there are; None: all.
    """
    with reader.moment():
        reported = reader.rows_about(_REPORTED, "AND trial IN ({marks})", numbers)
        latest = {row["trial"]: (row["many"], row["number"]) for row in reported}
        trials = _TRIALS.format(given=given_to(reader, "t.id")) + "{which} ORDER BY t.id"
        rows = reader.rows_about(trials, "WHERE t.id IN ({marks})", numbers)
        return [_flat(row, *latest.get(row["id"], (0, None))) for row in rows]


def _flat(row: Any, reports: int, latest: float | None) -> FlatTrial:
    result = json_value(row["result"])
    beside = result if isinstance(result, dict) else {}
    created = row["asked_at"] if row["asked_at"] is not None else row["proposed_at"]
    return FlatTrial(
        trial=row["id"],
        state=row["state"],
        outcome=row["outcome"],
        parent=row["parent"],
        value=row["number"],
        created=row["since"] if created is None else created,
        started=row["started_at"],
        ended=row["ended_at"],
        attempts=row["attempt"],
        reports=reports,
        latest=latest,
        worker=row["worker"],
        pinned=int(row["pinned"]),
        tags=" ".join(sorted(json_value(row["tags"]))) or None,
        starred=int(row["starred"]),
        notes=row["notes"],
        parameters=flat_parameters(row["parameters"]),
        metrics=flatten({k: v for k, v in beside.items() if k != "default"}, ""),
    )


@dataclass(frozen=True, slots=True)
class Curve:
    """The intermediate metrics of one trial's newest attempt that has any, in their order."""

    trial: int
    steps: list[int]
    values: list[float]


def curve(reader: ExperimentReader, trial: int, name: str = "", *, most: int = 100_000) -> Curve:
    """Read a curve; of more than ``most`` points the newest.

    Args:
        reader: the experiment.
        trial: its number; one that is not there has no points.
        name: of the metric, where values are objects; empty: the number by which trials are
            compared.
        most: points at most.
    """
    number = "CASE json_valid(value) WHEN 1 THEN json_extract(value, ?) END" if name else "number"
    path = ('$."' + name.replace('"', "") + '"',) if name else ()
    rows = reader.rows(
        f"SELECT seq, {number} AS value FROM metrics WHERE trial = ? AND counted AND NOT final "  # noqa: S608
        "AND attempt = (SELECT max(attempt) FROM metrics WHERE trial = ? AND counted AND NOT final)"
        " ORDER BY seq DESC LIMIT ?",
        (*path, trial, trial, most),
    )
    points = [
        (row["seq"], float(row["value"]))
        for row in reversed(rows)
        if isinstance(row["value"], int | float)
    ]
    return Curve(trial, [step for step, _ in points], [value for _, value in points])
