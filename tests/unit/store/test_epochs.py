"""A head that was taken over can write nothing more, whatever it still believes."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.settings import Settings
from dispatcher.ports import JournalEntry, Snapshot
from dispatcher.store import SqliteJournal, Superseded

_CREATED = JournalEntry(1.0, e.ExperimentCreated(Settings(2, 8)))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


def test_the_older_head_is_refused_and_nothing_of_its_batch_stays(path: Path) -> None:
    older = SqliteJournal.open(path, epoch=1)
    older.append([_CREATED], [], durable=True)
    newer = SqliteJournal.open(path, epoch=2)
    with pytest.raises(Superseded, match="head 2 leads") as refused:
        older.append([JournalEntry(2.0, e.Tick())], [], durable=True)
    assert refused.value.hint
    with pytest.raises(Superseded):
        older.save_snapshot(Snapshot(1, "{}"))
    with pytest.raises(Superseded):
        older.record_end(1, "stopped", "")
    older.close()
    newer.append([JournalEntry(3.0, e.HeadStarted(2))], [], durable=True)
    assert [row.event for row in newer.rows()] == [_CREATED.event, e.HeadStarted(2)]
    assert newer.latest_snapshot() is None
    assert newer.get_meta("phase") is None
    newer.close()


def test_an_older_head_cannot_even_open(path: Path) -> None:
    SqliteJournal.open(path, epoch=5).close()
    with pytest.raises(Superseded):
        SqliteJournal.open(path, epoch=4)
    again = SqliteJournal.open(path, epoch=5)
    again.append([_CREATED], [], durable=True)
    again.close()


def test_who_does_not_lead_has_no_epoch_and_changes_none(path: Path) -> None:
    SqliteJournal.open(path, epoch=5).close()
    other = SqliteJournal.open(path)
    other.append([_CREATED], [], durable=True)
    assert other.get_meta("epoch") == "5"
    other.close()
