"""Migrations and the tables as they are written down make the same store."""

from __future__ import annotations

import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

from dispatcher.store.connection import connect_writer
from dispatcher.store.migrate import MIGRATIONS, bring_up_to_date, open_up_to_date
from dispatcher.store.schema import SCHEMA_VERSION, VERSION_TABLE


def _shape(connection: sqlite3.Connection) -> dict[str, object]:
    """Columns of the tables, texts of the indexes: a column that a migration added stands
    elsewhere in the table's text, and in the same place among its columns."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    shape: dict[str, object] = {}
    for kind, name, sql in rows.fetchall():
        if kind == "table":
            shape[name] = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
            shape[f"{name} without rowid"] = "WITHOUT ROWID" in sql
            shape[f"{name} checks"] = sql.count("CHECK (")
        else:
            shape[name] = " ".join(sql.split())
    return shape


def test_migrating_from_nothing_makes_what_a_new_store_has(tmp_path: Path) -> None:
    """Mutation: a table as it is written down lacks what a migration has, or has more."""
    made = open_up_to_date(tmp_path / "made.sqlite")
    migrations = tmp_path / "migrations"  # another folder than ours: its scripts are run
    shutil.copytree(MIGRATIONS, migrations)
    migrated = connect_writer(tmp_path / "migrated.sqlite")
    bring_up_to_date(migrated, tmp_path / "migrated.sqlite", migrations=migrations)
    assert _shape(made) == _shape(migrated)
    versions = {
        tuple(each.execute(f"SELECT * FROM {VERSION_TABLE}").fetchall())
        for each in (made, migrated)
    }
    assert versions == {((SCHEMA_VERSION,),)}
    made.close()
    migrated.close()


def test_a_new_store_needs_no_alembic_and_no_sqlalchemy(tmp_path: Path) -> None:
    """Mutation: each first search waits for them to be imported."""
    code = (
        "import pathlib, sys; from dispatcher.store.migrate import open_up_to_date as made; "
        f"made(pathlib.Path({str(tmp_path / 'new.sqlite')!r})).close(); "
        "sys.exit(bool({'alembic', 'sqlalchemy'} & set(sys.modules)))"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_the_newest_version_has_a_migration() -> None:
    names = {path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("v*.py")}
    assert max(names) == f"v{SCHEMA_VERSION}"
