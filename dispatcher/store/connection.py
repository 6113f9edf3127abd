"""Connections to a store, set up for each use."""

from __future__ import annotations

import sqlite3
from pathlib import Path
from typing import Final

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


def connect_writer(path: Path) -> sqlite3.Connection:
    """Open a connection that may write; the file is made if it is missing.

    Transactions are the caller's own (``BEGIN IMMEDIATE`` … ``COMMIT``): SQLite takes the
    write lock at the beginning, not somewhere in between. Raises ``sqlite3.Error``.
    """
    connection = sqlite3.connect(
        path, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.execute("PRAGMA journal_mode=WAL")
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        connection.execute(f"PRAGMA journal_size_limit={_LOG_BYTES}")
    except BaseException:
        connection.close()
        raise
    return connection


def connect_reader(path: Path) -> sqlite3.Connection:
    """Open a connection that sees the store of this moment, and may not write. Takes about a
    millisecond, whatever the size.

    Raises:
        StoreError: it cannot be opened.
    """
    with store_errors(path):
        connection = sqlite3.connect(
            read_only(path),
            uri=True,
            timeout=BUSY_TIMEOUT_S,
            isolation_level=None,
            check_same_thread=False,
        )
        try:
            connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
            connection.execute("PRAGMA query_only=ON")
            connection.execute("PRAGMA trusted_schema=OFF")
            connection.execute("BEGIN")
            connection.execute(_A_LOOK).fetchone()
        except BaseException:
            connection.close()
            raise
    return connection
