"""Bring a store to the newest schema: make it, leave it, migrate it after a backup, or refuse.

A store that is new gets the tables as they are written down. Alembic and SQLAlchemy are imported
only where there is something to migrate: they take longer to import than the rest of the store.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final

from dispatcher.errors import StoreError
from dispatcher.store.connection import connect_writer
from dispatcher.store.faults import DamagedStore, store_errors
from dispatcher.store.schema import SCHEMA_VERSION, VERSION_TABLE, statements_of_a_new_store

MIGRATIONS: Final = Path(__file__).parent / "migrations"


def open_up_to_date(path: Path) -> sqlite3.Connection:
    """Open a store for writing; make it if it is missing, migrate it if it is older.

    Raises:
        StoreError: it was made by a newer bequeath, is damaged, or cannot be opened.
    """
    with store_errors(path):
        connection = connect_writer(path)
        try:
            bring_up_to_date(connection, path)
        except BaseException:
            connection.close()
            raise
    return connection


def bring_up_to_date(
    connection: sqlite3.Connection,
    path: Path,
    *,
    newest: str = SCHEMA_VERSION,
    migrations: Path = MIGRATIONS,
) -> Path | None:
    """Make the store's schema the newest one. Returns the backup, if one was made.

    Args:
        connection: a writer's, outside any transaction.
        path: the file behind it; the backup is put beside it.
        newest: the version that is wanted.
        migrations: the folder of alembic's scripts.

    Raises:
        StoreError: the store was made by a newer bequeath, or it or its backup cannot be written.
        DamagedStore: there are tables, and none tells their version.
    """
    version = version_of(connection, path)
    if version == newest:
        return None
    if version is not None and version > newest:
        raise StoreError(
            f"the store has schema {version}, made by a newer bequeath; this one knows {newest}",
            hint="upgrade bequeath, or go on with the version that made this experiment",
            where=str(path),
        )
    if version is not None and not any(migrations.glob(f"versions/v{version}_*.py")):
        raise DamagedStore(
            f"the store says that it has schema {version!r}, which there never was",
            hint="it was damaged: restore it from a copy",
            where=str(path),
        )
    backup = None if version is None else _back_up(connection, path, version)
    with store_errors(path):
        if version is None and migrations == MIGRATIONS:
            _make(connection)
        else:
            _upgrade(connection, newest, migrations)
    return backup


def is_blank(path: Path) -> bool:
    """Whether a store is missing, or was left before its first row; not if it cannot be read.

    A transaction in which its writer was killed is taken back first, which only a writer may.
    """
    if not path.exists():
        return True
    uri = f"{path.absolute().as_uri()}?mode=rw"
    with (
        contextlib.suppress(sqlite3.Error, StoreError),
        contextlib.closing(sqlite3.connect(uri, uri=True)) as raw,
    ):
        rows = "SELECT n FROM journal UNION ALL SELECT n FROM bases LIMIT 1"
        return version_of(raw, path) is None or raw.execute(rows).fetchone() is None
    return False


def version_of(raw: sqlite3.Connection, path: Path) -> str | None:
    """Read the version of the schema; None for a store without any table."""
    tables = {name for (name,) in raw.execute("SELECT name FROM sqlite_master WHERE type='table'")}
    if not tables:
        return None
    if VERSION_TABLE in tables:
        rows = raw.execute(f"SELECT version_num FROM {VERSION_TABLE}").fetchall()  # noqa: S608 - a constant
        if len(rows) == 1 and isinstance(rows[0][0], str):
            return rows[0][0]
    raise DamagedStore(
        "the file holds tables, and none of them names a version of bequeath's store",
        hint="it belongs to another program, or was damaged: restore it from a copy",
        where=str(path),
    )


def _make(connection: sqlite3.Connection) -> None:
    """Make the newest schema, all of it or nothing."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        for statement in statements_of_a_new_store():
            connection.execute(statement)
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise


def _upgrade(connection: sqlite3.Connection, newest: str, migrations: Path) -> None:
    """Run alembic's scripts in one transaction. Raises ``sqlite3.Error``."""
    from alembic import command
    from alembic.config import Config
    from sqlalchemy import create_engine
    from sqlalchemy.exc import DBAPIError
    from sqlalchemy.pool import StaticPool

    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    try:
        # The pool keeps the connection as it is, and never closes it.
        engine = create_engine("sqlite://", creator=lambda: connection, poolclass=StaticPool)
        with engine.connect() as alembics:
            alembics.exec_driver_sql("BEGIN IMMEDIATE")  # ended by leaving the block
            config.attributes["connection"] = alembics
            command.upgrade(config, newest)
            alembics.commit()
    except DBAPIError as error:
        if isinstance(error.orig, sqlite3.Error):
            raise error.orig from error
        raise


def _back_up(raw: sqlite3.Connection, path: Path, version: str) -> Path:
    """Copy the store beside itself, completely or not at all."""
    backup = path.with_name(f"{path.name}.schema-{version}.backup")
    draft = backup.with_name(f"{backup.name}.{os.getpid()}")
    try:
        with contextlib.closing(sqlite3.connect(draft)) as copy:
            raw.backup(copy)
        draft.replace(backup)
    except (sqlite3.Error, OSError) as error:
        draft.unlink(missing_ok=True)
        raise StoreError(
            f"no backup of the older store could be made, so it was not migrated: {error}",
            hint="free as much space as the store takes, then try again",
            where=str(backup),
        ) from error
    return backup
