"""Waits for a version of a shared store: by number, or by the trial that is to publish it."""

from __future__ import annotations

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, FailReason, Phase
from dispatcher.core.why import Cause, why
from tests.support.scene import Scene, of_kind
from tests.unit.core.test_store_retention import publish


def scene_of(waiting: int = 1) -> Scene:
    """Trial 0 runs; requests 1 to ``waiting`` are open."""
    scene = Scene(slots=waiting + 1, lookahead=waiting + 1)
    scene.propose(0, saves=False)
    scene.started(0)
    return scene


def wait(scene: Scene, trial: int, version: int = 0, by: int | None = None) -> list[a.Action]:
    parents = () if by is None else (TrialId(by),)
    event = e.WaitStarted(TrialId(trial), 1, parents, "version", "omega", version)
    return scene.say(event)


def answers(out: list[a.Action]) -> list[a.AnswerWait]:
    return of_kind(out, a.AnswerWait)


def test_a_number_is_answered_when_it_is_reached_and_not_before() -> None:
    scene = scene_of(2)
    assert answers(wait(scene, 1, 2)) == []
    assert 1 in scene.state.blocked
    assert answers(publish(scene, 0, 0)) == []
    assert 1 in scene.state.blocked
    out = publish(scene, 0, 1)
    assert of_kind(out, a.TellVersion) == [a.TellVersion("omega", 2, TrialId(0))]
    assert answers(out) == [], "the tuner host knows by that"
    assert 1 in scene.state.open
    assert scene.state.version_waiters == {}
    (at_once,) = answers(wait(scene, 2, 1))
    assert (at_once.kind, at_once.version) == ("granted", 2)
    scene.assert_replays()


def test_a_version_by_a_trial_is_answered_while_that_trial_runs() -> None:
    scene = scene_of(2)
    wait(scene, 1, by=0)
    publish(scene, 0, 0)
    assert 1 in scene.state.open
    scene.exit(0)
    scene.deliver(0)
    (later,) = answers(wait(scene, 2, by=0))
    assert (later.kind, later.version) == ("granted", 1), "also after its end"


def test_a_trial_that_ends_without_one_fails_who_waits_for_it() -> None:
    scene = scene_of(2)
    wait(scene, 1, by=0)
    scene.exit(0)
    (told,) = answers(scene.deliver(0))
    assert (told.kind, told.parent, told.reason) == ("failed", 0, FailReason.NO_VERSION)
    assert 1 in scene.state.open
    (later,) = answers(wait(scene, 2, by=0))
    assert (later.kind, later.reason) == ("failed", FailReason.NO_VERSION)
    scene.assert_replays()


def test_a_trial_that_failed_says_so() -> None:
    scene = scene_of(1)
    wait(scene, 1, by=0)
    scene.exit(0, EndReason.KILLED)
    (told,) = answers(scene.deliver(0))
    assert told.reason is FailReason.KILLED


def test_another_trials_version_is_not_the_one_that_is_waited_for() -> None:
    scene = scene_of(2)
    scene.propose(1, saves=False)
    scene.started(1)
    wait(scene, 2, by=0)
    publish(scene, 1, 0)
    assert 2 in scene.state.blocked
    publish(scene, 0, 1)
    assert 2 in scene.state.open


def test_itself_who_is_not_and_who_waits_in_a_circle() -> None:
    scene = scene_of(2)
    assert [told.kind for told in answers(wait(scene, 1, by=1))] == ["self"]
    assert [told.kind for told in answers(wait(scene, 1, by=9))] == ["unknown"]
    wait(scene, 1, by=2)
    (told,) = answers(wait(scene, 2, by=1))
    assert (told.kind, told.chain) == ("cycle", (2, 1, 2))


def test_ten_thousand_may_wait_for_one_version() -> None:
    scene = Scene(slots=1, lookahead=10_001, workers=1)
    scene.propose(0, saves=False)
    scene.started(0)
    state = scene.state
    from dispatcher import core
    from dispatcher.core.model import Rule, TrialState
    from dispatcher.core.moves import new_trial

    for trial in range(1, 10_001):
        if trial not in state.trials:
            state.trigger = Rule.ASKED
            new_trial(state, to=TrialState.OPEN)
        event = e.WaitStarted(TrialId(trial), 1, (), "version", "omega", 1)
        core.apply(state, event, scene.now)
    event = e.VersionOffered(TrialId(0), 1, 5, "omega", 0, "omega/0.1-0", "d", 1)
    out = core.apply(state, event, scene.now).actions
    assert len(out) == 2, "one word for all of them, and the publisher's answer"
    assert not state.blocked
    assert len(state.open) >= 10_000


def test_why_and_a_deadlock_name_what_is_waited_for() -> None:
    scene = scene_of(1)
    publish(scene, 0, 0)
    wait(scene, 1, 5)
    wait(scene, 2, 5)
    explanation = why(scene.state, scene.now)
    assert explanation.cause in (Cause.BLOCKED, Cause.LOOKAHEAD_FULL)
    assert "version 5 of the shared store 'omega' (its newest is 1)" in explanation.text
    scene = Scene(slots=1, lookahead=1)
    scene.propose(0, saves=False)
    scene.started(0)
    scene.exit(0)
    scene.deliver(0)
    out = wait(scene, 1, by=0)
    assert answers(out)
    out = scene.say(e.WaitStarted(TrialId(1), 2, (), "version", "omega", 5))
    (stall,) = of_kind(out, a.ReportStall)
    assert stall.certain, "nothing runs that could publish it"
    assert "version 5 of the shared store 'omega' (it has none yet)" in stall.text
    assert scene.state.phase is Phase.RUNNING


def test_a_wait_that_is_given_up_or_whose_host_is_gone_leaves_nothing() -> None:
    scene = scene_of(1)
    wait(scene, 1, 5)
    scene.say(e.WaitGivenUp(TrialId(1), 1))
    assert scene.state.version_waiters == {}
    scene.say(e.WaitStarted(TrialId(1), 2, (TrialId(0),), "version", "omega", 0))
    scene.say(e.TunerHostLost("gone"))
    assert scene.state.version_waiters == {}
    assert scene.state.waiters == {}
