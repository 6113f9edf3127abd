"""A trial that was stopped early and keeps its result brings the same one in life and in a replay,
however its attempt ended: by the journal alone; of older journals, with the metrics beside it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher import core
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, TrialState
from dispatcher.core.settings import Settings
from dispatcher.engine import Engine, OwnedFact
from dispatcher.errors import InvalidTransition
from dispatcher.store.compaction import Compaction
from dispatcher.store.early_stops import mended
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.folding import read_whole_past
from dispatcher.store.replay.history import Past
from dispatcher.store.verify import verify
from tests.unit.store.life import HOST, Life

T0 = TrialId(0)

#: What ends the attempt of a trial that was to be stopped early. The last one is what an agent
#: says that is there to say it, and what older versions knew.
ENDS: dict[str, tuple[e.Event, ...]] = {
    "agent lost": (e.WorkerLost(HOST, "its process ended"),),
    "agent back without it": (e.WorkerJoined(HOST, 2),),
    "lost, says the spool": (e.AttemptEnded(T0, 1, EndReason.LOST),),
    "stopped with all": (
        e.StopRequested(e.StopKind.NOW, "user"),
        e.AttemptEnded(T0, 1, EndReason.SHUTDOWN),
    ),
    "stopped early": (e.AttemptEnded(T0, 1, EndReason.STOPPED_EARLY),),
}
UNSEEN = [how for how in ENDS if how != "stopped early"]

#: How far an experiment gets before its head dies: rows of what the tuner has taken.
TAKEN: dict[str, tuple[e.Event, ...]] = {
    "nothing": (),
    "the result": (e.ResultDelivered(T0),),
    "all": (e.ResultDelivered(T0), e.EndDelivered(T0)),
}


class Nobody:
    """Takes all actions and does nothing."""

    def perform(self, _action: Any) -> None: ...
    def flush(self) -> None: ...
    def act(self, _action: Any) -> None: ...


def older(journal: SqliteJournal) -> Callable[..., object]:
    """As a head before 0.2 wrote it: what was applied, and no more."""
    return Life(journal, early_stop_keeps_result=True).say


def newer(journal: SqliteJournal) -> Callable[..., object]:
    """As the engine writes it."""
    settings = Settings(slots=2, lookahead=8, early_stop_keeps_result=True)
    nobody: Any = Nobody()
    unused: Any = None
    backends = {"local": nobody}
    engine = Engine(
        core.new_state(settings), journal, unused, nobody, backends, unused, nobody, debug=True
    )

    def say(*events: e.Event) -> None:
        engine.turn([OwnedFact("", event) for event in events], last=False)

    say(e.ExperimentCreated(settings), e.HeadStarted(1))
    return say


def live(say: Callable[..., object], how: str, taken: str = "nothing") -> None:
    say(e.WorkerJoined(HOST, 2), e.TunerHostReady(), e.Proposed(T0, '{"x":0}'))
    say(e.AttemptStarted(T0, 1), e.MetricReported(T0, 1, 1, "0.25"))
    say(e.TrialStopRequested(T0, EndReason.STOPPED_EARLY))
    say(e.MetricReported(T0, 1, 2, "0.75"))  # it takes its time to leave
    say(*ENDS[how])
    say(*TAKEN[taken])


def past_of(journal: SqliteJournal) -> Past:
    return read_whole_past(journal, Compaction(journal))


def said(journal: SqliteJournal, state: core.State) -> str:
    return mended(journal.query, state, Compaction(journal).base_number())


@pytest.fixture
def journal(tmp_path: Path) -> Any:
    opened = SqliteJournal.open(tmp_path / "journal.sqlite")
    yield opened
    opened.close()


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("how", ENDS)
def test_a_replay_needs_no_metrics(journal: SqliteJournal, how: str, taken: str) -> None:
    live(newer(journal), how, taken)
    journal.raw.execute("DELETE FROM metrics")
    past = past_of(journal)
    told(past, taken)
    assert said(journal, past.state) == ""
    assert verify(journal.path).ok


@pytest.mark.parametrize("taken", TAKEN)
@pytest.mark.parametrize("how", ENDS)
def test_an_older_journal_is_read_with_its_metrics(
    journal: SqliteJournal, how: str, taken: str
) -> None:
    live(older(journal), how, taken)
    past = past_of(journal)
    told(past, taken)
    found = said(journal, past.state)
    assert ("trial 0 was stopped early and lost with its agent" in found) is (how in UNSEEN)
    verified = verify(journal.path)
    assert verified.ok, (verified.broken_at, [str(x) for x in verified.differences])
    assert verified.mended == found


def told(past: Past, taken: str) -> None:
    """The tuner has been told, or will be, what life has decided: once."""
    trial = past.state.trials[T0]
    results = [call for call in past.calls if call[0] == "result"]
    if taken == "nothing":
        assert trial.result == "0.75"
        assert results == []
    else:
        assert results == [["result", 0, '{"x":0}', "0.75"]]
    assert trial.state is (TrialState.ENDED if taken == "all" else TrialState.DELIVERING)
    assert trial.success


def test_it_is_said_once(journal: SqliteJournal) -> None:
    say = older(journal)
    live(say, "agent lost", "all")
    assert said(journal, past_of(journal).state)
    say(e.HeadStarted(2))  # which could not have begun, had it not been mended
    assert said(journal, past_of(journal).state) == ""


def test_a_result_that_an_older_head_has_lost_stays_lost(journal: SqliteJournal) -> None:
    """Its successor found none, told the tuner the end, and went on from there."""
    live(older(journal), "agent lost")
    past = Life.__new__(Life)
    past.journal, past.now = journal, 2000.0
    past.state = core.new_state(past_of(journal).state.settings)
    for row in journal.rows():
        if not isinstance(row.event, e.MetricReported):  # as it was read then
            core.apply(past.state, row.event, row.at)
    past.state.dirty.clear()
    past.say(e.HeadStarted(2), e.TunerHostReady(), e.EndDelivered(T0))
    again = past_of(journal)
    assert again.state.trials[T0].state is TrialState.ENDED
    assert [call for call in again.calls if call[0] != "generate"] == [["end", 0, True, False]]
    assert said(journal, again.state) == ""


def test_a_final_result_needs_no_mending(journal: SqliteJournal) -> None:
    say = older(journal)
    say(e.WorkerJoined(HOST, 2), e.TunerHostReady(), e.Proposed(T0, '{"x":0}'))
    say(e.AttemptStarted(T0, 1), e.MetricReported(T0, 1, 1, "0.25"))
    say(e.FinalReported(T0, 1, 2, "0.5"), e.TrialStopRequested(T0, EndReason.STOPPED_EARLY))
    say(e.WorkerLost(HOST, "its process ended"), e.ResultDelivered(T0), e.EndDelivered(T0))
    past = past_of(journal)
    assert ["result", 0, '{"x":0}', "0.5"] in past.calls
    assert said(journal, past.state) == ""


def test_metrics_of_an_attempt_before_are_not_taken_for_its_own(journal: SqliteJournal) -> None:
    say = older(journal)
    say(e.WorkerJoined(HOST, 2), e.TunerHostReady(), e.Proposed(T0, '{"x":0}'))
    say(e.AttemptStarted(T0, 1), e.MetricReported(T0, 1, 1, "0.25"))
    say(e.WorkerLost(HOST, "its process ended"), e.WorkerJoined(HOST, 2))
    say(e.Tick(), e.AttemptStarted(T0, 2))
    runs = past_of(journal).state.trials[T0]
    assert (runs.attempt, runs.last_seq, runs.last_intermediate) == (2, 0, None)
    say(e.TrialStopRequested(T0, EndReason.STOPPED_EARLY))
    say(e.WorkerLost(HOST, "its process ended"))
    state = past_of(journal).state
    assert (state.trials[T0].state, state.trials[T0].result) == (TrialState.DELIVERING, None)
    assert said(journal, state) == ""


def test_an_attempt_that_leaves_still_goes_on_reporting(journal: SqliteJournal) -> None:
    """What is put back is the number, too: the next metric counts, the last one does not again."""
    say = older(journal)
    say(e.WorkerJoined(HOST, 2), e.TunerHostReady(), e.Proposed(T0, '{"x":0}'))
    say(e.AttemptStarted(T0, 1), e.MetricReported(T0, 1, 4, "0.25"))
    say(e.TrialStopRequested(T0, EndReason.STOPPED_EARLY))
    state = past_of(journal).state
    assert (state.trials[T0].last_seq, state.trials[T0].last_intermediate) == (4, "0.25")
    assert not core.apply(state, e.MetricReported(T0, 1, 4, "0.25"), 3000.0).counted
    assert core.apply(state, e.MetricReported(T0, 1, 5, "0.5"), 3000.0).counted


def test_an_older_base_is_brought_up_to_what_was_reported_since(journal: SqliteJournal) -> None:
    life = Life(journal, early_stop_keeps_result=True)
    say = life.say
    say(e.WorkerJoined(HOST, 2), e.TunerHostReady(), e.Proposed(T0, '{"x":0}'))
    say(e.AttemptStarted(T0, 1), e.MetricReported(T0, 1, 1, "0.25"))
    row = say(e.TrialStopRequested(T0, EndReason.STOPPED_EARLY))
    compaction = Compaction(journal)
    compaction.begin(life.state, row, ([], []), [])
    while compaction.tidy():
        pass
    say(e.MetricReported(T0, 1, 2, "0.75"))
    say(e.WorkerLost(HOST, "its process ended"), e.ResultDelivered(T0))
    assert ["result", 0, '{"x":0}', "0.75"] in past_of(journal).calls


def test_without_keeping_results_nothing_more_is_journalled() -> None:
    settings = Settings(slots=2, lookahead=8)
    state = core.new_state(settings)
    for event in (e.ExperimentCreated(settings), e.HeadStarted(1), e.WorkerJoined(HOST, 2)):
        core.apply(state, event, 1.0)
    for event in (e.TunerHostReady(), e.Proposed(T0, "{}"), e.MetricReported(T0, 1, 1, "1")):
        core.apply(state, event, 1.0)
    core.apply(state, e.TrialStopRequested(T0, EndReason.STOPPED_EARLY), 1.0)
    assert list(core.judged_by(state, e.WorkerLost(HOST, "gone"))) == []
    state.settings = Settings(slots=2, lookahead=8, early_stop_keeps_result=True)
    kept = [e.LastMetricKept(T0, 1, "1")]
    assert list(core.judged_by(state, e.WorkerLost(HOST, "gone"))) == kept
    assert list(core.judged_by(state, e.WorkerWaits(HOST, "Priority", 1.0))) == kept
    with pytest.raises(InvalidTransition, match="names trial 9"):
        core.apply(state, e.AttemptEnded(TrialId(9), 1, EndReason.LOST), 1.0)
    assert list(core.judged_by(state, e.AttemptEnded(TrialId(9), 1, EndReason.LOST))) == []
