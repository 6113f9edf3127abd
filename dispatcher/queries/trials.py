"""Trials: lists of them, the best of them, all about one of them."""

from __future__ import annotations

import difflib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Final

from dispatcher.errors import UserError
from dispatcher.queries.cells import named_columns
from dispatcher.queries.losses import reason_of_loss
from dispatcher.queries.names import Sql
from dispatcher.queries.notes import annotations_of, given_to, trials_with_annotations
from dispatcher.queries.objectives import bounds_as_sql
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import (
    SUMMARY_COLUMNS,
    Attempt,
    MetricPoint,
    OptimizeMode,
    TrialDetail,
    TrialSummary,
)
from dispatcher.queries.where import parse_condition


class TrialNotFound(UserError):
    """Raised when an experiment has no trial of that number."""


class TrialSort(StrEnum):
    """Sort keys of a list of trials; trials without a value come last."""

    ID = "id"
    VALUE = "value"
    STATE = "state"
    STARTED = "started"
    ENDED = "ended"
    DURATION = "duration"


#: As tables call them.
_HEADINGS: Final = {
    "trial": TrialSort.ID,
    "result": TrialSort.VALUE,
    "took": TrialSort.DURATION,
}


def sort_key(reader: ExperimentReader, word: str) -> TrialSort | Sql:
    """Read what a user typed to sort by: a key, or any column or parameter by its name in a
    condition. Raises ``UserError`` that names the nearest."""
    if word in _HEADINGS:
        return _HEADINGS[word]
    if word in list(TrialSort):
        return TrialSort(word)
    near = difflib.get_close_matches(word, [*TrialSort, *_HEADINGS], n=1)
    try:
        named = named_columns(reader, word, "sort")
    except UserError as error:
        hint = f"did you mean {str(near[0])!r}?" if near else error.hint
        raise UserError(
            f"trials cannot be sorted by {word!r}: {error.message}", hint=hint
        ) from None
    if len(named) != 1:
        raise UserError(
            f"trials are sorted by one column, not by {word!r}",
            hint=f"write one of {', '.join(TrialSort)}, or the name of a parameter",
        )
    return next(iter(named.values()))


@dataclass(frozen=True, slots=True)
class TrialFilter:
    """A choice of trials; empty or None does not restrict it.

    ``shown`` are names of either kind, a state or an outcome. ``live`` takes those that have not
    ended (True), or those that have (False).
    """

    states: tuple[str, ...] = ()
    outcomes: tuple[str, ...] = ()
    shown: tuple[str, ...] = ()
    parent: int | None = None
    by_hand: bool | None = None
    with_value: bool | None = None
    live: bool | None = None
    condition: str = ""  # as people type it, see dispatcher/queries/where.py

    def where(self) -> tuple[str, list[object]]:
        """Return SQL's condition and its values. Raises ``WhereError``."""
        terms: list[str] = []
        values: list[object] = []
        for column, names in (("state", self.states), ("outcome", self.outcomes)):
            if names:
                terms.append(f"{column} IN ({', '.join('?' * len(names))})")
                values.extend(names)
        if self.shown:
            marks = ", ".join("?" * len(self.shown))
            terms.append(f"(state IN ({marks}) OR outcome IN ({marks}))")
            values.extend((*self.shown, *self.shown))
        for column, value in (("parent", self.parent), ("by_hand", self.by_hand)):
            if value is not None:
                terms.append(f"{column} = ?")
                values.append(value)
        if self.with_value is not None:
            terms.append(f"number IS {'NOT ' if self.with_value else ''}NULL")
        if self.live is not None:
            terms.append(f"state {'<>' if self.live else '='} 'ended'")
        if self.condition:
            typed = parse_condition(self.condition)
            terms.append(typed.text)
            values.extend(typed.values)
        return " AND ".join(terms) or "1", values


#: What a list of trials reads of each.
_SUMMARY = ", ".join(SUMMARY_COLUMNS)

_SORTS: dict[TrialSort, str] = {
    TrialSort.ID: "id",
    TrialSort.VALUE: "number",
    TrialSort.STATE: "state",
    TrialSort.STARTED: "started_at",
    TrialSort.ENDED: "ended_at",
    TrialSort.DURATION: "wall_s",
}


def list_trials(
    reader: ExperimentReader,
    wanted: TrialFilter = TrialFilter(),
    *,
    sort: TrialSort | Sql = TrialSort.ID,
    descending: bool | None = None,
    limit: int | None = None,
) -> list[TrialSummary]:
    """List trials in order.

    Args:
        reader: the experiment.
        wanted: which trials.
        sort: by value, the best come first; an expression of :func:`sort_key` is for any column.
        descending: None: ascending, but for values.
        limit: at most so many; None: all.

    Raises:
        WhereError: the condition cannot be read.
    """
    where, values = wanted.where()
    if descending is None:
        order = reader.mode.order if sort is TrialSort.VALUE else "ASC"
    else:
        order = "DESC" if descending else "ASC"
    by = Sql(_SORTS[sort], ()) if isinstance(sort, TrialSort) else sort
    # Of the key SQLite knows the order, so that it reads no further than to the limit.
    ordered = f"id {order}" if by.text == "id" else f"{by.text} {order} NULLS LAST, id"
    return _read(
        reader,
        f"WHERE {where} ORDER BY {ordered}",
        [*values, *by.values],
        limit,
    )


def best(
    reader: ExperimentReader, n: int = 1, mode: OptimizeMode | None = None, condition: str = ""
) -> list[TrialSummary]:
    """Find the best trials whose results were delivered to the tuner; of equals the first. Trials
    that break a bound of the objectives are left out.

    Args:
        reader: the experiment.
        n: at most so many.
        mode: which values are best; None: as the experiment says.
        condition: only trials for which it holds, as people type it.

    Raises:
        WhereError: the condition cannot be read.
    """
    order = (mode or reader.mode).order
    where, values = TrialFilter(with_value=True, condition=condition).where()
    kept = bounds_as_sql(reader)
    which = f"WHERE told IS NOT NULL AND {where} AND {kept.text} ORDER BY number {order}, id"
    return _read(reader, which, [*values, *kept.values], n)


def _read(
    reader: ExperimentReader, which: str, values: Sequence[object], limit: int | None
) -> list[TrialSummary]:
    """Read trials in an order. Few of many are chosen by number first: what is sorted is small."""
    source = trials_with_annotations(reader)
    if limit is None:
        rows = reader.rows(f"SELECT {_SUMMARY} FROM {source} {which}", values)  # noqa: S608 - ours
        return [TrialSummary.of(row) for row in rows]
    with reader.moment():
        chosen = reader.rows(f"SELECT id FROM {source} {which} LIMIT ?", (*values, limit))  # noqa: S608
        return numbered(reader, [row["id"] for row in chosen])


def numbered(reader: ExperimentReader, numbers: Sequence[int]) -> list[TrialSummary]:
    """Return trials by their numbers, in this order. In the moment in which they were chosen."""
    source = trials_with_annotations(reader)
    query = f"SELECT {_SUMMARY} FROM {source} WHERE id IN ({{marks}})"  # noqa: S608
    found = {row[0]: TrialSummary.of(row) for row in reader.rows_among(query, numbers)}
    return [found[number] for number in numbers]


def trial(reader: ExperimentReader, number: int) -> TrialDetail:
    """Return all about one trial. Raises :class:`TrialNotFound`."""
    with reader.moment():
        row = reader.row(
            f"SELECT trials.*, {given_to(reader)} FROM trials WHERE id = ?",  # noqa: S608
            (number,),
        )
        if row is None:
            raise _not_found(reader, number)
        summary = TrialSummary.from_row(row)
        children = reader.rows("SELECT id FROM trials WHERE parent = ? ORDER BY id", (number,))
        return TrialDetail(
            trial=summary,
            attempts=_with_losses(reader, number, attempts_of(reader, [summary])[number]),
            metrics=tuple(metrics(reader, number)),
            children=tuple(child["id"] for child in children),
            notes=annotations_of(reader, number).notes,
        )


def demand_trial(reader: ExperimentReader, number: int) -> None:
    """Raise :class:`TrialNotFound` unless there is such a trial."""
    if reader.row("SELECT 1 FROM trials WHERE id = ?", (number,)) is None:
        raise _not_found(reader, number)


def metrics(
    reader: ExperimentReader,
    number: int,
    *,
    attempt: int | None = None,
    after: int = 0,
    most: int | None = None,
) -> list[MetricPoint]:
    """Return a trial's metrics in the order in which they were reported.

    Args:
        reader: the experiment.
        number: the trial.
        attempt: only those of this attempt.
        after: only those whose ``seq`` is above it, for following one attempt.
        most: at most so many; None: all.
    """
    rows = reader.rows(
        "SELECT * FROM metrics WHERE trial = ? AND (? IS NULL OR attempt = ?) AND seq > ? "
        "ORDER BY attempt, seq LIMIT ?",
        (number, attempt, attempt, after, -1 if most is None else most),
    )
    return [MetricPoint.from_row(row) for row in rows]


def attempts_of(
    reader: ExperimentReader, summaries: Sequence[TrialSummary]
) -> dict[int, tuple[Attempt, ...]]:
    """Map trials to their attempts, in their order. In the moment in which the trials were read."""
    found: dict[int, list[Attempt]] = {summary.id: [] for summary in summaries}
    known = {summary.id: summary for summary in summaries}
    query = "SELECT * FROM attempts WHERE trial IN ({marks}) ORDER BY trial, attempt"
    for row in reader.rows_among(query, tuple(known)):
        found[row["trial"]].append(Attempt.from_row(row, known[row["trial"]]))
    return {trial: tuple(attempts) for trial, attempts in found.items()}


def _with_losses(
    reader: ExperimentReader, trial: int, attempts: Sequence[Attempt]
) -> tuple[Attempt, ...]:
    """The same, with why those that nobody has seen end were lost."""
    return tuple(
        replace(each, text=reason_of_loss(reader, trial, each.number, each.worker))
        if each.end_reason == "lost" and each.ended_at is None and each.text is None
        else each
        for each in attempts
    )


def _not_found(reader: ExperimentReader, number: int) -> TrialNotFound:
    row = reader.row("SELECT min(id), max(id) FROM trials")
    known = row is not None and row[0] is not None
    assert row is not None
    return TrialNotFound(
        f"experiment {reader.id} has no trial {number}",
        hint=f"its trials are numbered {row[0]} to {row[1]}" if known else "it has none yet",
    )
