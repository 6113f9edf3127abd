"""Connections to a store, through SQLAlchemy, set up for each use."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Final

from sqlalchemy import Connection, create_engine
from sqlalchemy.exc import DBAPIError
from sqlalchemy.pool import NullPool

from dispatcher.store.faults import store_errors

# How long a writer waits for another one: the engine for a pin of a weight, or the other
# way round. Both are over in milliseconds.
BUSY_TIMEOUT_S: Final = 10.0

# The pages a connection may keep (KiB): enough for the tips of the trees, and flat.
_CACHE_KIB: Final = 1024

# After a checkpoint the log is cut back to this size, so that one long reader does not
# leave a large file behind (bytes).
_LOG_BYTES: Final = 32 << 20

# The moment that a transaction sees is that of its first look.
_A_LOOK: Final = "SELECT 1 FROM meta LIMIT 1"


def read_only(path: Path) -> str:
    """Return the URI by which SQLite opens a store for reading, with a quoted path: with a bare
    ``#`` or ``?`` SQLite would open another file, and make it if need be."""
    return f"{path.absolute().as_uri()}?mode=ro"


def connect_writer(path: Path) -> Connection:
    """Open a connection that may write; the file is made if it is missing.

    Transactions are the caller's own (``BEGIN IMMEDIATE`` … ``COMMIT``): SQLite takes the
    write lock at the beginning, not somewhere in between. Raises ``sqlite3.Error``.
    """

    def connect() -> sqlite3.Connection:
        raw = sqlite3.connect(
            path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
        )
        raw.execute("PRAGMA journal_mode=WAL")
        raw.execute("PRAGMA synchronous=FULL")
        raw.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        raw.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")
        return raw

    return _connected(connect)


def connect_reader(path: Path) -> Connection:
    """Open a connection that sees the store of this moment, and may not write. Takes about a
    millisecond, whatever the size.

    Raises:
        StoreError: it cannot be opened.
    """
    with store_errors(path):
        return _reader(path)


def _reader(path: Path) -> Connection:
    def connect() -> sqlite3.Connection:
        return sqlite3.connect(
            read_only(path),
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )

    connection = _connected(connect)
    raw = raw_of(connection)
    try:
        raw.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        raw.execute("PRAGMA query_only=ON")
        raw.execute("PRAGMA trusted_schema=OFF")
        raw.execute("BEGIN")  # not before: SQLAlchemy's first look ends with a rollback
        raw.execute(_A_LOOK).fetchone()
    except BaseException:
        connection.close()
        raise
    return connection


def _connected(connect: Callable[[], sqlite3.Connection]) -> Connection:
    try:
        return create_engine("sqlite://", creator=connect, poolclass=NullPool).connect()
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise error.orig from None
        raise


def raw_of(connection: Connection) -> sqlite3.Connection:
    """Return SQLite's own connection below SQLAlchemy's. The hot path uses it, since each
    ``execute`` of SQLAlchemy costs 20 to 85 µs beyond it."""
    raw = connection.connection.driver_connection
    assert isinstance(raw, sqlite3.Connection)
    return raw
