"""One experiment opened for reading: its store, and the file that describes it."""

from __future__ import annotations

import os
import sqlite3
import time
from collections.abc import Iterable, Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path
from typing import Any, Final, Self
from urllib.parse import quote

from dispatcher.errors import ExperimentNotFound, StoreError, UserError
from dispatcher.folders.names import CONFIG_NAME, SHARED_NAME, STORE_NAME
from dispatcher.folders.ownership import is_ours
from dispatcher.folders.small_file import read_object
from dispatcher.queries.records import OptimizeMode

#: The schemas that the queries of this version understand; ``dispatcher.store`` writes the
#: newest of them.
SCHEMAS: Final = frozenset({"0001", "0002", "0003", "0004"})

# A reader of a WAL store waits for nobody but a recovery after a crash.
_BUSY_TIMEOUT_S: Final = 10.0

#: Seconds for one query: a store that was made to keep its readers busy does not do so for ever.
#: Those of a million trials take a few.
QUERY_S: Final = 120.0

#: Bytes of the index of a log, at least.
_INDEX_BYTES: Final = 1 << 16

# KiB of its own that a connection keeps of the file, which the system caches as well: a page's
# process has many connections, and each would fill 2 MiB within hours.
_CACHE_KIB: Final = 512

# SQLite's steps between looks at the clock; about a millisecond's.
_STEPS: Final = 100_000

#: Numbers in one statement: SQLite takes more, and older ones do not.
_AT_ONCE: Final = 500

#: The tables that are read. A view in the place of a table could be a query without end.
_TABLES: Final = frozenset(
    {"attempts", "bases", "journal", "leads", "meta", "metrics", "pins", "schema_version"}
    | {"notes", "stars", "tags", "trials", "weights_removed"}
)


class _Patience:
    """The time limit of a query; SQLite asks it."""

    def __init__(self) -> None:
        self._until = float("inf")

    def begin(self) -> None:
        self._until = time.monotonic() + QUERY_S

    def is_over(self) -> bool:
        return time.monotonic() > self._until


class ExperimentReader:
    """A read-only view of one experiment's folder. One thread at a time; cheap to open.

    One query sees one moment of the store; two queries may see two moments.
    """

    def __init__(self, folder: Path, connection: sqlite3.Connection, schema: str) -> None:
        self.folder = folder
        self.schema = schema  #: its version, as of when it was opened
        self._connection = connection
        self._moments = 0  # one within the other
        self._patience = _Patience()
        connection.set_progress_handler(self._patience.is_over, _STEPS)
        self.config = _read_config(folder)

    @classmethod
    def open(cls, folder: Path) -> Self:
        """Open an experiment's folder.

        Raises:
            ExperimentNotFound: there is no experiment in it.
            StoreError: its store cannot be read, or is of another version.
        """
        path = folder / STORE_NAME
        if not path.is_file():
            raise ExperimentNotFound(
                "there is no experiment in this folder",
                hint="'bequeath experiment list' shows those there are",
                where=str(folder),
            )
        try:
            connection = _connect(path)
        except sqlite3.Error as error:
            raise _store_error(error, path) from error
        try:
            _check_tables(connection, path)
            return cls(folder, connection, _checked_schema(connection, path))
        except BaseException:
            connection.close()
            raise

    @property
    def id(self) -> str:
        """The experiment's id, which is its folder's name."""
        return self.folder.name

    @property
    def name(self) -> str:
        """The experiment's name; its id if nobody gave it one."""
        name = self.config.get("experimentName")
        return name if isinstance(name, str) and name else self.id

    @property
    def mode(self) -> OptimizeMode:
        """The mode that says which results are best."""
        return OptimizeMode.of(self.config.get("optimizeMode"))

    def rows(self, query: str, values: Sequence[object] = ()) -> list[sqlite3.Row]:
        """Return all rows of a query. Raises ``StoreError``."""
        self._patience.begin()
        try:
            return self._connection.execute(query, values).fetchall()
        except sqlite3.Error as error:
            raise _store_error(error, self.folder / STORE_NAME) from error
        except OverflowError as error:
            raise _too_large() from error

    def rows_among(
        self, query: str, numbers: Sequence[int], values: Sequence[object] = ()
    ) -> Iterator[sqlite3.Row]:
        """Yield the rows of a query about some trials, asked some hundreds at a time; within a
        moment of the caller's, as of that.

        Args:
            query: what is asked for, with ``{marks}`` in place of the numbers.
            numbers: of trials.
            values: those before the numbers.

        Raises:
            StoreError: the store cannot be read.
        """
        for first in range(0, len(numbers), _AT_ONCE):
            some = numbers[first : first + _AT_ONCE]
            asked = query.replace("{marks}", ", ".join("?" * len(some)))
            yield from self.rows(asked, (*values, *some))

    def rows_about(
        self, query: str, which: str, numbers: Sequence[int] | None
    ) -> Iterable[sqlite3.Row]:
        """Return the rows of a query about some trials, by their numbers, or about all.

        Args:
            query: what is asked for, with ``{which}`` in place of the condition.
            which: the condition for some trials, as of :meth:`rows_among`.
            numbers: of trials; None: all.

        Raises:
            StoreError: the store cannot be read.
        """
        if numbers is None:
            return self.rows(query.format(which=""))
        return self.rows_among(query.format(which=which), sorted(numbers))

    def rows_upto(
        self, query: str, values: Sequence[object], most_bytes: int, *, text: int | None = None
    ) -> tuple[list[sqlite3.Row], bool]:
        """Return the rows of a query until their texts have so many characters, at least one row;
        and whether these are all.

        Args:
            query: what is asked for; ``LIMIT`` bounds the number of rows.
            values: its values.
            most_bytes: what the rows may hold together, and be exceeded by one row.
            text: the only column that holds texts, by its place; None: any may.

        Raises:
            StoreError: the store cannot be read.
        """
        self._patience.begin()
        taken: list[sqlite3.Row] = []
        held = 0
        try:
            with closing(self._connection.execute(query, values)) as cursor:
                for row in cursor:
                    if taken and held >= most_bytes:
                        return taken, False
                    taken.append(row)
                    if text is None:
                        held += sum(len(value) for value in row if isinstance(value, str))
                    else:  # a million rows come this way
                        held += len(row[text])
        except sqlite3.Error as error:
            raise _store_error(error, self.folder / STORE_NAME) from error
        return taken, True

    def row(self, query: str, values: Sequence[object] = ()) -> sqlite3.Row | None:
        """Return the first row of a query, if there is one. Raises ``StoreError``."""
        self._patience.begin()
        try:
            row = self._connection.execute(query, values).fetchone()
        except sqlite3.Error as error:
            raise _store_error(error, self.folder / STORE_NAME) from error
        except OverflowError as error:
            raise _too_large() from error
        return row if isinstance(row, sqlite3.Row) else None

    def meta(self, key: str) -> str | None:
        """Return a fact about the experiment that the head kept."""
        row = self.row("SELECT value FROM meta WHERE key = ?", (key,))
        return None if row is None else str(row[0])

    @contextmanager
    def moment(self) -> Iterator[None]:
        """Let several queries see one and the same moment of the store. Within another moment it
        is that one. No longer than an answer takes: what the head writes meanwhile gathers in a
        log beside the store."""
        if self._moments == 0:
            self._connection.execute("BEGIN")
        self._moments += 1
        try:
            yield
        finally:
            self._moments -= 1
            if self._moments == 0:
                self._connection.execute("ROLLBACK")

    def version(self) -> int:
        """Return a number that another process's commit changes. Costs microseconds: whoever
        follows the store asks for it, and looks further only when it has changed."""
        row = self.row("PRAGMA data_version")
        assert row is not None
        return int(row[0])

    def look_at_schema(self) -> None:
        """Read the version of the schema again: a head or a command may have migrated the store
        since it was opened, a newer bequeath to one that this one does not know.

        Raises:
            StoreError: it cannot be read, or is of a version that this bequeath does not know.
        """
        self.schema = _checked_schema(self._connection, self.folder / STORE_NAME)

    def close(self) -> None:
        """Close the store. Idempotent."""
        self._connection.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()


def _connect(path: Path) -> sqlite3.Connection:
    """Connect read-only; to a store in a folder we may not write, only if no head is writing it.

    A reader of a WAL store needs its index file, and makes it when it is missing. Where it may not,
    or the disk has no room for it, and there is no log that would need one, the file itself is
    all there is. In the folder of somebody else nothing is made, though we might, as root may.
    """
    name = quote(os.fspath(path.absolute()))
    alone = f"file:{name}?mode=ro&immutable=1"
    has_log = path.with_name(f"{path.name}-wal").exists()
    if not has_log and not is_ours(path.parent):
        return _opened(alone)
    try:
        return _opened(f"file:{name}?mode=ro")
    except sqlite3.OperationalError:
        if has_log or (os.access(path.parent, os.W_OK) and not _is_full(path.parent)):
            raise
        return _opened(alone)


def _is_full(folder: Path) -> bool:
    """Whether its disk has no room for an index."""
    try:
        disk = os.statvfs(folder)
    except OSError:
        return False
    return disk.f_bavail * disk.f_frsize < _INDEX_BYTES


def _opened(uri: str) -> sqlite3.Connection:
    connection = sqlite3.connect(
        uri, uri=True, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    try:
        connection.row_factory = sqlite3.Row
        connection.execute("PRAGMA query_only=ON")
        connection.execute("PRAGMA trusted_schema=OFF")  # its functions are not called for us
        connection.execute(f"PRAGMA cache_size=-{_CACHE_KIB}")
        connection.execute("SELECT count(*) FROM sqlite_master").fetchone()  # opens the file
    except sqlite3.Error:
        connection.close()
        raise
    return connection


def _checked_schema(connection: sqlite3.Connection, path: Path) -> str:
    try:
        row = connection.execute("SELECT version_num FROM schema_version").fetchone()
    except sqlite3.OperationalError as error:
        raise StoreError(
            "this is not a store of bequeath, or it was never finished", where=str(path)
        ) from error
    version = str(row[0]) if row is not None else "unknown"
    if version not in SCHEMAS:
        newer = version > max(SCHEMAS)
        raise StoreError(
            f"the store has schema {version}, and this bequeath reads {max(SCHEMAS)}",
            hint="upgrade bequeath"
            if newer
            else "'bequeath resume' migrates it, after a backup; or use the version that made it",
            where=str(path),
        )
    return version


def _check_tables(connection: sqlite3.Connection, path: Path) -> None:
    """Refuse a store in which a table is a query or code."""
    try:
        found = connection.execute("SELECT lower(name), type, sql FROM sqlite_master").fetchall()
    except sqlite3.Error as error:
        raise _store_error(error, path) from error
    for name, kind, text in found:
        if name not in _TABLES or kind == "index":
            continue
        if kind != "table" or str(text).upper().split()[:2] == ["CREATE", "VIRTUAL"]:
            raise StoreError(
                f"this is not a store of bequeath: {name!r} is a {kind} made by somebody else",
                hint="restore the store from a copy",
                where=str(path),
            )


def _read_config(folder: Path) -> dict[str, Any]:
    """Read the experiment file as it was resolved, or as it is shared; empty if it is gone, so that
    the store can still be read."""
    inner = (read_object(folder / CONFIG_NAME) or read_object(folder / SHARED_NAME)).get(
        "experiment"
    )
    return inner if isinstance(inner, dict) else {}


def _too_large() -> UserError:
    return UserError("a number is larger than any that a store can hold")


def _store_error(error: sqlite3.Error, path: Path) -> StoreError:
    if getattr(error, "sqlite_errorname", "") == "SQLITE_INTERRUPT":
        return StoreError(
            f"the store did not answer a question within {QUERY_S:g} s",
            hint="is the disk slow, or was the store made by somebody else?",
            where=str(path),
        )
    return StoreError(
        f"the store cannot be read: {error}",
        hint="'bequeath experiment verify' says what is wrong with it",
        where=str(path),
    )
