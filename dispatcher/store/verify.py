"""Whether the read models say what the journal says, and how to make them say it again.

The fold is :func:`dispatcher.core.apply` itself, so replay and life cannot differ; what can
differ is a read model that a fault of ours, or somebody's editor, has changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from sqlalchemy import Table
from sqlalchemy.schema import CreateTable

from dispatcher import core
from dispatcher.core.events import ExperimentCreated, MetricReported
from dispatcher.core.model import State
from dispatcher.errors import BequeathError, StoreError
from dispatcher.ports import Entry
from dispatcher.store.faults import store_error
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.schema import attempts, metadata, trials
from dispatcher.store.statements import compiled
from dispatcher.store.trial_rows import write_rows

#: When a batch takes a trial through several states at once, life sees the last of them and a
#: replay sees each: the moment of a trial's birth may then differ by that batch's length.
_NOT_COMPARED: Final = frozenset({"asked_at"})

_DIFFERENCES_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where the read model and the journal disagree."""

    table: str
    key: tuple[int, ...]
    column: str  # "" when the whole row is missing, or should not be there
    stored: Any
    journalled: Any

    def __str__(self) -> str:
        row = f"{self.table} {'.'.join(map(str, self.key))}"
        if not self.column:
            return f"{row}: {'missing' if self.stored is None else 'not in the journal'}"
        return f"{row}: {self.column} is {self.stored!r}, the journal says {self.journalled!r}"


@dataclass(frozen=True, slots=True)
class Verification:
    """What was checked and what was found; at most a hundred differences are listed."""

    events: int
    trials: int
    damage: tuple[str, ...]  # what SQLite's own check found
    broken_at: str  # where the replay stopped, or ""
    differences: tuple[Difference, ...]

    @property
    def ok(self) -> bool:
        """Whether all of it holds."""
        return not (self.damage or self.broken_at or self.differences)


def verify(path: Path) -> Verification:
    """Replay the journal and compare. Changes nothing; blocks for about 30 µs an event.

    Raises ``StoreError`` when the store cannot be opened at all. Not for a store whose head
    is running: what it writes meanwhile would be taken for a difference.
    """
    journal = SqliteJournal.open(path)
    differences: list[Difference] = []
    try:
        damage = _damage(journal.raw)
        model, events, broken_at = _replayed(journal)
        try:
            for table in (trials, attempts):
                differences.extend(_compare(journal.raw, model, table))
        except sqlite3.DatabaseError as error:
            damage = damage or [str(error)]
        (count,) = model.execute("SELECT count(*) FROM trials").fetchone()
        model.close()
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error
    finally:
        journal.close()
    return Verification(
        events, count, tuple(damage), broken_at, tuple(differences[:_DIFFERENCES_SHOWN])
    )


def rebuild(path: Path) -> int:
    """Make the read models again from the journal, in one transaction. Returns the trials.

    Raises:
        StoreError: the journal cannot be replayed to its end; nothing has changed.
    """
    journal = SqliteJournal.open(path)
    try:
        model, _, broken_at = _replayed(journal)
        if broken_at:
            raise StoreError(f"the journal cannot be replayed: {broken_at}", where=str(path))
        raw = journal.raw
        raw.execute("BEGIN IMMEDIATE")
        for table in (trials, attempts):
            names, marks = _names(table), ", ".join("?" * len(table.columns))
            raw.execute(f"DELETE FROM {table.name}")  # noqa: S608 - our own names
            raw.executemany(
                f"INSERT INTO {table.name} ({names}) VALUES ({marks})",  # noqa: S608
                model.execute(f"SELECT {names} FROM {table.name}"),  # noqa: S608
            )
        raw.execute("COMMIT")
        (count,) = raw.execute("SELECT count(*) FROM trials").fetchone()
        model.close()
        return int(count)
    except sqlite3.Error as error:
        raise store_error(error, str(path)) from error
    finally:
        journal.close()


def _damage(raw: sqlite3.Connection) -> list[str]:
    """What SQLite finds wrong with the file, which may be too damaged for it to finish."""
    found: list[str] = []
    try:
        found.extend(text for (text,) in raw.execute("PRAGMA integrity_check(20)"))
    except sqlite3.DatabaseError as error:
        found.append(str(error))
    return [text for text in found if text != "ok"]


def _replayed(journal: SqliteJournal) -> tuple[sqlite3.Connection, int, str]:
    """The read models as the journal makes them, in memory; events; where it broke, or ''."""
    model = sqlite3.connect(":memory:", isolation_level=None)
    for table in metadata.sorted_tables:
        if table in (trials, attempts):
            model.execute(compiled(CreateTable(table)))
    state: State | None = None
    number = 0
    try:
        for number, at, event in journal.rows():
            if isinstance(event, ExperimentCreated):
                state = core.new_state(event.settings)
            if state is None:
                return model, number, f"row {number}: no ExperimentCreated before it"
            counted = core.apply(state, event, at).counted
            if isinstance(event, MetricReported):
                continue
            touched = {trial: state.trials[trial] for trial in state.dirty}
            state.dirty.clear()
            write_rows(model, (Entry(at, event, counted),), touched)
    except BequeathError as error:
        return model, number, f"row {number}: {error.message}"
    return model, number, ""


def _names(table: Table) -> str:
    return ", ".join(column.name for column in table.columns)


def _compare(
    raw: sqlite3.Connection, model: sqlite3.Connection, table: Table
) -> Iterator[Difference]:
    """Walk both tables in the order of their keys, which are their first columns."""
    keys = len(table.primary_key.columns)
    order = ", ".join(str(n + 1) for n in range(keys))
    query = f"SELECT {_names(table)} FROM {table.name} ORDER BY {order}"  # noqa: S608 - our names
    stored, made = raw.execute(query), model.execute(query)
    columns = [description[0] for description in made.description]
    ours, theirs = stored.fetchone(), made.fetchone()
    while ours is not None or theirs is not None:
        key = min(row[:keys] for row in (ours, theirs) if row is not None)
        has_ours = ours is not None and ours[:keys] == key
        has_theirs = theirs is not None and theirs[:keys] == key
        if has_ours and has_theirs:
            for column, a, b in zip(columns, ours, theirs, strict=True):
                if a != b and column not in _NOT_COMPARED:
                    yield Difference(table.name, key, column, a, b)
        else:
            yield Difference(
                table.name, key, "", ours if has_ours else None, theirs if has_theirs else None
            )
        ours = stored.fetchone() if has_ours else ours
        theirs = made.fetchone() if has_theirs else theirs
