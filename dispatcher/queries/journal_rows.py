"""The events of an experiment, as far as the journal still holds them.

To follow what trials *are*, see ``changes``: that is complete whatever was compacted.
"""

from __future__ import annotations

import sqlite3
from dataclasses import dataclass
from typing import Any, Final

import msgspec

from dispatcher.errors import StoreError, UserError
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import Record

#: Rows in one answer, at most.
MOST: Final = 10_000

#: The first schema whose journals can have been compacted.
_FOLDING: Final = "0002"


@dataclass(frozen=True, slots=True)
class JournalEvent(Record):
    """One row; ``fields`` are the event's own, see ``dispatcher.core.events``."""

    row: int
    at: float
    kind: str
    trial: int | None
    attempt: int | None
    fields: dict[str, Any]


@dataclass(frozen=True, slots=True)
class JournalSlice(Record):
    """Rows of the journal in their order; ``upto`` is what to ask after next.

    With ``gone_upto`` above 0 rows that were wanted, up to this one, were removed by a compaction,
    and the slice begins behind it. What they had done is in the trials, attempts and metrics: read
    those (``changes`` with the cursor that was kept beside the row, or anew), then go on from here.
    """

    rows: tuple[JournalEvent, ...]
    upto: int
    more: bool
    gone_upto: int


def journal_after(reader: ExperimentReader, row: int = 0, *, most: int = 1_000) -> JournalSlice:
    """Read the rows of the journal after one of them.

    Args:
        reader: the experiment.
        row: the last one that is known; 0 to begin with the first.
        most: rows in the answer; at least 1, at most ``MOST``.

    Raises:
        UserError: ``most`` is out of bounds.
        StoreError: the store cannot be read.
    """
    if not 1 <= most <= MOST:
        raise UserError(f"{most} rows cannot be asked for at once", hint=f"1 to {MOST:,} can")
    with reader.moment():
        gone_upto = _gone(reader, row)
        begin = max(row, gone_upto)
        rows = reader.rows(
            "SELECT n, at, kind, trial, attempt, payload FROM journal WHERE n > ? "
            "ORDER BY n LIMIT ?",
            (begin, most + 1),
        )
    events = tuple(_event(reader, one) for one in rows[:most])
    upto = events[-1].row if events else begin
    return JournalSlice(events, upto, more=len(rows) > most, gone_upto=gone_upto)


def _gone(reader: ExperimentReader, row: int) -> int:
    """Return the row up to which some of those after this one are gone; 0 if all are there."""
    if reader.schema < _FOLDING:
        return 0
    base = reader.row("SELECT coalesce(max(n), 0) FROM bases")
    upto = 0 if base is None else int(base[0])
    if row >= upto:
        return 0
    there = reader.row("SELECT count(*) FROM journal WHERE n > ? AND n <= ?", (row, upto))
    return upto if there is None or there[0] < upto - row else 0


def _event(reader: ExperimentReader, row: sqlite3.Row) -> JournalEvent:
    try:
        fields = msgspec.msgpack.decode(row["payload"], type=dict[str, Any])
    except (msgspec.DecodeError, TypeError, RecursionError) as error:
        raise StoreError(
            f"journal row {row['n']} cannot be read: {error}",
            hint="'bequeath experiment verify' says what is wrong with it",
            where=str(reader.folder),
        ) from error
    return JournalEvent(row["n"], row["at"], row["kind"], row["trial"], row["attempt"], fields)
