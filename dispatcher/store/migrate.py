"""Bring a store to the newest schema: make it, leave it, migrate it after a backup, or refuse.

A store that is new gets the tables as they are written down. Alembic is imported only where there
is something to migrate: it takes as long to import as the rest of the store.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
from pathlib import Path
from typing import Final

from sqlalchemy import Connection
from sqlalchemy.exc import DBAPIError

from dispatcher.errors import StoreError
from dispatcher.store.connection import connect_writer, raw_of
from dispatcher.store.faults import DamagedStore, store_error, store_errors
from dispatcher.store.schema import SCHEMA_VERSION, VERSION_TABLE, metadata

MIGRATIONS: Final = Path(__file__).parent / "migrations"


def open_up_to_date(path: Path) -> Connection:
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
    connection: Connection,
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
        StoreError: the store was made by a newer bequeath, or the backup cannot be made.
        DamagedStore: there are tables, and none tells their version.
    """
    raw = raw_of(connection)
    version = version_of(raw, path)
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
    backup = None if version is None else _back_up(raw, path, version)
    connection.exec_driver_sql("BEGIN IMMEDIATE")
    try:
        if version is None and migrations == MIGRATIONS:
            _make(connection)
        else:
            _upgrade(connection, newest, migrations)
        connection.commit()
    except DBAPIError as error:
        connection.rollback()
        if isinstance(error.orig, sqlite3.Error):
            raise store_error(error.orig, str(path)) from error
        raise
    except BaseException:
        connection.rollback()
        raise
    return backup


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


def _make(connection: Connection) -> None:
    """Make the newest schema in a store without any table, as all migrations would."""
    metadata.create_all(connection, checkfirst=False)
    connection.exec_driver_sql(
        f"CREATE TABLE {VERSION_TABLE} (version_num VARCHAR(32) NOT NULL, "
        f"CONSTRAINT {VERSION_TABLE}_pkc PRIMARY KEY (version_num))"
    )
    connection.exec_driver_sql(f"INSERT INTO {VERSION_TABLE} VALUES ('{SCHEMA_VERSION}')")  # noqa: S608 - constants


def _upgrade(connection: Connection, newest: str, migrations: Path) -> None:
    from alembic import command
    from alembic.config import Config

    config = Config()
    config.set_main_option("script_location", str(migrations).replace("%", "%%"))
    config.attributes["connection"] = connection
    command.upgrade(config, newest)


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
