"""Restarts: of the head (replay, then what is outstanding) and of the tuner host."""

from __future__ import annotations

import copy

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import AttemptState, EndReason, Phase, TrialState
from dispatcher.core.settings import HOST_RESTARTS_IN_A_ROW, REQUEST_RETRIES, TUNER_ERRORS_IN_A_ROW
from tests.support.replaying import portrait
from tests.support.scene import HOST, Scene, of_kind

T0, T1 = TrialId(0), TrialId(1)


def busy() -> Scene:
    """One of each: a trial that runs, one being delivered, a blocked and an open request."""
    scene = Scene(slots=3)
    scene.propose(0)
    scene.started(0)
    scene.propose(1)
    scene.run(1)
    scene.wait(2, 0)
    return scene


def test_a_lost_host_is_started_again_and_asked_and_told_everything() -> None:
    scene = busy()
    (launch,) = scene.say(e.TunerHostLost("segmentation fault"))
    assert launch == a.LaunchTuner()
    assert not scene.state.blocked
    actions = scene.say(e.TunerHostReady())
    assert isinstance(actions[0], a.Deliver)  # told before it is asked
    assert [x.trial for x in of_kind(actions, a.OpenRequest)] == [2, 3, 4]
    assert scene.trial(2).asked == 2


def test_a_result_that_was_delivered_is_not_repeated() -> None:
    scene = busy()
    scene.result(1)
    scene.say(e.TunerHostLost("gone"))
    (deliver,) = of_kind(scene.say(e.TunerHostReady()), a.Deliver)
    assert deliver.result_delivered
    scene.end(1)
    assert scene.trial(1).state is TrialState.ENDED


def test_words_between_two_hosts_are_of_no_account() -> None:
    """Its successor is asked and told again, so believing them would count them twice."""
    scene = busy()
    scene.say(e.TunerHostLost("gone"))
    for word in (e.ResultDelivered(T1), e.EndDelivered(T1), e.Proposed(TrialId(2), "{}")):
        assert scene.say(word) == []
        assert not scene.counted
    assert scene.trial(1).state is TrialState.DELIVERING
    assert scene.trial(2).state is TrialState.OPEN


def test_ready_said_twice_tells_nothing_twice() -> None:
    scene = busy()
    assert scene.say(e.TunerHostReady()) == []
    assert not scene.counted


def test_a_host_that_never_gets_anywhere_ends_the_experiment() -> None:
    scene = Scene()
    for _ in range(HOST_RESTARTS_IN_A_ROW):
        assert of_kind(scene.say(e.TunerHostLost("no")), a.LaunchTuner)
    assert of_kind(scene.say(e.TunerHostLost("no")), a.Finish)[0].phase is Phase.FAILED
    scene = Scene()
    assert of_kind(scene.say(e.TunerHostLost("no", fatal=True)), a.Finish)[0].reason == "no"


def test_a_delivered_end_forgives_the_restarts_before_it() -> None:
    scene = Scene(slots=1)
    for number in range(HOST_RESTARTS_IN_A_ROW + 2):
        scene.whole(number)
        assert of_kind(scene.say(e.TunerHostLost("no")), a.LaunchTuner)
        scene.say(e.TunerHostReady())


def test_a_changed_search_space_reaches_a_new_host_first() -> None:
    scene = busy()
    assert scene.say(e.SearchSpaceUpdated("{}")) == [a.TellSearchSpace("{}")]
    scene.say(e.TunerHostLost("gone"))
    assert scene.say(e.SearchSpaceUpdated('{"a":1}')) == []
    assert scene.say(e.TunerHostReady())[0] == a.TellSearchSpace('{"a":1}')


def test_a_new_head_finds_the_state_of_the_old_one_and_knows_none_of_its_peers() -> None:
    scene = busy()
    scene.assert_replays()
    assert scene.say(e.HeadStarted(2)) == []
    assert core.outstanding(scene.state) == [a.LaunchTuner(), a.LaunchWorker(HOST)]
    assert scene.state.epoch == 2
    (gone_on,) = [scene.say(e.WorkerJoined(HOST, 3, ((T0, 1),)))]
    assert gone_on == []
    assert scene.trial(0).attempt_state is AttemptState.RUNNING
    actions = scene.say(e.TunerHostReady())
    assert [x.trial for x in of_kind(actions, a.Deliver)] == [1]
    scene.assert_replays()


def test_outstanding_looks_without_changing() -> None:
    scene = busy()
    scene.say(e.TrialStopRequested(T0, EndReason.KILLED))
    scene.say(e.TrialSubmitted("{}"))
    before = portrait(copy.deepcopy(scene.state))
    actions = core.outstanding(scene.state)
    assert core.outstanding(scene.state) == actions
    assert portrait(scene.state) == before
    kinds = list(dict.fromkeys(type(x).__name__ for x in actions))
    assert kinds == ["Deliver", "OpenRequest", "StopAttempt", "StartAttempt"]


def test_a_resumed_experiment_goes_on_where_it_was() -> None:
    scene = busy()
    scene.say(e.StopRequested(e.StopKind.DRAIN, "user"))
    scene.run(0)
    scene.deliver(1)
    assert of_kind(scene.deliver(0), a.Finish)
    scene.say(e.HeadStarted(2))
    scene.say(e.WorkerJoined(HOST, 3))
    actions = scene.say(e.TunerHostReady())
    assert [x.trial for x in of_kind(actions, a.OpenRequest)][0] == 2  # noqa: RUF015
    scene.assert_replays()


# -- tuners that raise -------------------------------------------------------------------------


def test_fail_ends_after_what_runs() -> None:
    scene = Scene(slots=2)
    scene.propose(0)
    actions = scene.refuse(1, e.RequestEnd.ERROR, text="Traceback\nKeyError: 'x'")
    assert of_kind(actions, a.ReportTunerError)[0].text.endswith("KeyError: 'x'")
    assert scene.state.phase is Phase.DRAINING
    scene.run(0)
    (finish,) = of_kind(scene.deliver(0), a.Finish)
    assert finish == a.Finish(
        Phase.FAILED, "the tuner raised in generate_parameters: KeyError: 'x'"
    )


def test_continue_gives_up_after_many_in_a_row() -> None:
    scene = Scene(slots=1, on_tuner_error="continue")
    for _ in range(TUNER_ERRORS_IN_A_ROW):
        assert scene.state.phase is Phase.RUNNING
        (request,) = scene.state.open
        scene.refuse(request, e.RequestEnd.ERROR, text="no")
    assert scene.state.phase is Phase.FAILED


def test_retry_asks_the_same_request_again_some_times() -> None:
    scene = Scene(slots=1, on_tuner_error="retry")
    for _ in range(REQUEST_RETRIES):
        (again,) = of_kind(scene.refuse(0, e.RequestEnd.ERROR, text="no"), a.OpenRequest)
        assert again.trial == 0
    (other,) = of_kind(scene.refuse(0, e.RequestEnd.ERROR, text="no"), a.OpenRequest)
    assert other.trial == 1


def test_not_now_is_no_error_that_uses_up_retries() -> None:
    scene = Scene(slots=2, on_tuner_error="retry")
    for number in range(10, 10 + REQUEST_RETRIES + 1):
        scene.say(e.TrialSubmitted("{}", f"hand/{number}"))
        hand = max(t for t in scene.state.trials if scene.trial(t).by_hand)
        scene.not_now(0)
        if 1 in scene.state.open:
            scene.not_now(1)
        scene.run(hand)
        scene.deliver(hand)
    assert scene.trial(0).asked > REQUEST_RETRIES
    (again,) = of_kind(scene.refuse(0, e.RequestEnd.ERROR, text="no"), a.OpenRequest)
    assert again.trial == 0


def test_an_error_while_results_are_taken_counts_as_delivered() -> None:
    scene = Scene(slots=1, on_tuner_error="continue")
    scene.propose(0)
    scene.run(0)
    (report,) = of_kind(scene.result(0, "ValueError"), a.ReportTunerError)
    assert report.method == "receive_trial_result"
    (report,) = of_kind(scene.end(0, "ValueError"), a.ReportTunerError)
    assert report.method == "trial_end"
    assert scene.trial(0).verdict is not None
    assert scene.state.phase is Phase.RUNNING
