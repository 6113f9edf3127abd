"""Keep the journal short: fold its beginning into a state, and remove what was folded.

A *base* is the core's whole state as of one row. Once it is committed a replay begins there,
and the rows up to it go in slices, each a short transaction of its own; a process that dies
between any two leaves a store that reads the same. What stays of a row that is gone: the
state, the read models' rows (with a digest, so that ``verify`` finds a change), and for a
tuner without ``state()`` the calls it has seen.

Never gone: row 1 and that of the base, which hold the moments of the beginning and of the last
event, and the waits of requests that are still open, by which retention knows likely
parents.
"""

from __future__ import annotations

import hashlib
import sqlite3
import time
import zlib
from collections.abc import Iterable
from typing import Any, Final

import msgspec

from dispatcher import state_codec
from dispatcher.core.model import State, TrialState
from dispatcher.ports import Base
from dispatcher.store.checksums import crc_of, fits
from dispatcher.store.faults import DamagedStore
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.schema import attempts, journalled_columns, trials
from trial_runtime.failpoints import failpoint

#: Rows since the base from which a new one is made; also ``ROWS_A_TRIAL`` for each trial that
#: it would hold, so that its cost for each row does not grow with their number.
ROWS_BETWEEN: Final = 50_000
ROWS_A_TRIAL: Final = 3

#: Rows removed, and trials digested, in one transaction: a few milliseconds.
SLICE_ROWS: Final = 2_000
SLICE_TRIALS: Final = 250

_TRIAL_COLUMNS: Final = ", ".join(journalled_columns(trials))
_ATTEMPT_COLUMNS: Final = ", ".join(journalled_columns(attempts))
_TRIAL: Final = f"SELECT {_TRIAL_COLUMNS} FROM trials WHERE id = ?"  # noqa: S608 - our names
_ATTEMPTS: Final = f"SELECT {_ATTEMPT_COLUMNS} FROM attempts WHERE trial = ? ORDER BY attempt"  # noqa: S608

_UNFOLDED: Final = """
    SELECT id FROM trials WHERE state = 'ended' AND id > ? AND id <= ?
        AND id NOT IN (SELECT trial FROM folded) ORDER BY id LIMIT ?
"""
_FOLD: Final = "INSERT OR REPLACE INTO folded (trial, digest) VALUES (?, ?)"
_REFOLDED: Final = """
    SELECT DISTINCT trial FROM journal JOIN folded USING (trial) WHERE n BETWEEN ? AND ?
"""
_REMOVE: Final = """
    DELETE FROM journal WHERE n BETWEEN ? AND ? AND NOT (kind = 'WaitStarted' AND trial IN
        (SELECT id FROM trials WHERE state IN ('open', 'blocked', 'parked')))
"""

#: Rows of the read models: of ``trials`` and of ``attempts``.
Seeds = tuple[list[list[Any]], list[list[Any]]]


class Compaction:
    """Implements :class:`dispatcher.ports.Compactor` for one open journal."""

    def __init__(self, journal: SqliteJournal, *, rows_between: int | None = None) -> None:
        self._journal = journal
        self._rows_between = ROWS_BETWEEN if rows_between is None else rows_between
        self._number = self.base_number()
        self._folded = -1  # trials up to here have their digests
        self._newest = self._newest_trial()
        self._cursor = 1  # rows up to here are gone, or stay
        self._tidy = self._number == 0

    # -- what there is ---------------------------------------------------------------------

    def base_number(self) -> int:
        """Return the base's row; 0 if there is none."""
        (row,) = self._journal.query("SELECT coalesce(max(n), 0) FROM bases")
        return int(row[0])

    def base(self) -> Base | None:
        """Read the state with which a replay begins; None if there is no base.

        Raises:
            DamagedStore: a checksum does not fit.
        """
        found = self._read()
        if found is None:
            return None
        number, state, _, parts = found
        contents = [state]
        for part, content, crc in self._journal.query("SELECT * FROM base_parts ORDER BY part"):
            if crc != crc_of(number, part, content):
                raise self._damaged(f"part {part} of the base does not fit its checksum")
            contents.append(content)
        if len(contents) != parts + 1:
            raise self._damaged(f"the base has {len(contents) - 1} parts of {parts}")
        return Base(number, tuple(contents))

    def seeds(self) -> Seeds:
        """Read the read models' rows as of the base, of the trials that were not over."""
        found = self._read()
        if found is None:
            return [], []
        seeds: Seeds = msgspec.msgpack.decode(found[2], type=Seeds)
        return seeds

    def _read(self) -> tuple[int, bytes, bytes, int] | None:
        rows = self._journal.query("SELECT n, at, state, seeds, parts, crc FROM bases")
        if not rows:
            return None
        number, at, state, seeds, parts, crc = rows[0]
        if crc != crc_of(number, at, state, seeds, b"%d" % parts):
            raise self._damaged(f"the state kept as of row {number} does not fit its checksum")
        return number, state, seeds, parts

    def past_calls(self) -> list[list[Any]]:
        """Read the calls up to the base of a tuner without a state of its own, in the form of
        :class:`dispatcher.store.replay.history.Past`.

        Raises:
            DamagedStore: a checksum does not fit.
        """
        calls: list[list[Any]] = []
        rows = self._journal.query("SELECT n, calls, crc FROM past_calls ORDER BY n")
        for number, packed, crc in rows:
            if not fits(crc, number, 0.0, packed):
                raise self._damaged(f"the tuner's calls up to row {number} do not fit a checksum")
            calls.extend(msgspec.msgpack.decode(zlib.decompress(packed)))
        return calls

    def _damaged(self, text: str) -> DamagedStore:
        hint = "restore the experiment from a backup"
        return DamagedStore(text, hint=hint, where=str(self._journal.path))

    # -- a new base ------------------------------------------------------------------------

    def due(self, state: State, row: int) -> bool:
        """Whether enough rows have gathered for a new base."""
        return row - self._number >= max(self._rows_between, ROWS_A_TRIAL * len(state.trials))

    def offer(self, state: State, row: int) -> None:
        """See the port. Makes a base as of ``row`` if one is due and no folding is under way."""
        if self._tidy and self.due(state, row):
            self.begin(state, row, seeds_of(self._journal.raw, not_over(state)))

    def begin(
        self, state: State, row: int, seeds: Seeds, calls: list[list[Any]] | None = None
    ) -> None:
        """Make ``state`` the base, as of ``row``. Durable when it returns.

        Args:
            state: as of ``row``.
            row: the number of a journal row.
            seeds: the read models as of ``row``, of the trials that are not over.
            calls: the tuner's calls since the base before, for a tuner
                without a state of its own; None where its own state is kept, as of ``row`` or
                later, so that its calls are needed no more.
        """
        packed = msgspec.msgpack.encode(seeds)
        at = state.now or time.time()
        with self._journal.transaction(durable=True) as raw:
            raw.execute("DELETE FROM bases")
            raw.execute("DELETE FROM base_parts")
            contents = state_codec.encode_state(state)
            first, parts = next(contents), 0
            for parts, content in enumerate(contents, 1):
                raw.execute(
                    "INSERT INTO base_parts (part, content, crc) VALUES (?, ?, ?)",
                    (parts, content, crc_of(row, parts, content)),
                )
            raw.execute(
                "INSERT INTO bases (n, at, state, seeds, parts, crc) VALUES (?, ?, ?, ?, ?, ?)",
                (row, at, first, packed, parts, crc_of(row, at, first, packed, b"%d" % parts)),
            )
            if calls is None:
                raw.execute("DELETE FROM past_calls")
            elif calls:
                blob = zlib.compress(msgspec.msgpack.encode(calls))
                raw.execute(
                    "INSERT OR REPLACE INTO past_calls (n, calls, crc) VALUES (?, ?, ?)",
                    (row, blob, crc_of(row, 0.0, blob)),
                )
            failpoint("compact.base.written")
        failpoint("compact.base.committed")
        self._number, self._folded, self._cursor, self._tidy = row, -1, 1, False
        self._newest = self._newest_trial()

    def _newest_trial(self) -> int:
        """Return the newest trial. Later ones are not in the base; digesting them would not end."""
        return int(self._journal.query("SELECT coalesce(max(id), -1) FROM trials")[0][0])

    # -- what goes -------------------------------------------------------------------------

    def tidy(self) -> bool:
        """See the port."""
        if self._tidy:
            return False
        span = (self._folded, self._newest, SLICE_TRIALS)
        with self._journal.transaction(durable=False) as raw:
            new = [int(one[0]) for one in raw.execute(_UNFOLDED, span)]
            if new:
                raw.executemany(_FOLD, self._digests(new))
                self._folded = new[-1]
            else:
                self._remove_slice()
            failpoint("compact.slice.written")
        failpoint("compact.slice.committed")
        return not self._tidy

    def _remove_slice(self) -> None:
        raw = self._journal.raw
        (first,) = raw.execute("SELECT min(n) FROM journal WHERE n > ?", (self._cursor,)).fetchone()
        if first is None or first >= self._number:
            self._tidy = True
            return
        last = min(first + SLICE_ROWS, self._number) - 1
        changed = [int(one[0]) for one in raw.execute(_REFOLDED, (first, last))]
        raw.executemany(_FOLD, self._digests(changed))
        raw.execute(_REMOVE, (first, last))
        self._cursor = last

    def _digests(self, numbers: Iterable[int]) -> list[tuple[int, bytes]]:
        return [(number, digest_of(self._journal.raw, number)) for number in numbers]

    def shrink(self) -> None:
        """Give the space of removed rows back to the disk. Blocks; takes as much space again
        for a while. Not while a head runs."""
        self._journal.query("VACUUM")
        self._journal.query("PRAGMA wal_checkpoint(TRUNCATE)")


def not_over(state: State) -> list[int]:
    """Return trials that have not ended in this state, or whose rows are yet to be written."""
    dirty = state.dirty
    return [t.id for t in state.trials.values() if t.state is not TrialState.ENDED or t.id in dirty]


def seeds_of(raw: sqlite3.Connection, numbers: Iterable[int]) -> Seeds:
    """Read the read models' rows of these trials, as they are now."""
    chosen = list(numbers)
    found = [list(row) for one in chosen for row in raw.execute(_TRIAL, (one,))]
    return found, [list(row) for one in chosen for row in raw.execute(_ATTEMPTS, (one,))]


def digest_of(raw: sqlite3.Connection, number: int) -> bytes:
    """Compute the digest of a trial's rows in the read models."""
    rows = [raw.execute(statement, (number,)).fetchall() for statement in (_TRIAL, _ATTEMPTS)]
    return hashlib.blake2b(msgspec.msgpack.encode(rows), digest_size=8).digest()
