"""When requests open: what a slot would idle without, and no decision earlier than needed."""

from __future__ import annotations

from dataclasses import replace

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, Phase, TrialState
from dispatcher.core.settings import ASK_MORE_S, DELIVERY_BACKLOG
from dispatcher.core.why import why
from tests.support.scene import HOST, Scene, of_kind


def opened(actions: list[a.Action]) -> list[int]:
    return [x.trial for x in of_kind(actions, a.OpenRequest)]


def test_a_request_a_slot() -> None:
    scene = Scene(slots=3)
    assert list(scene.state.open) == [0, 1, 2]
    assert opened(scene.propose(0)) == []  # its slot is taken by the trial
    assert opened(scene.run(0)) == [3]  # free again: while the tuner is told, the next is asked
    assert opened(scene.deliver(0)) == []


def test_nothing_is_asked_of_a_tuner_that_is_not_there() -> None:
    scene = Scene(begin=False)
    assert opened(scene.say(e.HeadStarted(1), e.WorkerJoined(HOST, 2))) == []
    assert opened(scene.say(e.TunerHostReady())) == [0, 1]


def test_two_blocked_children_do_not_stop_two_slots() -> None:
    scene = Scene(slots=2)
    scene.propose(0)
    assert opened(scene.wait(1, 0)) == [2]
    assert opened(scene.wait(2, 0)) == [3]
    (start,) = of_kind(scene.propose(3), a.StartAttempt)
    assert start.trial == 3
    assert len(scene.state.running) == 2


def test_a_blocked_request_never_counts_against_slots() -> None:
    scene = Scene(slots=1, lookahead=100)
    scene.say(e.TrialSubmitted("{}", "hand"))  # runs, so that there is something to wait for
    parent = max(scene.state.trials)
    scene.say(e.SettingsUpdated(Scene(slots=2, lookahead=100).settings))
    for _ in range(50):
        (request,) = scene.state.open
        (after,) = opened(scene.wait(request, parent))
        assert after == max(scene.state.trials)
    assert len(scene.state.blocked) == 50
    assert len(scene.state.running) == 1


def test_lookahead_bounds_blocked_and_held_together() -> None:
    scene = Scene(slots=2, lookahead=2)
    scene.propose(0)
    assert opened(scene.wait(1, 0)) == [2]
    assert opened(scene.propose(2, parent=0)) == []  # held: decided, and not startable
    assert scene.trial(2).state is TrialState.HELD
    assert len(scene.state.blocked) + len(scene.state.held) == 2
    scene.run(0)
    assert opened(scene.deliver(0)) == []  # 1 is awake and 2 runs
    assert scene.trial(1).state is TrialState.OPEN
    assert scene.trial(2).state is TrialState.RUNNING


def test_max_trials_counts_trials_not_attempts() -> None:
    scene = Scene(slots=2, max_trials=2, trial_retries=3)
    scene.propose(0)
    scene.propose(1)
    scene.exit(0, EndReason.FAILED)
    scene.tick()
    assert scene.trial(0).attempt == 2
    scene.run(1)
    scene.deliver(1)
    scene.run(0, attempt=2)
    assert of_kind(scene.deliver(0), a.Finish)[0].phase is Phase.COMPLETED
    assert max(scene.state.trials) == 1


def test_open_and_blocked_requests_count_under_the_limit() -> None:
    scene = Scene(slots=4, max_trials=2)
    assert list(scene.state.open) == [0, 1]
    assert opened(scene.wait(1, 0)) == []


def test_an_abandoned_request_gives_its_place_back() -> None:
    scene = Scene(slots=1, max_trials=1, on_tuner_error="continue")
    assert opened(scene.refuse(0, e.RequestEnd.ABANDONED)) == [1]
    assert opened(scene.refuse(1, e.RequestEnd.ERROR, text="x")) == [2]
    scene.propose(2)
    assert max(scene.state.trials) == 2


def test_trials_by_hand_are_beyond_the_limit() -> None:
    scene = Scene(slots=1, max_trials=1)
    scene.say(e.TrialSubmitted("{}", "hand"))
    assert scene.trial(1).state is TrialState.RUNNING
    scene.propose(0)
    scene.run(1)
    scene.deliver(1)
    assert scene.state.phase is Phase.RUNNING
    scene.run(0)
    assert of_kind(scene.deliver(0), a.Finish)


def test_a_tuner_slower_than_its_trials_slows_the_experiment() -> None:
    scene = Scene(slots=1)
    number = 0
    while scene.state.open:
        (number,) = scene.state.open
        scene.propose(number)
        scene.run(number)
    assert len(scene.state.delivering) == 4 + DELIVERY_BACKLOG + 1
    first = min(scene.state.delivering)
    assert opened(scene.deliver(first)) == [number + 1]


def test_not_now_gives_the_slot_back_and_is_asked_again_after_a_result() -> None:
    scene = Scene(slots=2)
    scene.propose(0)
    assert opened(scene.not_now(1)) == []  # it would say the same now
    assert scene.trial(1).state is TrialState.PARKED
    scene.run(0)
    assert opened(scene.result(0)) == []
    actions = scene.end(0)
    assert opened(actions) == [1, 2]
    assert not of_kind(actions, a.Finish)
    assert scene.trial(1).asked == 2


def test_a_result_that_crossed_with_not_now_counts_as_later() -> None:
    """The tuner may have said it before it took the last result: ask, do not finish."""
    scene = Scene(slots=2)
    scene.propose(0)
    scene.run(0)
    scene.not_now(2)
    scene.deliver(0)
    assert opened(scene.not_now(1)) == [1]


def test_the_tuner_is_done_only_when_nothing_runs() -> None:
    scene = Scene(slots=2)
    scene.propose(0)
    scene.not_now(1)
    scene.run(0)
    assert scene.state.phase is Phase.RUNNING  # 0 is still being told
    assert opened(scene.deliver(0)) == [1, 2]
    scene.not_now(1)
    (finish,) = of_kind(scene.not_now(2), a.Finish)
    assert (finish.phase, finish.reason) == (Phase.COMPLETED, "the tuner has no more trials")


def test_who_waits_for_a_parked_request_is_let_go_when_the_tuner_is_done() -> None:
    scene = Scene(slots=2)
    scene.wait(1, 0)
    scene.not_now(2)
    actions = scene.not_now(0)
    assert {x.trial for x in of_kind(actions, a.OpenGate)} == {0, 2}
    assert scene.trial(1).state is TrialState.OPEN
    assert not of_kind(actions, a.Finish)
    scene.propose(1)  # it caught ParentFailed; its result may bring more
    scene.not_now(max(scene.state.open))
    scene.run(1)
    assert opened(scene.deliver(1))


def test_a_thread_in_a_foreign_wait_may_still_bring_a_trial() -> None:
    """Or 'not now' would be asked, ended and asked anew as fast as messages travel."""
    scene = Scene(slots=1)
    scene.say(e.ForeignWaitSeen(TrialId(0)))
    actions = scene.not_now(1)
    assert not of_kind(actions, a.OpenGate)
    assert opened(actions) == []
    assert scene.state.phase is Phase.RUNNING
    scene.say(e.ForeignWaitOver(TrialId(0)))
    scene.propose(0)
    scene.run(0)
    assert opened(scene.deliver(0)) == [1]


def test_a_parked_request_is_asked_again_though_the_lookahead_is_full() -> None:
    """Those who fill it may be waiting for this very request."""
    scene = Scene(slots=3, lookahead=1)
    scene.propose(0)
    scene.wait(2, 1)
    scene.not_now(1)
    scene.run(0)
    assert opened(scene.deliver(0)) == [1]


def test_more_slots_while_it_runs() -> None:
    scene = Scene(slots=1)
    assert opened(scene.say(e.SettingsUpdated(Scene(slots=3).settings))) == [1, 2]


def test_the_time_limit_lets_what_runs_finish() -> None:
    scene = Scene(slots=1, max_duration_s=100.0)
    scene.propose(0)
    scene.tick()
    assert scene.state.phase is Phase.DRAINING
    scene.run(0)
    (finish,) = of_kind(scene.deliver(0), a.Finish)
    assert finish == a.Finish(Phase.COMPLETED, "maxExperimentDuration has passed")


def test_the_time_of_a_head_that_is_gone_counts() -> None:
    scene = Scene(slots=1, max_duration_s=100.0)
    scene.propose(0)
    scene.say(e.Tick(), after=60.0)
    scene.say(e.HeadStarted(2), after=5000.0)
    assert scene.state.phase is Phase.RUNNING
    due = scene.now + 100.0 - scene.state.active_s
    assert 60 <= scene.state.active_s < 70
    scene.wait_until(due - 1.0)
    assert scene.state.phase is Phase.RUNNING
    scene.wait_until(due)
    assert scene.state.phase is Phase.DRAINING


def test_settings_that_were_changed_while_nobody_led_count_from_the_new_head_on() -> None:
    """The pause is not the old head's time, and nothing is decided in it by the new rules."""
    scene = Scene(slots=1, max_duration_s=100.0)
    scene.propose(0)
    scene.say(e.Tick(), after=60.0)
    wanted = replace(scene.settings, slots=3, max_duration_s=110.0)
    scene.say(e.HeadStarted(2, wanted), after=5000.0)
    assert scene.state.settings == wanted
    assert scene.state.phase is Phase.RUNNING
    assert 60 <= scene.state.active_s < 70
    scene.wait_until(scene.now + 110.0 - scene.state.active_s - 1.0)
    assert scene.state.phase is Phase.RUNNING
    scene.assert_replays()


def test_an_older_journal_in_which_they_came_first_is_replayed_as_it_was() -> None:
    scene = Scene(slots=1, max_duration_s=100.0)
    scene.propose(0)
    scene.say(e.Tick(), after=60.0)
    scene.say(e.SettingsUpdated(replace(scene.settings, slots=3)), after=5000.0)
    scene.say(e.HeadStarted(2))
    assert scene.state.active_s > 5000
    assert scene.state.phase is Phase.DRAINING


def test_requests_that_keep_failing_with_their_parents_are_not_asked_for_without_end() -> None:
    """They begin again after the next result; with nothing left to end, the experiment fails."""
    scene = Scene(slots=2)
    scene.propose(0)
    while scene.state.open:
        (number,) = scene.state.open
        scene.refuse(number, e.RequestEnd.ABANDONED)
    assert len(scene.state.trials) == 33
    scene.run(0)
    scene.deliver(0)
    assert scene.state.open, "a result may have changed the tuner's mind"
    while scene.state.open:
        text = "there is no trial with parameter_id 50"
        scene.refuse(next(iter(scene.state.open)), e.RequestEnd.ABANDONED, text=text)
    assert scene.state.phase is Phase.FAILED
    assert "requests failed with their parents" in scene.state.phase_reason
    assert scene.state.phase_reason.endswith(f"; the last one: {text}")


def as_nni(**settings: object) -> Scene:
    return Scene(**{"slots": 2, "lookahead": 4, "asks_at_most": 2, **settings})


def test_as_nni_asks_for_a_trial_when_one_is_over_and_delivered() -> None:
    scene = as_nni()
    scene.propose(0)
    scene.propose(1)
    assert opened(scene.run(0)) == []  # its result comes first: the tuner may need what it frees
    assert opened(scene.deliver(0)) == [2]


def test_as_nni_a_request_that_waits_holds_its_place() -> None:
    scene = as_nni()
    scene.propose(0)
    assert opened(scene.wait(1, 0)) == []
    text = why(scene.state, scene.now).text
    assert "NNI asks for 2 at a time: request 1 waits for 0 (running)" in text
    assert opened(scene.run(0)) == []
    assert opened(scene.deliver(0)) == [2]  # 1 goes on
    scene.assert_replays()


def test_as_nni_a_delivery_that_stands_still_holds_no_place() -> None:
    """It may wait for what the next request brings."""
    scene = as_nni()
    scene.propose(0)
    scene.propose(1)
    scene.run(0)
    assert opened(scene.say(e.DeliveryStandsStill(TrialId(0)))) == [2]


def test_where_nni_would_stand_still_for_ever_one_more_is_asked_for_and_another() -> None:
    scene = as_nni(stall_timeout_s=60.0)
    scene.say(e.ForeignWaitSeen(TrialId(0)))
    assert opened(scene.say(e.ForeignWaitSeen(TrialId(1)))) == []
    since = scene.now
    for number in (2, 3):
        actions = scene.tick()
        assert scene.now == since + ASK_MORE_S
        assert opened(actions) == [number]
        (told,) = of_kind(actions, a.ReportAsking)
        assert f"all {number} requests that NNI would ask for wait" in told.text
        assert not of_kind(actions, a.ReportStall)
        scene.say(e.ForeignWaitSeen(TrialId(number)))
        since = scene.now
    assert of_kind(scene.tick(), a.ReportStall)  # as many wait as lookahead allows
    assert scene.now == since + 60.0
    scene.assert_replays()


def test_nobody_waits_for_more_where_all_waits_are_ours() -> None:
    scene = as_nni(slots=1, asks_at_most=1)
    scene.say(e.TrialSubmitted("{}", "hand"))
    hand = max(scene.state.trials)
    scene.wait(0, hand)
    scene.run(hand)
    assert opened(scene.deliver(hand)) == []
    assert scene.trial(0).state is TrialState.OPEN


def test_no_more_than_max_trials_are_asked_for_where_all_wait() -> None:
    scene = as_nni(max_trials=2, stall_timeout_s=60.0)
    scene.say(e.ForeignWaitSeen(TrialId(0)), e.ForeignWaitSeen(TrialId(1)))
    actions = scene.tick()
    assert opened(actions) == []
    assert of_kind(actions, a.ReportStall)
