"""Pins and removals outlive the process that wrote them down."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.store import SqliteJournal, SqliteWeightsLedger
from dispatcher.store.weights_ledger import Removal
from tests.unit.store.life import DIGEST, Life


@pytest.fixture
def ledger(tmp_path: Path) -> Iterator[SqliteWeightsLedger]:
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal.open(path)
    life = Life(journal)
    life.begin()
    life.whole(0, value="0.5")
    life.whole(1, parent=0)
    life.say(e.WaitStarted(TrialId(2), 1, (TrialId(1), TrialId(3))))
    opened = SqliteWeightsLedger.open(path)
    yield opened
    opened.close()
    journal.close()


def test_trials_as_retention_sees_them(ledger: SqliteWeightsLedger) -> None:
    first, second = ledger.trials()[:2]
    assert first[:9] == (0, "ended", None, "t/0", None, 0.5, DIGEST, "bequeath", 1234)
    assert first.asked_at is not None
    assert first.ended_at is not None
    assert first.asked_at < first.ended_at
    assert (second.parent, second.restore_path) == (0, "t/0")


def test_what_open_requests_wait_for(ledger: SqliteWeightsLedger) -> None:
    assert ledger.awaited() == {1, 3}


def test_what_requests_have_waited_for_that_go_on(tmp_path: Path) -> None:
    """It is about to propose a child of the one that it waited for, and waits no more. Mutation:
    only those who wait still are asked for theirs."""
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal.open(path)
    life = Life(journal)
    life.begin()
    life.whole(0, value="0.5")
    life.say(e.WaitStarted(TrialId(1), 1, (TrialId(0),)))
    ledger = SqliteWeightsLedger.open(path)
    assert not life.state.blocked
    assert ledger.awaited() == {0}
    ledger.close()
    journal.close()


def test_pins(ledger: SqliteWeightsLedger) -> None:
    ledger.pin(1, "the paper", at=1.0)
    ledger.pin(1, "the book", at=2.0)
    assert ledger.pins() == {1: "the book"}
    assert ledger.unpin(1)
    assert not ledger.unpin(1)
    assert ledger.pins() == {}


def test_what_is_pinned_is_not_meant_and_what_is_meant_cannot_be_pinned(
    ledger: SqliteWeightsLedger,
) -> None:
    assert ledger.pin(1, "the paper", at=1.0)
    meant = [Removal("t/0", 0, 10, None), Removal("t/1", 1, 20, None)]
    assert ledger.intend_removal(meant, at=2.0) == {0}
    assert ledger.removals() == meant[:1]
    assert not ledger.pin(0, "too late", at=3.0)
    assert ledger.pins() == {1: "the paper"}


def test_a_removal_is_meant_before_it_is_done(ledger: SqliteWeightsLedger) -> None:
    meant = [Removal("t/0", 0, 10, None), Removal("t/1", 1, 20, None)]
    ledger.intend_removal(meant, at=1.0)
    ledger.intend_removal(meant, at=2.0)
    assert ledger.removals() == meant
    ledger.removal_done("t/0", at=3.0)
    ledger.removal_done("t/0", at=4.0)
    assert ledger.removals() == [Removal("t/0", 0, 10, 3.0), Removal("t/1", 1, 20, None)]
