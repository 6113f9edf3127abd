"""Stores of other versions: migrated after a backup, or refused and left alone."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.errors import StoreError
from dispatcher.ports import JournalEntry
from dispatcher.store import SqliteJournal
from dispatcher.store.connection import connect_writer
from dispatcher.store.migrate import MIGRATIONS, bring_up_to_date
from dispatcher.store.schema import SCHEMA_VERSION

ADDS_A_COLUMN = """
from alembic import op
revision, down_revision, branch_labels, depends_on = "9998", "{before}", None, None
def upgrade():
    op.execute("ALTER TABLE trials ADD COLUMN colour TEXT")
"""

FAILS_HALF_WAY = """
from alembic import op
revision, down_revision, branch_labels, depends_on = "9998", "{before}", None, None
def upgrade():
    op.execute("ALTER TABLE trials ADD COLUMN colour TEXT")
    op.execute("DROP TABLE journal")
    op.execute("no such statement")
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    where = tmp_path / "journal.sqlite"
    journal = SqliteJournal.open(where)
    journal.append([JournalEntry(1.0, e.HeadStarted(1))], [], durable=True)
    journal.close()
    return where


def _newer(tmp_path: Path, script: str) -> Path:
    folder = tmp_path / "migrations"
    shutil.copytree(MIGRATIONS, folder, ignore=shutil.ignore_patterns("__pycache__"))
    (folder / "versions" / "v9998_next.py").write_text(script.replace("{before}", SCHEMA_VERSION))
    return folder


def _query(path: Path, query: str) -> list[tuple[object, ...]]:
    connection = sqlite3.connect(path)
    try:
        return connection.execute(query).fetchall()
    finally:
        connection.close()


def test_an_older_store_is_backed_up_then_migrated(path: Path, tmp_path: Path) -> None:
    connection = connect_writer(path)
    folder = _newer(tmp_path, ADDS_A_COLUMN)
    backup = bring_up_to_date(connection, path, newest="9998", migrations=folder)
    assert bring_up_to_date(connection, path, newest="9998", migrations=folder) is None
    connection.close()
    assert backup is not None
    assert _query(path, "SELECT version_num FROM schema_version") == [("9998",)]
    assert _query(path, "SELECT count(colour), 1 FROM trials") == [(0, 1)]
    assert _query(path, "SELECT count(*) FROM journal") == [(1,)]
    assert _query(backup, "SELECT version_num FROM schema_version") == [(SCHEMA_VERSION,)]
    assert _query(backup, "SELECT count(*) FROM journal") == [(1,)]


def test_a_migration_that_fails_leaves_the_store_as_it_was(path: Path, tmp_path: Path) -> None:
    connection = connect_writer(path)
    folder = _newer(tmp_path, FAILS_HALF_WAY)
    with pytest.raises(StoreError, match="syntax error"):
        bring_up_to_date(connection, path, newest="9998", migrations=folder)
    connection.close()
    journal = SqliteJournal.open(path)
    assert [row.event for row in journal.rows()] == [e.HeadStarted(1)]
    journal.close()
    columns = [row[1] for row in _query(path, "PRAGMA table_info(trials)")]
    assert "colour" not in columns


def test_a_newer_store_is_refused_and_untouched(path: Path) -> None:
    connection = sqlite3.connect(path)
    connection.execute("UPDATE schema_version SET version_num = '9999'")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    with pytest.raises(StoreError, match=r"9999.*newer bequeath") as caught:
        SqliteJournal.open(path)
    assert "upgrade bequeath" in caught.value.hint
    assert path.read_bytes() == before


def test_a_database_of_somebody_else_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    connection = sqlite3.connect(path)
    connection.execute("CREATE TABLE recipes (name TEXT)")
    connection.close()
    with pytest.raises(StoreError, match="none of them names a version"):
        SqliteJournal.open(path)
    assert _query(path, "SELECT name FROM sqlite_master") == [("recipes",)]
