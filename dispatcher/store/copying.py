"""Consistent copies of a store, also while its head writes to it."""

from __future__ import annotations

import contextlib
import sqlite3
import tempfile
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import NamedTuple

from dispatcher.errors import StoreError
from dispatcher.store.connection import connect_reader, read_only
from dispatcher.store.faults import store_errors
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.migrate import version_of
from dispatcher.store.schema import SCHEMA_VERSION
from dispatcher.store.touches import next_touch, stamp

#: Facts of the place and the head, not of the experiment: a copy begins without them.
_OF_THE_PLACE = ("sockets",)


class Committed(NamedTuple):
    """Weights that the copy believes to be there. ``path`` is relative to the weights root."""

    trial: int
    path: str
    nbytes: int


def copy_store(source: Path, target: Path) -> None:
    """Copy a store as it is at one moment. Its head goes on writing meanwhile.

    In one step, which a writer neither waits for nor disturbs: in WAL mode a reader keeps the
    moment at which it began. Blocks for about a second a gigabyte.

    Raises:
        StoreError: the source cannot be read, or the target not be written.
    """
    if not source.is_file():
        raise StoreError("there is no store to copy", where=str(source))
    with (
        store_errors(source),
        contextlib.closing(sqlite3.connect(read_only(source), uri=True)) as reader,
        contextlib.closing(sqlite3.connect(target, isolation_level=None)) as writer,
    ):
        reader.backup(writer)
        writer.executemany("DELETE FROM meta WHERE key = ?", [(k,) for k in _OF_THE_PLACE])
        writer.execute("PRAGMA wal_checkpoint(TRUNCATE)")


@contextlib.contextmanager
def opened_to_read(store: Path) -> Iterator[SqliteJournal]:
    """Open a store as it is at one moment, also while its head writes to it. It stays as it is: of
    one that an older bequeath has made, a copy is brought up to date for as long.

    Raises:
        StoreError: it cannot be opened, or was made by a newer bequeath.
    """
    with contextlib.closing(connect_reader(store)) as connection:
        with store_errors(store):
            version = version_of(connection, store)
        if version == SCHEMA_VERSION:
            yield SqliteJournal(store, connection)
            return
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:
        copy = Path(folder) / store.name
        copy_store(store, copy)
        try:
            journal = SqliteJournal.open(copy)
        except StoreError as error:
            error.where = str(store)
            raise
        try:
            yield journal
        finally:
            journal.close()


def committed_weights(store: Path) -> list[Committed]:
    """List all weights that were committed and not removed, in the order of the trials."""
    with (
        store_errors(store),
        contextlib.closing(sqlite3.connect(read_only(store), uri=True)) as reader,
    ):
        rows = reader.execute(
            "SELECT id, save_path, coalesce(weights_nbytes, 0) FROM trials "
            "WHERE weights_digest IS NOT NULL AND save_path IS NOT NULL "
            "AND save_path NOT IN (SELECT path FROM weights_removed) ORDER BY id"
        )
        return [Committed(*row) for row in rows]


def note_removed(store: Path, gone: Iterable[Committed]) -> None:
    """Record in the copy the weights that went before they could be copied, as a removal by hand:
    the next head announces it before it takes a proposal. The copy is of the newest schema."""
    now = time.time()
    rows = [(one.path, one.trial, now, now, one.nbytes) for one in gone]
    with store_errors(store), contextlib.closing(sqlite3.connect(store)) as writer, writer:
        writer.executemany(
            "INSERT OR REPLACE INTO weights_removed "
            "(path, trial, intended_at, removed_at, nbytes) VALUES (?, ?, ?, ?, ?)",
            rows,
        )
        stamp(writer, [row[1] for row in rows], next_touch(writer))
