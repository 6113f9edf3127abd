"""Experiments in which nothing can move: named, and ended, widened or left alone."""

from __future__ import annotations

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core import waits
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Phase, TrialState
from dispatcher.core.moves import move
from dispatcher.core.stalls import waits_text
from dispatcher.core.why import why
from tests.support.scene import Scene, of_kind

T0, T1, T2 = TrialId(0), TrialId(1), TrialId(2)


def standing(**settings: object) -> Scene:
    """Every request stands in a wait that is not ours."""
    scene = Scene(**{"slots": 1, "lookahead": 2, "stall_timeout_s": 60.0, **settings})
    scene.say(e.ForeignWaitSeen(T0))
    scene.say(e.ForeignWaitSeen(T1))
    return scene


def deadlock(scene: Scene) -> list[a.Action]:
    """Edges that our own rules refuse to draw: what a fault of ours would look like."""
    state = scene.state
    state.trigger = e.WaitStarted
    for waiter, parent in ((T0, T1), (T1, T0)):
        waits.erase(state, waiter)
        if state.trials[waiter].state is TrialState.BLOCKED:
            move(state, state.trials[waiter], TrialState.OPEN)
        waits.draw(state, waiter, 1, (parent,), "all")
        move(state, state.trials[waiter], TrialState.BLOCKED)
    return scene.say(e.Tick())


def test_a_suspected_stall_is_named_after_its_time_and_then_ends() -> None:
    scene = standing()
    actions = scene.tick()
    (report,) = of_kind(actions, a.ReportStall)
    assert not report.certain
    assert report.trials == (T0, T1)
    assert "request 1 stands still in a wait that is not wait_for" in report.text
    assert report.text.endswith(". Stacks: reports/stall.txt")
    assert of_kind(actions, a.AskStacks) == [a.AskStacks((T0, T1))]
    (finish,) = of_kind(scene.tick(), a.Finish)  # the stacks had their time to come in
    assert finish.phase is Phase.FAILED
    assert finish.reason.startswith("nothing can move any more: request 0")


def test_the_end_of_a_stall_names_the_line_and_the_stacks() -> None:
    scene = Scene(slots=1, lookahead=2, stall_timeout_s=60.0)
    for trial in (T0, T1):
        scene.say(e.ForeignWaitSeen(trial, "`event.wait()` at tuner.py:39"))
    scene.tick()
    assert why(scene.state, scene.now).text.endswith("Stacks: reports/stall.txt")
    (finish,) = of_kind(scene.tick(), a.Finish)
    assert finish.reason.startswith("nothing can move any more: 2 requests stand in `event.wait()`")
    assert finish.reason.endswith("no wait_for). Stacks: reports/stall.txt")


def test_it_is_no_stall_while_a_trial_is_under_way() -> None:
    scene = Scene(slots=2, lookahead=1, stall_timeout_s=60.0)
    scene.propose(0)
    scene.say(e.ForeignWaitSeen(T1))
    assert core.next_deadline(scene.state) is None
    scene.run(0)
    assert core.next_deadline(scene.state) is None  # its result may be what they wait for
    scene.deliver(0)
    assert core.next_deadline(scene.state) == scene.now + 60.0


def test_what_moves_again_is_forgiven() -> None:
    scene = standing()
    scene.tick()
    scene.say(e.ForeignWaitOver(T0))
    scene.propose(0)
    assert scene.state.fail_at is None
    scene.say(e.Tick(), after=1000.0)
    assert scene.state.phase is Phase.RUNNING


def test_a_deadlock_is_named_at_once_and_once() -> None:
    scene = standing(on_stall="wait")
    (report,) = of_kind(deadlock(scene), a.ReportStall)
    assert report.certain
    assert "request 0 waits for 1 (blocked)" in report.text
    assert scene.say(e.Tick(), e.Tick()) == []
    assert of_kind(scene.tick(), a.ReportStall)  # and again after stallTimeout


def test_grow_raises_the_lookahead_and_uses_it() -> None:
    scene = standing(on_stall="grow")
    actions = scene.tick()
    (report,) = of_kind(actions, a.ReportStall)
    assert report.text.endswith("lookahead raised to 4")
    assert [x.trial for x in of_kind(actions, a.OpenRequest)] == [2]
    scene.say(e.ForeignWaitSeen(T2))
    scene.say(e.ForeignWaitSeen(TrialId(3)))
    assert of_kind(scene.tick(), a.ReportStall)[0].text.endswith("raised to 6")
    scene.assert_replays()


def test_grow_that_cannot_help_fails() -> None:
    scene = standing(on_stall="grow", max_trials=2, lookahead=5)
    assert of_kind(scene.tick(), a.AskStacks)
    assert of_kind(scene.tick(), a.Finish)[0].phase is Phase.FAILED


def test_wait_names_it_again_and_again() -> None:
    scene = standing(on_stall="wait")
    for _ in range(3):
        before = scene.now
        assert of_kind(scene.tick(), a.ReportStall)
        assert scene.now >= before + 58.0
    assert scene.state.phase is Phase.RUNNING


def test_who_waits_is_short_whoever_waits() -> None:
    scene = Scene(slots=1, lookahead=50, stall_timeout_s=60.0)
    for number in range(50):
        scene.say(e.ForeignWaitSeen(TrialId(number), f"`wait()` at tuner.py:{number}"))
    (report,) = of_kind(scene.tick(), a.ReportStall)
    assert "; …. Stacks" in report.text
    assert len(report.text) < 800


def test_those_who_stand_in_the_same_place_are_named_together() -> None:
    scene = Scene(slots=1, lookahead=50, stall_timeout_s=60.0)
    for number in range(30):
        scene.say(e.ForeignWaitSeen(TrialId(number), "`event.wait()` at tuner.py:39"))
    for number in range(30, 33):
        scene.wait(number, 3)
    scene.wait(33, 4)
    waiting = waits_text(scene.state, scene.now + 10)
    assert waiting == (
        "30 requests stand in `event.wait()` at tuner.py:39 (the first for 43 s; no wait_for); "
        "3 requests (the first is 30) wait for 3 (blocked); request 33 waits for 4 (blocked)"
    )
    scene.assert_replays()


def test_a_delivery_that_stands_still_is_a_suspected_stall() -> None:
    """The author's own lock is held by a request that waits for this very result."""
    scene = Scene(slots=2, max_trials=2, stall_timeout_s=30.0)
    scene.propose(0)
    scene.wait(1, 0)
    scene.run(0)
    scene.say(e.DeliveryStandsStill(TrialId(0)))
    named = scene.wait_until(scene.state.now + 31)
    (report,) = of_kind(named, a.ReportStall)
    assert not report.certain
    assert "receive_trial_result or trial_end of trial 0" in report.text
    (ask,) = of_kind(named, a.AskStacks)
    assert set(ask.trials) == {0, 1}
    scene.wait_until(scene.state.now + 10)
    assert scene.state.phase is Phase.FAILED
