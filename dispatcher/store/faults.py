"""Errors of SQLite, turned into messages that say what a person can do."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dispatcher.errors import StoreBusy, StoreError, Superseded

__all__ = ["DamagedStore", "Superseded", "store_error", "store_errors"]

# Primary result codes; extended codes carry more in their higher bits.
_PRIMARY: Final = 0xFF

_MEANINGS: Final[dict[int, tuple[str, str]]] = {
    sqlite3.SQLITE_FULL: (
        "the disk is full, so nothing more can be journalled",
        "free space there, then continue with 'bequeath resume'; all that was acknowledged "
        "is on disk",
    ),
    sqlite3.SQLITE_IOERR: (
        "the disk refused to read or write",
        "look at the disk (dmesg, quota, mount), then continue with 'bequeath resume'",
    ),
    sqlite3.SQLITE_CORRUPT: (
        "the store is damaged",
        "copy the file away, then try 'bequeath experiment verify'; "
        "a backup or 'sqlite3 FILE .recover' may save what is left",
    ),
    sqlite3.SQLITE_NOTADB: (
        "this is not a store of bequeath, or it was overwritten",
        "restore it from a copy; no other program may write to it",
    ),
    sqlite3.SQLITE_BUSY: (
        "another process holds the store",
        "end whatever has it open for writing (a database browser?), then try again",
    ),
    sqlite3.SQLITE_READONLY: (
        "the store may not be written",
        "make the file and its folder writable for you",
    ),
    sqlite3.SQLITE_CANTOPEN: (
        "the store cannot be opened",
        "check that the folder exists and that you may write there",
    ),
    sqlite3.SQLITE_NOLFS: (
        "the file system cannot hold a file of this size",
        "move the experiment's folder to another file system",
    ),
}
_MEANINGS[sqlite3.SQLITE_LOCKED] = _MEANINGS[sqlite3.SQLITE_BUSY]
_MEANINGS[sqlite3.SQLITE_PERM] = _MEANINGS[sqlite3.SQLITE_READONLY]
_MEANINGS[sqlite3.SQLITE_AUTH] = _MEANINGS[sqlite3.SQLITE_READONLY]


#: What reading a store raises: SQLite's own errors, and texts that are none any more, which
#: Python finds while it looks at a schema or a value.
UNREADABLE: Final = (sqlite3.Error, UnicodeDecodeError)


class DamagedStore(StoreError):
    """Raised when what is read from the store cannot have been written by bequeath."""


def store_error(error: sqlite3.Error | UnicodeDecodeError, where: str) -> StoreError:
    """Make the error to raise in place of SQLite's own, or of another among :data:`UNREADABLE`."""
    if isinstance(error, UnicodeDecodeError):
        text, hint = _MEANINGS[sqlite3.SQLITE_CORRUPT]
        return DamagedStore(f"{text}: {error}", hint=hint, where=where)
    code = getattr(error, "sqlite_errorcode", None)
    name = getattr(error, "sqlite_errorname", "")
    primary = code & _PRIMARY if isinstance(code, int) else None
    detail = f"{error}" + (f" [{name}]" if name else "")
    meaning = _MEANINGS.get(primary) if primary is not None else None
    if meaning is None:
        return StoreError(f"the store failed: {detail}", where=where)
    text, hint = meaning
    kind = StoreError
    if primary in (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB):
        kind = DamagedStore
    elif primary in (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED):
        kind = StoreBusy
    return kind(f"{text}: {detail}", hint=hint, where=where)


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Raise :class:`StoreError` in place of SQLite's own errors, and of others among
    :data:`UNREADABLE`."""
    try:
        yield
    except UNREADABLE as error:
        raise store_error(error, str(path)) from error
