"""Events of an agent's host: kept in their order until the loop takes them."""

from __future__ import annotations

from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.agent.attempt import Attempt, Exit
from trial_runtime.agent.events import AgentEvents, Exited, OverBound, Started
from trial_runtime.session_file import SESSION_VERSION, SessionFile


def attempt(trial: int) -> Attempt:
    session = SessionFile(SESSION_VERSION, "", "", trial, 1, "/none", "{}")
    return Attempt(facts.StartAttempt(LOCAL, trial, 1, "{}"), session, "")


def test_events_are_taken_in_their_order_with_those_that_come_meanwhile() -> None:
    events, first, second = AgentEvents(), attempt(1), attempt(2)
    events.started(first)
    events.exited(first, Exit(code=0))
    taken = []
    for event in events.take():
        taken.append(event)
        if event == Exited(first):  # as its successor is started
            events.started(second)
    assert taken == [Started(first), Exited(first), Started(second)]
    assert list(events.take()) == []


def test_the_first_exit_counts_and_is_on_record_at_once() -> None:
    """Mutation: a runner signals a process that was reaped, whose number is another's by now."""
    events, gone = AgentEvents(), attempt(1)
    events.exited(gone, Exit(code=3))
    events.exited(gone, Exit(signal=9))
    assert gone.exit == Exit(code=3)
    assert list(events.take()) == [Exited(gone)]


def test_a_change_of_the_offer_is_no_event_of_an_attempt() -> None:
    events, greedy = AgentEvents(), attempt(1)
    over = OverBound(greedy, facts.EndReason.OUT_OF_MEMORY, "took too much", 0.0)
    events.over_bound(over)
    events.offer_changed()
    assert list(events.take()) == [over]
    assert [events.take_offer_changed(), events.take_offer_changed()] == [True, False]
