"""A drain ends within its bound, whatever the tuner does, and loses nothing."""

from __future__ import annotations

import pytest

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Phase, TrialState
from dispatcher.core.settings import DRAIN_PATIENCE, HOST_RESTARTS_IN_A_ROW, STALL_REPORT_S
from dispatcher.core.why import why
from tests.support.scene import HOST, Scene, of_kind

T0, T1 = TrialId(0), TrialId(1)
STALL_S = 60.0
LINE = "in receive_trial_result or trial_end of trial 0, at tuner.py:7 (with self.own:)"


def draining(kind: str = "stop", **settings: object) -> Scene:
    """Two results wait for the tuner and nothing runs, in a drain of that kind."""
    more = {"slots": 2, "stall_timeout_s": STALL_S, "bounded_drain": True, **settings}
    if kind == "duration":
        more["max_duration_s"] = 5000.0
    scene = Scene(**more)
    scene.propose(0)
    scene.propose(1)
    if kind == "stop":
        scene.say(e.StopRequested(e.StopKind.DRAIN, "the user's wish"))
    if kind == "duration":
        scene.wait_until(scene.state.started_at + 5000.0)
    scene.run(0)
    scene.run(1)
    if kind == "error":
        scene.refuse(2, e.RequestEnd.ERROR, text="ValueError: no")
    assert scene.state.phase is Phase.DRAINING
    return scene


@pytest.mark.parametrize(
    "kind, ends",
    [("stop", Phase.STOPPED), ("duration", Phase.FAILED), ("error", Phase.FAILED)],
)
def test_one_that_stands_still_ends_it_after_stall_timeout(kind: str, ends: Phase) -> None:
    scene = draining(kind)
    scene.say(e.DeliveryStandsStill(T0, LINE))
    since = scene.now
    named = scene.tick()
    assert scene.now == since + STALL_S
    assert LINE in of_kind(named, a.ReportStall)[0].text
    assert of_kind(named, a.AskStacks)[0].trials[0] == T0
    (finish,) = of_kind(scene.tick(), a.Finish)
    assert scene.now == since + STALL_S + STALL_REPORT_S
    assert finish.phase is ends
    assert LINE in finish.reason
    assert "after a resume: 2" in finish.reason
    scene.assert_replays()


def test_one_that_computes_has_longer_and_an_end_all_the_same() -> None:
    scene = draining()
    since = scene.state.quiet_since
    assert since is not None
    scene.tick()
    assert scene.now == since + DRAIN_PATIENCE * STALL_S
    assert of_kind(scene.tick(), a.Finish)[0].phase is Phase.STOPPED


def test_one_that_stands_and_moves_by_turns_has_an_end_too() -> None:
    scene = draining()
    since = scene.state.quiet_since
    assert since is not None
    while scene.state.phase is Phase.DRAINING:
        scene.say(e.DeliveryStandsStill(T0, LINE), after=STALL_S / 2)
        scene.say(e.DeliveryStandsStill(T0, over=True), after=STALL_S / 3)
    assert scene.now < since + (DRAIN_PATIENCE + 2) * STALL_S


def test_each_result_that_is_taken_begins_the_time_anew() -> None:
    scene = draining()
    scene.say(e.DeliveryStandsStill(T0, LINE))
    scene.say(e.ResultDelivered(T0), after=STALL_S - 1.0)
    scene.say(e.EndDelivered(T0), after=STALL_S - 1.0)
    assert scene.state.phase is Phase.DRAINING
    finish = of_kind(scene.deliver(1), a.Finish)
    assert finish[0].phase is Phase.STOPPED
    assert finish[0].reason == "the user's wish"


def test_trials_that_run_are_waited_for_without_a_bound() -> None:
    scene = Scene(slots=2, stall_timeout_s=STALL_S, bounded_drain=True)
    scene.propose(0)
    scene.propose(1)
    scene.say(e.StopRequested(e.StopKind.DRAIN, "the user's wish"))
    scene.run(0)
    scene.say(e.DeliveryStandsStill(T0, LINE))
    assert core.next_deadline(scene.state) is None
    scene.say(e.Tick(), after=100 * STALL_S)
    assert scene.state.phase is Phase.DRAINING
    scene.run(1)
    scene.tick()
    assert of_kind(scene.tick(), a.Finish)


def test_requests_that_never_return_do_not_hold_it() -> None:
    scene = Scene(slots=2, stall_timeout_s=STALL_S, bounded_drain=True)
    scene.say(e.ForeignWaitSeen(T0))
    assert of_kind(scene.say(e.StopRequested(e.StopKind.DRAIN, "so")), a.Finish)


def test_a_stall_that_was_named_before_the_drain_goes_on_in_it() -> None:
    scene = Scene(slots=1, stall_timeout_s=STALL_S, bounded_drain=True, max_trials=1)
    scene.propose(0)
    scene.run(0)
    scene.say(e.DeliveryStandsStill(T0, LINE))
    scene.tick()
    scene.say(e.StopRequested(e.StopKind.DRAIN, "so"))
    assert of_kind(scene.tick(), a.Finish)


def test_a_stop_ends_it_at_once() -> None:
    scene = draining()
    scene.say(e.DeliveryStandsStill(T0, LINE))
    assert of_kind(scene.say(e.StopRequested(e.StopKind.NOW, "again")), a.Finish)


@pytest.mark.parametrize("kind", ["stop", "duration", "error"])
def test_what_was_not_delivered_is_delivered_after_a_resume(kind: str) -> None:
    """Also if the resumed experiment drains at once, since its time is over."""
    scene = draining(kind)
    scene.say(e.DeliveryStandsStill(T0, LINE))
    scene.tick()
    scene.tick()
    scene.say(e.HeadStarted(2))
    assert scene.state.phase is (Phase.DRAINING if kind == "duration" else Phase.RUNNING)
    scene.say(e.WorkerJoined(HOST, 2))
    told = of_kind(scene.say(e.TunerHostReady()), a.Deliver)
    assert [one.trial for one in told] == [T0, T1]
    scene.deliver(0)
    finish = of_kind(scene.deliver(1), a.Finish)
    if kind == "duration":
        assert finish[0].phase is Phase.COMPLETED
    assert scene.trial(0).state is scene.trial(1).state is TrialState.ENDED
    scene.assert_replays()


def test_a_host_that_dies_is_started_again_for_what_it_was_not_told() -> None:
    scene = draining()
    for _ in range(HOST_RESTARTS_IN_A_ROW):
        assert of_kind(scene.say(e.TunerHostLost("killed")), a.LaunchTuner)
        assert scene.state.phase is Phase.DRAINING
        scene.say(e.TunerHostReady())
    assert of_kind(scene.say(e.TunerHostLost("killed")), a.Finish)


def test_a_host_that_never_starts_again_does_not_hold_it() -> None:
    scene = draining()
    scene.say(e.TunerHostLost("killed"))
    assert "has not started again" in why(scene.state, scene.now).text
    scene.tick()
    assert of_kind(scene.tick(), a.Finish)


def test_a_tuner_that_cannot_be_built_is_not_waited_for() -> None:
    scene = draining()
    assert of_kind(scene.say(e.TunerHostLost("no such class", fatal=True)), a.Finish)


def test_why_says_where_for_how_long_and_until_when() -> None:
    scene = draining()
    scene.say(e.DeliveryStandsStill(T0, LINE))
    text = why(scene.state, scene.now + 20.0).text
    assert "draining (the user's wish): 2 results wait for the tuner" in text
    assert f"stands still {LINE}, for 20 s so far" in text
    assert "the drain ends in 40 s (stallTimeout) at the latest" in text
    assert "delivered after a resume" in text
    scene.say(e.DeliveryStandsStill(T0, over=True))
    assert f"({DRAIN_PATIENCE} times stallTimeout)" in why(scene.state, scene.now).text


def test_older_journals_drain_as_they_did() -> None:
    scene = draining(bounded_drain=False)
    scene.say(e.DeliveryStandsStill(T0, LINE))
    assert core.next_deadline(scene.state) is None
    scene.say(e.Tick(), after=1e6)
    assert scene.state.phase is Phase.DRAINING
    assert of_kind(scene.say(e.TunerHostLost("killed")), a.Finish)
