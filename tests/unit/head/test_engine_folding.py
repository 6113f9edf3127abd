"""When the engine offers its state to be folded, and what it writes before it lets go of it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import State, apply
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.engine import Engine, OwnedFact
from dispatcher.ports import JournalEntry
from dispatcher.store import SqliteJournal
from tests.unit.store.life import Life


class Nobody:
    """Takes all actions and does nothing."""

    def perform(self, _action: Any) -> None: ...
    def flush(self) -> None: ...
    def act(self, _action: Any) -> None: ...


class Compactor:
    """Writes down what it is offered."""

    def __init__(self) -> None:
        self.offered: list[int] = []

    def offer(self, _state: State, row: int) -> None:
        self.offered.append(row)

    def tidy(self) -> bool:
        return False


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    one = Life(journal)
    one.begin()
    one.propose(0)
    one.propose(1)
    one.say(e.AttemptStarted(TrialId(0), 1, 7), e.FinalReported(TrialId(0), 1, 1, "0.5"))
    yield one
    journal.close()


def _engine(life: Life, compactor: Compactor) -> Engine:
    nobody: Any = Nobody()
    unused: Any = None
    return Engine(
        life.state,
        life.journal,
        unused,
        nobody,
        {"local": nobody},
        unused,
        nobody,
        row=life.journal.last,  # type: ignore[attr-defined]
        compactor=compactor,
        clock=lambda: life.now,
    )


def _turn(engine: Engine, *events: e.Event) -> None:
    engine.turn([OwnedFact("", event) for event in events], last=False)


def test_a_state_is_offered_only_as_of_the_row_of_the_tuners_own(life: Life) -> None:
    """Else the calls in between would be in neither."""
    compactor = Compactor()
    engine = _engine(life, compactor)
    ended = e.AttemptEnded(TrialId(0), 1, EndReason.FINISHED, exit_code=0)
    _turn(engine, e.TunerStateTaken("{}"), ended)
    assert compactor.offered == []
    _turn(engine, e.ResultDelivered(TrialId(0)), e.TunerStateTaken("{}"))
    snapshot = life.journal.latest_snapshot()
    assert snapshot is not None
    assert compactor.offered == [snapshot.number]
    _turn(engine, e.EndDelivered(TrialId(0)))
    assert len(compactor.offered) == 1


def test_a_metric_after_the_tuners_state_does_not_matter(life: Life) -> None:
    compactor = Compactor()
    engine = _engine(life, compactor)
    _turn(engine, e.TunerStateTaken("{}"), e.MetricReported(TrialId(1), 1, 1, "0.1"))
    assert len(compactor.offered) == 1, "it leaves no row"


def test_a_row_that_lags_behind_is_written_before_its_trial_is_let_go_of(life: Life) -> None:
    """A worker's loss ends many trials at once, and their rows follow by and by."""
    journal = life.journal
    assert isinstance(journal, SqliteJournal)
    ended = e.AttemptEnded(TrialId(0), 1, EndReason.FINISHED, exit_code=0)
    apply(life.state, ended, life.now)
    journal.append([JournalEntry(life.now, ended)], [], durable=False)  # its row is yet to come
    engine = _engine(life, Compactor())
    _turn(engine, e.ResultDelivered(TrialId(0)), e.EndDelivered(TrialId(0)))
    assert life.state.trials[TrialId(0)].result is None
    query = "SELECT state, told, number FROM trials WHERE id = 0"
    assert journal.query(query) == [("ended", "0.5", 0.5)]
