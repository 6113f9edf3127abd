"""Damage, full disks, foreign locks: one clear error each, and what was there stays."""

from __future__ import annotations

import os
import sqlite3
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.errors import StoreError
from dispatcher.ports import JournalEntry
from dispatcher.store import SqliteJournal, connection
from dispatcher.store.verify import verify


def _fill(path: Path, batches: int) -> None:
    journal = SqliteJournal.open(path)
    for number in range(batches):
        entries = [
            JournalEntry(1.0, e.Proposed(TrialId(i), "x" * 500, None, None))
            for i in range(number * 20, number * 20 + 20)
        ]
        journal.append(entries, [], durable=False)
    journal.close()


def test_a_damaged_page_is_named(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    _fill(path, 50)
    size = path.stat().st_size
    with path.open("r+b") as file:
        for page in range(size // 4096 // 2, size // 4096 // 2 + 40):
            file.seek(page * 4096)
            file.write(b"\xa5" * 4096)
    journal = SqliteJournal.open(path)
    with pytest.raises(StoreError, match=r"damaged|cannot be read") as caught:
        list(journal.rows())
    assert caught.value.where == str(path)
    journal.close()


def test_verify_names_the_damage(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    _fill(path, 50)
    with path.open("r+b") as file:
        file.seek(60 * 4096)
        file.write(b"\xa5" * 4096)
    found = verify(path)
    assert found.damage
    assert not found.ok


def test_a_file_that_is_no_store(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_text("dear diary, " * 1000)
    with pytest.raises(StoreError, match="not a store of bequeath") as caught:
        SqliteJournal.open(path)
    assert caught.value.hint
    assert path.read_text().startswith("dear diary")


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(StoreError, match="cannot be opened"):
        SqliteJournal.open(tmp_path / "no" / "journal.sqlite")


def test_a_foreign_lock_is_waited_for_and_then_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "BUSY_TIMEOUT_S", 0.05)
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal.open(path)
    other = sqlite3.connect(path, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    with pytest.raises(StoreError, match="another process holds the store"):
        journal.append([JournalEntry(1.0, e.Tick())], [], durable=True)
    other.execute("ROLLBACK")
    other.close()
    assert journal.append([JournalEntry(1.0, e.Tick())], [], durable=True) == 1
    journal.close()


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    if os.geteuid() != 0:
        pytest.skip("mounting a small tmpfs needs root")
    folder = tmp_path / "small"
    folder.mkdir()
    mounted = subprocess.run(
        ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)],
        capture_output=True,
        check=False,
    )
    if mounted.returncode != 0:
        pytest.skip(f"no tmpfs here: {mounted.stderr.decode()}")
    yield folder
    subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_is_named_and_loses_nothing_that_was_acknowledged(small_disk: Path) -> None:
    path = small_disk / "journal.sqlite"
    journal = SqliteJournal.open(path)
    event = e.Proposed(TrialId(1), "x" * 20_000, None, None)
    acknowledged = [0]

    def write_until_full() -> None:
        for _ in range(200):
            acknowledged.append(journal.append([JournalEntry(1.0, event)], [], durable=True))

    with pytest.raises(StoreError, match="disk is full") as caught:
        write_until_full()
    last = acknowledged[-1]
    assert "bequeath resume" in caught.value.hint
    assert last > 3
    assert [row.number for row in journal.rows()] == list(range(1, last + 1))
    journal.close()
    again = SqliteJournal.open(path)
    assert sum(1 for _ in again.rows()) == last
    again.close()
