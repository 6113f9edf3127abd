"""Migrations and the tables as they are written down make the same store."""

from __future__ import annotations

import sqlite3
from pathlib import Path

from sqlalchemy.schema import CreateIndex, CreateTable

from dispatcher.store import SqliteJournal
from dispatcher.store.migrate import MIGRATIONS
from dispatcher.store.schema import SCHEMA_VERSION, VERSION_TABLE, metadata
from dispatcher.store.statements import compiled


def _shape(connection: sqlite3.Connection) -> dict[str, object]:
    """Columns of the tables, texts of the indexes: a column that a migration added stands
    elsewhere in the table's text, and in the same place among its columns."""
    rows = connection.execute("SELECT type, name, sql FROM sqlite_master WHERE sql IS NOT NULL")
    shape: dict[str, object] = {}
    for kind, name, sql in rows.fetchall():
        if name == VERSION_TABLE:
            continue
        if kind == "table":
            shape[name] = connection.execute(f"PRAGMA table_xinfo({name})").fetchall()
            shape[f"{name} without rowid"] = "WITHOUT ROWID" in sql
            shape[f"{name} checks"] = sql.count("CHECK (")
        else:
            shape[name] = " ".join(sql.split())
    return shape


def test_migrating_from_nothing_makes_the_tables_of_the_schema(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    migrated = _shape(journal.raw)
    journal.close()
    direct = sqlite3.connect(":memory:")
    for table in metadata.sorted_tables:
        direct.execute(compiled(CreateTable(table)))
        for index in table.indexes:
            direct.execute(compiled(CreateIndex(index)))
    declared = _shape(direct)
    direct.close()
    assert migrated == declared


def test_the_newest_version_has_a_migration() -> None:
    names = {path.name.partition("_")[0] for path in (MIGRATIONS / "versions").glob("v*.py")}
    assert max(names) == f"v{SCHEMA_VERSION}"
