"""The wall clock is stepped by hours under a head and between two heads: what is due in a minute
stays due in a minute."""

from __future__ import annotations

import pytest

from dispatcher.core import apply, new_state, next_deadline
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, State, TrialState
from dispatcher.core.settings import Settings
from dispatcher.head.clock import SteadyClock
from dispatcher.ports import JournalEntry

HOUR = 3600.0


class Machine:
    """Two clocks and a journal; a head's clock is made as the head makes it."""

    def __init__(self) -> None:
        self.wall = 1_800_000_000.0
        self.monotonic = 10.0
        self.journal: list[JournalEntry] = []
        self.state = new_state(
            Settings(
                slots=1,
                lookahead=8,
                max_duration_s=2 * HOUR,
                trial_retries=1,
                retry_backoff_s=60.0,
            )
        )
        self.clock = SteadyClock(0.0, lambda: self.wall, lambda: self.monotonic)

    def say(self, *events: e.Event) -> None:
        for event in events:
            at = self.clock()
            apply(self.state, event, at)
            self.journal.append(JournalEntry(at, event))

    def pass_time(self, seconds: float) -> None:
        self.wall += seconds
        self.monotonic += seconds

    def new_head(self) -> State:
        """The journal is read back, and time goes on from its newest moment."""
        state = new_state(self.state.settings)
        for entry in self.journal:
            apply(state, entry.event, entry.at)
        self.state = state
        self.clock = SteadyClock(state.now, lambda: self.wall, lambda: self.monotonic)
        self.say(e.HeadStarted(2))
        return state

    def due_in(self) -> float:
        due = next_deadline(self.state)
        assert due is not None
        return due - self.clock()


@pytest.fixture
def failed() -> Machine:
    """A trial that failed a moment ago and waits for its second attempt."""
    machine = Machine()
    machine.say(
        e.HeadStarted(1),
        e.WorkerJoined(WorkerId("local"), 1, ()),
        e.TunerHostReady(),
        e.Proposed(TrialId(0), "{}", None, None),
        e.AttemptStarted(TrialId(0), 1, 77),
        e.AttemptEnded(TrialId(0), 1, EndReason.FAILED, exit_code=1),
    )
    assert machine.state.trials[TrialId(0)].state is TrialState.BACKOFF
    return machine


@pytest.mark.parametrize("step", [-6 * HOUR, 6 * HOUR])
def test_a_back_off_lasts_as_long_as_it_says(failed: Machine, step: float) -> None:
    before = failed.due_in()
    assert 0 < before <= 90.0
    failed.wall += step
    assert failed.due_in() == pytest.approx(before)
    failed.say(e.Tick())
    assert failed.state.trials[TrialId(0)].state is TrialState.BACKOFF, "it is not over"
    failed.pass_time(before + 0.001)
    failed.say(e.Tick())
    assert failed.state.trials[TrialId(0)].state is TrialState.RUNNING


@pytest.mark.parametrize("step", [-6 * HOUR, 0.0])
def test_it_ends_under_the_next_head_of_a_machine_that_was_set_back(
    failed: Machine, step: float
) -> None:
    before = failed.due_in()
    failed.wall += step
    failed.new_head()
    assert failed.due_in() == pytest.approx(before), "not six hours and a minute"


@pytest.mark.parametrize("step", [-6 * HOUR, 6 * HOUR])
def test_the_longest_duration_counts_time_that_went_by(failed: Machine, step: float) -> None:
    failed.pass_time(HOUR)
    failed.say(e.Tick())
    failed.wall += step
    failed.pass_time(0.5 * HOUR)
    failed.say(e.Tick())
    assert failed.state.phase_reason == ""
    failed.pass_time(0.6 * HOUR)
    failed.say(e.Tick())
    assert "uration" in failed.state.phase_reason
