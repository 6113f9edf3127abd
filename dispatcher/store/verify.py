"""A check of the read models against the journal, and their repair.

The fold is :func:`dispatcher.core.apply` itself, so a replay cannot differ from the run; what can
differ is a read model that a fault of ours, or somebody's editor, has changed.

In a compacted store the fold begins with the base. What it proves of a trial whose events are
gone is that its rows are those that were there when they went (by their digest), not that
these were right; nor can these rows be made again.
"""

from __future__ import annotations

import contextlib
import sqlite3
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from dispatcher import core
from dispatcher.core.events import ExperimentCreated, MetricReported
from dispatcher.core.model import State, TrialState
from dispatcher.errors import DispatcherError, StoreError
from dispatcher.ports import JournalEntry
from dispatcher.state_codec import decode_state
from dispatcher.store.checksums import state_fits
from dispatcher.store.compaction import Compaction, Seeds, digest_of, seeds_of
from dispatcher.store.early_stops import mended, recall, rows_as_judged
from dispatcher.store.faults import UNREADABLE, store_errors
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.schema import TABLES, Table, attempts, journalled_columns, trials
from dispatcher.store.touches import count_anew, damaged_counts, next_touch_of_damaged
from dispatcher.store.trial_rows import write_rows
from dispatcher.store.values import number_of

#: When a batch takes a trial through several states at once, the head writes the last of them and
#: a replay sees each: the moment of a trial's birth may then differ by that batch's length.
_NOT_COMPARED: Final = frozenset({"asked_at"})

#: A replay does not know in which batches events came, so it does not count changes.
_UNCOUNTED: Final = 0

_DIFFERENCES_SHOWN: Final = 100


@dataclass(frozen=True, slots=True)
class Difference:
    """A place where the read model and the journal disagree."""

    table: str
    key: tuple[int, ...]
    column: str  # "" when the whole row is missing, or should not be there
    stored: Any
    journalled: Any
    folded: bool = False  # its events are gone, and its rows are not those of then

    def __str__(self) -> str:
        row = f"{self.table} {'.'.join(map(str, self.key))}"
        if self.folded:
            return f"{row}: has changed, or is gone, since its events were compacted"
        if not self.column:
            return f"{row}: {'missing' if self.stored is None else 'not in the journal'}"
        return f"{row}: {self.column} is {self.stored!r}, the journal says {self.journalled!r}"


@dataclass(frozen=True, slots=True)
class Verification:
    """The result of a check; at most a hundred differences are listed."""

    events: int
    trials: int
    damage: tuple[str, ...]  # what SQLite's own check found
    broken_at: str  # where the replay stopped, or ""
    differences: tuple[Difference, ...]
    mended: str = ""  # what an older bequeath could not have read, in a sentence

    @property
    def ok(self) -> bool:
        """Whether all of it holds."""
        return not (self.damage or self.broken_at or self.differences)

    def to_json(self) -> dict[str, Any]:
        """Return plain values for JSON."""
        return {
            "events": self.events,
            "trials": self.trials,
            "damage": list(self.damage),
            "broken_at": self.broken_at,
            "differences": [str(difference) for difference in self.differences],
            "mended": self.mended,
        }


def verify(path: Path) -> Verification:
    """Replay the journal and compare. Completes an interrupted compaction and changes nothing
    else; blocks for about 30 µs an event.

    Raises ``StoreError`` when the store cannot be opened at all. Not for a store whose head
    is running: what it writes meanwhile would be taken for a difference.
    """
    differences: list[Difference] = []
    with contextlib.closing(SqliteJournal.open(path)) as journal, store_errors(path):
        damage = _damage(journal)
        replayed = replay_rows(journal)
        model, events, broken_at = replayed.model, replayed.row, replayed.broken_at
        differences.extend(replayed.changed)
        try:
            for table in (trials, attempts):
                differences.extend(_compare(journal.raw, model, table))
        except UNREADABLE as error:
            damage = damage or [str(error)]
        (count,) = model.execute("SELECT count(*) FROM trials").fetchone()
        model.close()
        state = None if broken_at else replayed.state
        sentence = (
            "" if state is None else mended(journal.query, state, Compaction(journal).base_number())
        )
    return Verification(
        events, count, tuple(damage), broken_at, tuple(differences[:_DIFFERENCES_SHOWN]), sentence
    )


def rebuild(path: Path) -> int:
    """Make the read models again from the journal, in one transaction. Returns the trials.

    Raises:
        StoreError: the journal cannot be replayed to its end; nothing has changed.
    """
    with contextlib.closing(SqliteJournal.open(path)) as journal, store_errors(path):
        replayed = replay_rows(journal)
        model = replayed.model
        if replayed.broken_at:
            text = f"the journal cannot be replayed: {replayed.broken_at}"
            raise StoreError(text, where=str(path))
        raw = journal.raw
        raw.execute("BEGIN IMMEDIATE")
        touch = next_touch_of_damaged(raw)
        for table in (trials, attempts):
            names, marks = _names(table), ", ".join("?" * len(journalled_columns(table)))
            raw.execute(f"DELETE FROM {table.name}")  # noqa: S608 - our own names
            raw.executemany(
                f"INSERT INTO {table.name} ({names}) VALUES ({marks})",  # noqa: S608
                model.execute(f"SELECT {names} FROM {table.name}"),  # noqa: S608
            )
        count_anew(raw, touch)
        raw.execute("COMMIT")
        (count,) = raw.execute("SELECT count(*) FROM trials").fetchone()
        model.close()
        return int(count)


def _damage(journal: SqliteJournal) -> list[str]:
    """List damage that SQLite finds in the file, which may be too damaged for it to finish; and
    tuner states and metrics that are not as they were written."""
    found: list[str] = []
    try:
        found.extend(text for (text,) in journal.raw.execute("PRAGMA integrity_check(20)"))
        states = journal.raw.execute("SELECT n, state, crc FROM snapshots WHERE crc NOT NULL")
        found.extend(
            f"the tuner's state as of row {number} does not fit its checksum"
            for number, state, crc in states
            if not state_fits(crc, number, state)
        )
        metrics = journal.raw.execute("SELECT trial, attempt, seq, value, number FROM metrics")
        found.extend(
            f"metric {seq} of trial {trial}, attempt {attempt}, has changed"
            for trial, attempt, seq, value, number in metrics
            if not _is_worth(value, number)
        )
        if damaged := damaged_counts(journal.raw):
            found.append(f"the number of the newest change cannot be in {damaged} rows")
        for table in TABLES:  # texts that are none any more are found by reading
            for _row in journal.raw.execute(f"SELECT * FROM {table.name}"):  # noqa: S608 - our names
                pass
    except UNREADABLE as error:
        found.append(str(error))
    return [text for text in found if text != "ok"]


def _is_worth(value: object, number: object) -> bool:
    """Whether a metric and its number still fit: each is the other's checksum."""
    try:
        return isinstance(value, str) and number_of(value) == number
    except ValueError:
        return False


class ReplayedStore(NamedTuple):
    """The read models as the journal makes them, in memory, with the state beside them."""

    model: sqlite3.Connection
    state: State | None
    row: int  # the last one that was read
    broken_at: str  # why it was the last one, or ""
    changed: list[Difference]  # trials whose events are gone, and whose rows are others now


def replay_rows(journal: SqliteJournal, upto: int | None = None) -> ReplayedStore:
    """Make the read models from the base and the rows after it, up to row ``upto``.

    The store itself is completed where a compaction was interrupted, and otherwise left alone.
    """
    model = sqlite3.connect(":memory:", isolation_level=None)
    for table in (trials, attempts):
        model.execute(table.create_sql)
    state: State | None = None
    folded: set[int] = set()
    number = 0
    try:
        compaction = Compaction(journal)
        while compaction.tidy():
            pass
        base = compaction.base()
        if base is not None:
            number, state = base.number, decode_state(base.parts)
            recall(journal, state)
            folded = _begin_with_base(journal.raw, model, state, compaction.seeds())
        mentioned: set[int] = set()
        for number, at, event in rows_as_judged(journal, base.number if base else 0):
            if upto is not None and number > upto:
                number = upto
                break
            if isinstance(event, ExperimentCreated):
                state = core.new_state(event.settings)
            if state is None:
                return ReplayedStore(
                    model, None, number, f"row {number}: no ExperimentCreated before it", []
                )
            worker = core.worker_of(state.trials, event)
            counted = core.apply(state, event, at).counted
            if isinstance(event, MetricReported):
                continue
            touched = {trial: state.trials[trial] for trial in state.dirty}
            state.dirty.clear()
            mentioned.update(touched)
            mentioned.add(getattr(event, "trial", -1))
            write_rows(model, (JournalEntry(at, event, counted, worker),), touched, _UNCOUNTED)
    except DispatcherError as error:
        return ReplayedStore(model, state, number, f"row {number}: {error.message}", [])
    return ReplayedStore(model, state, number, "", _changed(journal.raw, folded - mentioned))


def _begin_with_base(
    raw: sqlite3.Connection, model: sqlite3.Connection, state: State, seeds: Seeds
) -> set[int]:
    """Fill the model with its rows as of the base; return the trials of which nothing but these
    rows is known."""
    seeded = {int(row[0]) for row in seeds[0]}
    digested = {int(row[0]) for row in raw.execute("SELECT trial FROM folded")}
    over = {t.id for t in state.trials.values() if t.state is TrialState.ENDED}
    folded = {int(one) for one in over & digested} - seeded
    for number in sorted(folded):
        rows = seeds_of(raw, (number,))
        _insert(model, trials, rows[0])
        _insert(model, attempts, rows[1])
    _insert(model, trials, seeds[0])
    _insert(model, attempts, seeds[1])
    # Rows that lagged behind when the base was made were written soon afterwards.
    rest = {t.id: t for t in state.trials.values() if t.id not in folded}
    write_rows(model, (), rest, _UNCOUNTED)
    return folded


def _insert(model: sqlite3.Connection, table: Table, rows: list[list[Any]]) -> None:
    marks = ", ".join("?" * len(journalled_columns(table)))
    names = _names(table)
    model.executemany(f"INSERT INTO {table.name} ({names}) VALUES ({marks})", rows)  # noqa: S608


def _changed(raw: sqlite3.Connection, folded: set[int]) -> list[Difference]:
    """List folded trials whose rows have changed since."""
    digests = dict(raw.execute("SELECT trial, digest FROM folded"))
    return [
        Difference("trials", (number,), "", None, None, folded=True)
        for number in sorted(folded)
        if digest_of(raw, number) != digests[number]
    ]


def _names(table: Table) -> str:
    return ", ".join(journalled_columns(table))


def _compare(
    raw: sqlite3.Connection, model: sqlite3.Connection, table: Table
) -> Iterator[Difference]:
    """Walk both tables in the order of their keys, which are their first columns."""
    keys = len(table.key)
    order = ", ".join(str(n + 1) for n in range(keys))
    query = f"SELECT {_names(table)} FROM {table.name} ORDER BY {order}"  # noqa: S608 - our names
    stored, made = raw.execute(query), model.execute(query)
    columns = [description[0] for description in made.description]
    ours, theirs = stored.fetchone(), made.fetchone()
    while ours is not None or theirs is not None:
        if ours is not None and not all(isinstance(part, int) for part in ours[:keys]):
            yield Difference(table.name, ours[:keys], "", ours, None)  # a number no more
            ours = stored.fetchone()
            continue
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
