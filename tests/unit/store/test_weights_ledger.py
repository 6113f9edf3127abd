"""Pins and removals outlive the process that wrote them down."""

from __future__ import annotations

import copy
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher import core
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, TrialState
from dispatcher.store import SqliteJournal, SqliteWeightsLedger
from dispatcher.store.weights_ledger import Removal
from tests.unit.store.life import DIGEST, HOST, Life


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


T0, T1 = TrialId(0), TrialId(1)


def _counts(life: Life, trial: TrialId, attempt: int) -> bool:
    """Whether a version that this attempt offers now would be entered: asked of the core."""
    offered = e.VersionOffered(trial, attempt, 1000, "omega", 0, "omega/x", DIGEST, 10)
    return core.apply(copy.deepcopy(life.state), offered, life.now).counted


def _ended(trial: TrialId, attempt: int, reason: EndReason) -> e.Event:
    return e.AttemptEnded(trial, attempt, reason, exit_code=1)


#: What befalls two trials, event by event; each of them has begun its first attempt.
LIVES: dict[str, tuple[e.Event, ...]] = {
    "both go well": (
        e.AttemptStarted(T0, 1, 7),
        e.AttemptStarted(T1, 1, 8),
        e.FinalReported(T0, 1, 1, "0.5"),
        e.AttemptEnded(T0, 1, EndReason.FINISHED, exit_code=0),
        e.ResultDelivered(T0),
        e.EndDelivered(T0),
        e.AttemptEnded(T1, 1, EndReason.FINISHED, exit_code=0),
        e.EndDelivered(T1),
    ),
    "one fails twice": (
        e.AttemptStarted(T0, 1, 7),
        _ended(T0, 1, EndReason.FAILED),
        *[e.Tick()] * 30,
        e.AttemptStarted(T0, 2, 8),
        _ended(T0, 2, EndReason.FAILED),
        e.EndDelivered(T0),
    ),
    "their worker is lost twice": (
        e.AttemptStarted(T0, 1, 7),
        e.WorkerLost(HOST, "gone"),
        e.WorkerJoined(HOST, 2),
        *[e.Tick()] * 30,
        e.AttemptStarted(T1, 2, 8),
        e.WorkerLost(HOST, "gone"),
        e.WorkerJoined(HOST, 2),
        *[e.Tick()] * 30,
    ),
    "a head begins, and its worker holds one of them": (
        e.AttemptStarted(T0, 1, 7),
        e.AttemptStarted(T1, 1, 8),
        e.HeadStarted(2),
        e.WorkerJoined(HOST, 2, ((T0, 1),)),
        e.TunerHostReady(),
        *[e.Tick()] * 30,
    ),
    "one is killed and one stopped early": (
        e.AttemptStarted(T0, 1, 7),
        e.TrialStopRequested(T0, EndReason.KILLED),
        e.TrialStopRequested(T1, EndReason.STOPPED_EARLY),
        _ended(T0, 1, EndReason.KILLED),
        e.EndDelivered(T0),
        _ended(T1, 1, EndReason.STOPPED_EARLY),
        e.EndDelivered(T1),
    ),
    "all is stopped and resumed": (
        e.AttemptStarted(T0, 1, 7),
        e.StopRequested(e.StopKind.NOW, "user"),
        _ended(T0, 1, EndReason.SHUTDOWN),
        _ended(T1, 1, EndReason.SHUTDOWN),
        e.HeadStarted(2),
        e.WorkerJoined(HOST, 2),
        e.TunerHostReady(),
    ),
}


@pytest.mark.parametrize("name", LIVES)
def test_of_an_attempt_that_is_over_nothing_counts_and_nothing_ever_will(
    name: str, tmp_path: Path
) -> None:
    """What such an attempt has written to a shared store is removed: so it must have nothing to
    say any more, which the core is asked about after each event."""
    path = tmp_path / "journal.sqlite"
    journal = SqliteJournal.open(path)
    life = Life(journal)
    life.begin()
    life.propose(0)
    life.propose(1)
    ledger = SqliteWeightsLedger.open(path)
    all_of_them = {(trial, attempt) for trial in (T0, T1) for attempt in range(1, 5)}
    before: set[tuple[int, int]] = set()
    for event in (e.Tick(), *LIVES[name]):
        life.say(event)
        over = ledger.attempts_over(all_of_them)
        assert not any(_counts(life, TrialId(trial), attempt) for trial, attempt in over), event
        assert before <= over, "what was over stays over"
        for trial in (life.state.trials[T0], life.state.trials[T1]):
            mine = {attempt for number, attempt in over if number == trial.id}
            if trial.state is TrialState.ENDED:
                assert mine == {1, 2, 3, 4}, event
            else:  # and of one that goes on those before the newest, and no other
                assert mine == set(range(1, trial.attempt)), event
        before = over
    assert before, "something is over by then, or was superseded"
    assert ledger.attempts_over({(99, 1)}) == set(), "of a trial that nobody knows: who can tell"
    ledger.close()
    journal.close()
