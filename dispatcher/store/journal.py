"""The journal: one transaction a batch, and the read models with it.

Every trial pays the cost of a batch several times over, so statements are compiled
once and run on SQLite's own connection, rows of a kind go in together, and a batch that
acknowledges nothing does not wait for the disk.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final, Self

from dispatcher import codec
from dispatcher.core.events import FinalReported, MetricReported, is_journalled
from dispatcher.core.model import Trial
from dispatcher.errors import ProtocolError, StoreError
from dispatcher.ports import JournalEntry, JournalRow, Snapshot
from dispatcher.store import statements
from dispatcher.store.checksums import crc_of, fits, state_fits
from dispatcher.store.connection import connect_reader
from dispatcher.store.faults import UNREADABLE, DamagedStore, Superseded, store_error, store_errors
from dispatcher.store.filesystem import refuse_network_filesystem
from dispatcher.store.migrate import open_up_to_date
from dispatcher.store.touches import begin_lead, next_touch
from dispatcher.store.trial_rows import Row, write_earlier, write_rows
from dispatcher.store.values import number_of
from trial_runtime.failpoints import failpoint

SNAPSHOTS_KEPT: Final = 2

# Rows up to that of the base may be gone, and their numbers are never given again.
_NEWEST: Final = """
    SELECT max((SELECT coalesce(max(n), 0) FROM journal), (SELECT coalesce(max(n), 0) FROM bases))
"""

# Rows fetched at a time while the journal is read back.
_ROWS_AT_ONCE: Final = 512

_SET_META: Final = "INSERT OR REPLACE INTO meta (key, value) VALUES (?, ?)"
_EPOCH: Final = "SELECT value FROM meta WHERE key = 'epoch'"

_ROWS_OF: Final = """
    SELECT n, at, kind, payload FROM journal WHERE trial = ? ORDER BY n DESC LIMIT ?
"""

# Final metrics are left out: they are in the journal, and are no intermediate results.
_LAST_METRIC: Final = """
    SELECT seq, value FROM metrics WHERE trial = ? AND attempt = ? AND counted AND NOT final
    ORDER BY seq DESC LIMIT 1
"""


class SqliteJournal:
    """Implements :class:`dispatcher.ports.Journal`. Keeps nothing of any trial in memory.

    Used by one thread at a time, the engine's; that there is one head only is
    :class:`~dispatcher.store.leadership.Leadership`'s business.
    """

    def __init__(self, path: Path, raw: sqlite3.Connection, epoch: int | None = None) -> None:
        self._path = path
        self._raw = raw
        self._epoch = epoch
        self._durable = True  # as connect_writer leaves it
        newest = self._raw.execute(_NEWEST).fetchone()
        self._last = int(newest[0])

    @classmethod
    def open(
        cls, path: Path, *, allow_network: bool | None = None, epoch: int | None = None
    ) -> Self:
        """Open the store for writing; make it if it is missing, migrate it if it is older.

        Args:
            path: the file; its folder exists.
            allow_network: take a network file system all the same; by default what the
                environment says, see :mod:`dispatcher.store.filesystem`.
            epoch: the number of the head that opens it. It is written down, and from then on
                a head with a smaller one can commit nothing: the fence that holds when an
                older head was only believed dead. None for a caller that does not lead.

        Raises:
            Superseded: a head with a greater epoch has opened it.
            StoreError: it lies on a network file system, was made by a newer bequeath, is
                damaged, or cannot be opened.
        """
        refuse_network_filesystem(path.parent, allow=allow_network)
        connection = open_up_to_date(path)
        try:
            with store_errors(path):
                journal = cls(path, connection, epoch)
            if epoch is not None:
                with journal.transaction(durable=True) as raw:
                    raw.execute(_SET_META, ("epoch", str(epoch)))
                    begin_lead(raw, epoch)
            return journal
        except BaseException:
            connection.close()
            raise

    @classmethod
    def at_this_moment(cls, path: Path) -> Self:
        """Open the store of this moment for reading, while a head may write on.

        Raises:
            StoreError: it cannot be opened.
        """
        return cls(path, connect_reader(path))

    @property
    def folder(self) -> Path:
        """See :attr:`dispatcher.ports.Journal.folder`."""
        return self._path.parent

    @property
    def last(self) -> int:
        """The number of the newest row."""
        return self._last

    @property
    def path(self) -> Path:
        """The file."""
        return self._path

    @property
    def raw(self) -> sqlite3.Connection:
        """SQLite's own connection, for the other modules of this room."""
        return self._raw

    def append(
        self,
        entries: Sequence[JournalEntry],
        touched: Iterable[Trial],
        *,
        durable: bool,
        earlier: Sequence[Trial] = (),
    ) -> int:
        """See :meth:`dispatcher.ports.Journal.append`. Blocks for the disk if ``durable``.

        Args:
            entries: as there.
            touched: as there.
            durable: as there.
            earlier: records as they were in the midst of a batch, in order: of requests when they
                were opened, and of trials before the core dropped what only the read model keeps.
        """
        number: int = self._last
        journal_rows: list[Row] = []
        metric_rows: list[Row] = []
        encode = codec.encode
        for at, event, counted, _ in entries:
            kind = type(event)
            if isinstance(event, MetricReported | FinalReported):
                metric_rows.append(_metric_row(at, event, counted))
            if not is_journalled(event):
                continue
            number += 1
            trial, attempt = getattr(event, "trial", None), getattr(event, "attempt", None)
            name, payload = kind.__name__, encode(event)
            crc = crc_of(number, at, name.encode(), payload)
            journal_rows.append((number, at, name, trial, attempt, payload, crc))
        records = {trial.id: trial for trial in touched}
        if not (journal_rows or metric_rows or records):
            return number
        with self.transaction(durable=durable) as raw:
            touch = next_touch(raw)
            if journal_rows:
                raw.executemany(statements.INSERT_JOURNAL, journal_rows)
            if metric_rows:
                rows = [(*row, touch) for row in metric_rows]
                raw.executemany(statements.INSERT_METRIC, rows)
            write_earlier(raw, earlier, touch)
            write_rows(raw, entries, records, touch)
            failpoint("journal.batch.written")
        self._last = number
        return number

    def rows(self, after: int = 0) -> Iterator[JournalRow]:
        """See :meth:`dispatcher.ports.Journal.rows`. Reads as it goes, little at a time.

        A row's checksum does not tell that it is there twice, and another one not at all: so it
        has the number after that of the row before.
        """
        number, newest = after, self._last
        try:
            cursor = self._raw.execute(
                "SELECT n, at, kind, payload, crc FROM journal WHERE n > ? ORDER BY n", (after,)
            )
            cursor.arraysize = _ROWS_AT_ONCE
            while batch := cursor.fetchmany():
                for following, at, kind, payload, crc in batch:
                    self._expect(number, following)
                    number = following
                    if not fits(crc, number, at, kind, payload):
                        raise ProtocolError("its checksum does not fit")
                    yield JournalRow(number, at, codec.decode(kind, payload))
            if number < newest:
                self._expect(number, newest + 1)
        except UNREADABLE as error:
            raise store_error(error, str(self._path)) from error
        except ProtocolError as error:
            raise DamagedStore(
                f"journal row {number} cannot be read: {error.message}",
                hint="it was damaged, or written by a newer bequeath",
                where=str(self._path),
            ) from error

    def _expect(self, number: int, following: int) -> None:
        """Refuse a gap between two rows, but for what was compacted."""
        if following == number + 1:
            return
        ((base,),) = self.query("SELECT coalesce(max(n), 0) FROM bases")
        if not number < following <= base + 1:
            raise DamagedStore(
                f"journal row {number + 1} is not where it belongs",
                hint="restore the experiment from a backup",
                where=str(self._path),
            )

    def rows_of(self, trial: int, most: int) -> list[JournalRow]:
        """Read the newest rows that name a trial, the newest first.

        Raises:
            StoreError: they cannot be read.
        """
        try:
            return [
                JournalRow(number, at, codec.decode(kind, payload))
                for number, at, kind, payload in self.query(_ROWS_OF, (trial, most))
            ]
        except ProtocolError as error:
            raise DamagedStore(
                f"rows of trial {trial} cannot be read: {error.message}",
                hint="they were damaged, or written by a newer bequeath",
                where=str(self._path),
            ) from error

    def last_metric(self, trial: int, attempt: int) -> tuple[int, str] | None:
        """See :meth:`dispatcher.ports.Journal.last_metric`."""
        found = self.query(_LAST_METRIC, (trial, attempt))
        return (found[0][0], found[0][1]) if found else None

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """See :meth:`dispatcher.ports.Journal.save_snapshot`. Durable when it returns."""
        number, state = snapshot
        with self.transaction(durable=True) as raw:
            raw.execute(
                "INSERT OR REPLACE INTO snapshots (n, state, crc) VALUES (?, ?, ?)",
                (number, state, crc_of(number, 0.0, state.encode())),
            )
            raw.execute(
                "DELETE FROM snapshots WHERE n NOT IN "
                "(SELECT n FROM snapshots ORDER BY n DESC LIMIT ?)",
                (SNAPSHOTS_KEPT,),
            )
            failpoint("journal.snapshot.written")

    def latest_snapshot(self) -> Snapshot | None:
        """See :meth:`dispatcher.ports.Journal.latest_snapshot`. One whose checksum does not
        fit is passed over while the one before it can serve.

        Raises:
            DamagedStore: there are tuner states, and none can be believed.
        """
        rows = self.query(
            "SELECT n, state, crc FROM snapshots "
            "WHERE n >= (SELECT coalesce(max(n), 0) FROM bases) ORDER BY n DESC"
        )
        for number, state, crc in rows:
            if state_fits(crc, number, state):
                return Snapshot(number, state)
        if rows:
            raise DamagedStore(
                "no tuner state that is kept fits its checksum",
                hint="restore the experiment from a backup",
                where=str(self._path),
            )
        return None

    def set_meta(self, key: str, value: str) -> None:
        """Keep a fact about the experiment, such as its id. Durable when it returns."""
        self._set_metas([(key, value)])

    def record_end(self, epoch: int, phase: str, reason: str) -> None:
        """Keep how this head's lead ended, for readers. Durable when it returns.

        A head that is killed records nothing; its epoch tells readers that what they find is
        of a head before it.

        Args:
            epoch: this head's.
            phase: a :class:`~dispatcher.core.model.Phase`'s value.
            reason: in a sentence; empty if there is none.
        """
        self._set_metas(
            [("phase_epoch", str(epoch)), ("phase", str(phase)), ("phase_reason", reason)]
        )

    def _set_metas(self, pairs: list[tuple[str, str]]) -> None:
        with self.transaction(durable=True) as raw:
            raw.executemany(_SET_META, pairs)

    def get_meta(self, key: str) -> str | None:
        """Read the fact, if it was kept."""
        rows = self.query("SELECT value FROM meta WHERE key = ?", (key,))
        return str(rows[0][0]) if rows else None

    def query(self, statement: str, values: Sequence[object] = ()) -> list[Any]:
        """Read all rows of a small result. Raises ``StoreError``."""
        with store_errors(self._path):
            return self._raw.execute(statement, values).fetchall()

    def interrupt(self) -> None:
        """End a read that is under way. From any thread, unless it is being closed."""
        self._raw.interrupt()

    def close(self) -> None:
        """See :meth:`dispatcher.ports.Journal.close`. Idempotent."""
        try:
            self._raw.execute("PRAGMA optimize")
            self._raw.execute("PRAGMA wal_checkpoint(PASSIVE)")
        except sqlite3.Error:
            pass  # closed before; or tidying up only: what was committed is read from the log
        finally:
            self._raw.close()

    @contextmanager
    def transaction(self, *, durable: bool) -> Iterator[sqlite3.Connection]:
        """Run the block's statements, all of them or none; with ``durable``, on disk at its end.

        Raises:
            Superseded: another head leads.
            StoreError: SQLite failed; nothing of the block is on disk.
        """
        try:
            self._set_durable(durable)
            self._begin()
            yield self._raw
            self._raw.execute("COMMIT")
        except UNREADABLE as error:
            raise self._given_up(error) from error
        except BaseException:
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
            raise

    def _begin(self) -> None:
        """Take the write lock, and check whether we may still write: under the lock, so that no
        head can have taken over between the check and our commit."""
        self._raw.execute("BEGIN IMMEDIATE")
        if self._epoch is None:
            return
        row = self._raw.execute(_EPOCH).fetchone()
        if row is not None and int(row[0]) > self._epoch:
            self._raw.execute("ROLLBACK")
            raise Superseded(
                f"head {row[0]} leads this experiment now, so head {self._epoch} may write no more",
                hint="this head ends; 'bequeath status' shows the one that leads",
                where=str(self._path),
            )

    def _set_durable(self, durable: bool) -> None:
        """FULL waits for the disk at each commit, NORMAL does not. Must precede ``BEGIN``:
        inside a transaction SQLite ignores it. Costs 2 µs, so only when it changes."""
        if durable is not self._durable:
            self._raw.execute(f"PRAGMA synchronous={'FULL' if durable else 'NORMAL'}")
            self._durable = durable

    def _given_up(self, error: sqlite3.Error | UnicodeDecodeError) -> StoreError:
        """Take the transaction back and return the error to raise. Nothing of it is on disk."""
        try:
            if self._raw.in_transaction:
                self._raw.execute("ROLLBACK")
        except sqlite3.Error:
            pass  # the first error is the one that tells
        return store_error(error, str(self._path))


def _metric_row(at: float, event: MetricReported | FinalReported, counted: bool) -> Row:
    value = event.value
    final = isinstance(event, FinalReported)
    return (event.trial, event.attempt, event.seq, final, at, value, number_of(value), counted)
