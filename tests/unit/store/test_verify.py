"""The read models can be checked against the journal, and made again from it."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.errors import StoreError
from dispatcher.store import SqliteJournal
from dispatcher.store.verify import rebuild, verify
from tests.unit.store.life import Life


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A store with trials that succeeded, failed, were retried, and still run."""
    where = tmp_path / "journal.sqlite"
    journal = SqliteJournal.open(where)
    life = Life(journal)
    life.begin()
    life.whole(0)
    life.whole(1, parent=0, value="0.75")
    life.propose(2, parent=1)
    life.say(e.AttemptStarted(TrialId(2), 1, 7))
    life.exit(2, 1, EndReason.FAILED, text="Traceback: x")
    life.say(e.RequestFailed(TrialId(3), e.RequestEnd.ABANDONED, "ParentFailed"))
    life.now += 1000
    life.say(e.Tick())
    life.say(e.AttemptStarted(TrialId(2), 2, 8), e.MetricReported(TrialId(2), 2, 1, "1"))
    journal.close()
    return where


def _change(path: Path, *statements: str) -> None:
    journal = SqliteJournal.open(path)
    for statement in statements:
        journal.raw.execute(statement)
    journal.close()


def test_what_life_wrote_is_what_the_journal_says(path: Path) -> None:
    found = verify(path)
    assert found.ok, [str(d) for d in found.differences] or found.broken_at
    assert found.trials >= 4


def test_a_changed_value_is_found_named_and_mended(path: Path) -> None:
    _change(path, "UPDATE trials SET number = 99 WHERE id = 1")
    (difference,) = verify(path).differences
    assert str(difference) == "trials 1: number is 99.0, the journal says 0.75"
    rebuild(path)
    assert verify(path).ok


def test_missing_and_foreign_rows_are_found_and_mended(path: Path) -> None:
    _change(
        path,
        "DELETE FROM attempts WHERE trial = 2 AND attempt = 1",
        "INSERT INTO attempts (trial, attempt) VALUES (77, 1)",
    )
    assert [str(d) for d in verify(path).differences] == [
        "attempts 2.1: missing",
        "attempts 77.1: not in the journal",
    ]
    rebuild(path)
    assert verify(path).ok


def test_a_journal_with_a_hole_is_not_replayed(path: Path) -> None:
    _change(path, "DELETE FROM journal WHERE kind = 'Proposed'")
    found = verify(path)
    assert not found.ok
    assert "row" in found.broken_at
    with pytest.raises(StoreError, match="cannot be replayed"):
        rebuild(path)
    journal = SqliteJournal.open(path)
    assert journal.raw.execute("SELECT count(*) FROM trials").fetchone()[0] >= 4
    journal.close()
