"""A bit that flips within a value is found, named, and not believed."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.errors import StoreError
from dispatcher.ports import JournalEntry, Snapshot
from dispatcher.store import SqliteJournal


@pytest.fixture
def journal(tmp_path: Path) -> SqliteJournal:
    opened = SqliteJournal.open(tmp_path / "journal.sqlite")
    final = e.FinalReported(TrialId(0), 1, 1, "0.5")
    opened.append([JournalEntry(1.0, e.HeadStarted(1)), JournalEntry(2.0, final)], [], durable=True)
    return opened


@pytest.mark.parametrize(
    "change",
    [
        "payload = CAST(replace(CAST(payload AS TEXT), '0.5', '0.7') AS BLOB)",
        "at = 3.0",
        "kind = 'MetricReported'",
    ],
)
def test_a_changed_row_is_named_and_not_delivered(journal: SqliteJournal, change: str) -> None:
    changed = journal.raw.execute(f"UPDATE journal SET {change} WHERE n = 2").rowcount
    assert changed == 1
    rows = journal.rows()
    assert next(rows).event == e.HeadStarted(1)
    with pytest.raises(StoreError, match=r"row 2.*checksum"):
        next(rows)
    journal.close()


def test_rows_from_before_there_were_checksums_are_read(journal: SqliteJournal) -> None:
    journal.raw.execute("UPDATE journal SET crc = NULL")
    assert len(list(journal.rows())) == 2
    journal.close()


def test_a_changed_tuner_state_gives_way_to_the_one_before(journal: SqliteJournal) -> None:
    journal.save_snapshot(Snapshot(1, '{"seen": 1}'))
    journal.save_snapshot(Snapshot(2, '{"seen": 2}'))
    journal.raw.execute("UPDATE snapshots SET state = '{\"seen\": 3}' WHERE n = 2")
    assert journal.latest_snapshot() == Snapshot(1, '{"seen": 1}')
    journal.raw.execute("UPDATE snapshots SET state = '{\"seen\": 3}'")
    with pytest.raises(StoreError, match="no tuner state"):
        journal.latest_snapshot()
    journal.close()
