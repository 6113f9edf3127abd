"""Attempts: retries, losses, agents that come and go, kills, and words that come late."""

from __future__ import annotations

from dataclasses import replace

import pytest

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import AttemptState, EndReason, Outcome, Phase, TrialState
from dispatcher.state_codec import decode_state, encode_state
from tests.support.scene import HOST, Scene, of_kind, weights

T0 = TrialId(0)


def one(**settings: object) -> Scene:
    """Trial 0 has started."""
    scene = Scene(**{"slots": 1, "retry_backoff_s": 2.0, **settings})
    scene.propose(0)
    scene.started(0)
    return scene


def test_back_off_doubles_and_is_bounded() -> None:
    scene = one(trial_retries=5, retry_backoff_max_s=10.0)
    pauses = []
    for attempt in range(1, 6):
        scene.exit(0, EndReason.FAILED, attempt)
        pauses.append(scene.state.backoff[T0] - scene.now)
        scene.tick()
        assert scene.trial(0).attempt == attempt + 1
    assert pauses == [2.0, 4.0, 8.0, 10.0, 10.0]
    scene.exit(0, EndReason.FAILED, 6)
    assert scene.trial(0).state is TrialState.DELIVERING


@pytest.mark.parametrize("end", ["failed", "lost"])
def test_words_of_the_next_attempt_count_from_its_first_one(end: str) -> None:
    """Each attempt numbers its own. Mutations: what the one before had numbered higher stands for
    what the next one says: it has no weights, its children never start, and no metrics."""
    scene = one(trial_retries=1, lost_retries=1)
    scene.metric(0, 50, "9.0")
    scene.say(e.WeightsPublished(T0, 1, 60, weights(0, 1)))
    assert scene.trial(0).weights == weights(0, 1)
    if end == "failed":
        scene.exit(0, EndReason.FAILED)
    else:
        scene.say(e.WorkerLost(HOST, "gone"), e.WorkerJoined(HOST, 1))
    scene.tick()
    assert scene.trial(0).attempt == 2
    assert scene.trial(0).weights is None
    scene.started(0, attempt=2)
    for seq in (1, 3):
        scene.metric(0, seq, f"0.{seq}", attempt=2)
        assert scene.counted
        assert scene.trial(0).last_intermediate == f"0.{seq}"
        found = replace(weights(0, 2), nbytes=seq)
        scene.say(e.WeightsPublished(T0, 2, seq + 1, found))
        assert scene.counted
        assert scene.trial(0).weights == found
    scene.metric(0, 3, "0.9", attempt=2)
    assert not scene.counted, "said again"
    scene.say(e.WeightsPublished(T0, 2, 4, weights(0, 1)))
    assert not scene.counted, "said again"
    scene.final(0, attempt=2)
    scene.exit(0, attempt=2)
    scene.deliver(0)
    assert scene.trial(0).success
    scene.propose(1, parent=0)
    assert scene.trial(1).state is TrialState.RUNNING


def test_a_lost_attempt_does_not_count_against_the_trial() -> None:
    scene = one(trial_retries=0, lost_retries=1)
    (launch,) = of_kind(scene.say(e.WorkerLost(HOST, "gone")), a.LaunchWorker)
    assert launch.worker == HOST
    assert (scene.trial(0).failures, scene.trial(0).losses) == (0, 1)
    scene.say(e.WorkerJoined(HOST, 1))
    (start,) = of_kind(scene.tick(), a.StartAttempt)
    assert start.attempt == 2
    scene.say(e.WorkerLost(HOST, "gone"))
    assert scene.trial(0).outcome is Outcome.LOST


def test_a_timeout_or_a_kill_is_not_tried_again() -> None:
    for reason in (EndReason.TIMED_OUT, EndReason.KILLED):
        scene = one(trial_retries=5)
        scene.exit(0, reason)
        assert scene.trial(0).state is TrialState.DELIVERING


def test_no_attempt_follows_in_a_drain_and_nothing_is_due() -> None:
    """A back-off that ran out in a drain once made the head tick for ever."""
    from dispatcher.core import next_deadline

    scene = Scene(trial_retries=3)
    scene.propose(0)
    scene.propose(1)
    scene.exit(0, EndReason.FAILED)
    scene.say(e.StopRequested(e.StopKind.DRAIN, "user"))
    assert next_deadline(scene.state) is None


def test_words_of_a_superseded_attempt_are_recorded_and_not_counted() -> None:
    scene = one()
    scene.exit(0, EndReason.FAILED)
    scene.tick()
    for late in (
        e.AttemptStarted(T0, 1),
        e.MetricReported(T0, 1, 99, "9"),
        e.FinalReported(T0, 1, 99, "9"),
        e.WeightsPublished(T0, 1, 99, weights(9)),
        e.AttemptEnded(T0, 1, EndReason.FINISHED),
    ):
        assert scene.say(late) == []
        assert not scene.counted
    trial = scene.trial(0)
    assert (trial.final, trial.weights, trial.last_intermediate) == (None, None, None)
    assert trial.attempt_state is AttemptState.STARTING


def test_a_second_attempt_begins_with_nothing_of_the_first() -> None:
    scene = one()
    scene.metric(0, 5, "0.5")
    scene.publish(0)
    scene.exit(0, EndReason.FAILED)
    scene.tick()
    scene.started(0, 2)
    scene.metric(0, 1, "0.1", attempt=2)
    assert scene.counted
    scene.final(0, attempt=2)
    (deliver,) = of_kind(scene.exit(0, attempt=2), a.Deliver)
    assert deliver.verdict.reason is not None  # the first attempt's weights are not the trial's


@pytest.mark.parametrize("earlier", [52, 200], ids=["the same message", "a later message"])
@pytest.mark.parametrize("how", ["failed", "lost", "preempted", "stopped", "moved"])
def test_an_attempt_that_says_what_the_one_before_said_counts(how: str, earlier: int) -> None:
    """Each attempt numbers its messages from 1, and the same script says the same in the same
    order. Mutation: the numbers of the attempt before still count."""

    def say_all(scene: Scene, attempt: int, at: int) -> None:
        scene.started(0, attempt)
        for seq in (1, 50, at - 1):
            scene.metric(0, seq, f"0.{seq}", attempt)
            assert scene.counted
        scene.say(e.WeightsPublished(T0, attempt, at, weights(0)))
        assert scene.counted, f"the weights of attempt {attempt}"

    scene, at_once = one(slots=2, workers=1), Scene(slots=2, workers=1)
    at_once.propose(0)
    for each in (scene, at_once):
        each.propose(1, parent=0)  # and waits for its parent's weights
    say_all(scene, 1, earlier)
    if how == "lost":
        scene.say(e.WorkerLost(HOST, "gone"), e.WorkerJoined(HOST, 1))
    elif how == "stopped":
        scene.say(e.StopRequested(e.StopKind.NOW, "user"))
        scene.exit(0, EndReason.SHUTDOWN)
        scene.say(e.HeadStarted(2), e.WorkerJoined(HOST, 1), e.TunerHostReady())
    elif how == "moved":
        scene.say(e.WorkerJoined(HOST, 1))  # as another agent, which holds nothing
    else:
        scene.exit(0, EndReason.FAILED if how == "failed" else EndReason.PREEMPTED)
    while scene.trial(0).attempt < 2:
        scene.tick()
    say_all(scene, 2, 52)
    say_all(at_once, 1, 52)
    newest, first = scene.trial(0), at_once.trial(0)
    for name in ("last_seq", "weights_seq", "last_intermediate", "weights", "self_published"):
        assert getattr(newest, name) == getattr(first, name), name
    assert (newest.heard, newest.attempt_state) == (first.heard, first.attempt_state)
    scene.final(0, attempt=2)
    scene.exit(0, attempt=2)
    (start,) = of_kind(scene.deliver(0), a.StartAttempt)
    assert (start.trial, start.restore_digest) == (1, weights(0).digest)
    scene.assert_replays()


def test_repeated_words_count_once() -> None:
    scene = one()
    scene.metric(0, 2, "0.2")
    for seq in (2, 1):
        scene.metric(0, seq, "9")
        assert not scene.counted
    scene.final(0, "0.5")
    scene.final(0, "0.6")
    assert not scene.counted
    scene.publish(0)
    scene.publish(0)
    assert not scene.counted
    assert (scene.trial(0).final, scene.trial(0).last_intermediate) == ("0.5", "0.2")


@pytest.mark.parametrize("reason", [EndReason.FINISHED, EndReason.FAILED, EndReason.SHUTDOWN])
def test_no_metric_is_left_of_an_attempt_that_is_over(reason: EndReason) -> None:
    """A replay has none either. Mutation: they stay, and life and replay are two states."""
    scene = one()
    scene.metric(0, 2, "0.2")
    scene.assert_replays()
    if reason is EndReason.FINISHED:
        scene.final(0, "0.5")
    scene.exit(0, reason)
    assert (scene.trial(0).last_seq, scene.trial(0).last_intermediate) == (0, None)
    scene.assert_replays()


def test_a_final_counts_whatever_metrics_came_before_it() -> None:
    """Metrics are not in the journal: had they a say, a restart would judge differently."""
    scene = one()
    scene.metric(0, 50, "0.2")
    scene.say(e.FinalReported(T0, 1, 3, "0.5"))
    assert scene.counted
    scene.assert_replays()


def test_metrics_and_stacks_change_nothing_that_a_replay_must_find() -> None:
    scene = one()
    before = (scene.state.now, scene.state.last_event_at)
    scene.metric(0, 1, "0.2")
    assert scene.say(e.StacksReported({})) == []
    assert (scene.state.now, scene.state.last_event_at) == before
    scene.assert_replays()


def test_an_answer_to_ask_stacks_starts_nothing() -> None:
    """The engine does not journal it, so what it led to would be lost."""
    scene = one(trial_retries=1)
    scene.exit(0, EndReason.FAILED)
    assert scene.say(e.StacksReported({}), after=100.0) == []
    assert scene.trial(0).state is TrialState.BACKOFF
    assert of_kind(scene.tick(), a.StartAttempt)


# -- agents ------------------------------------------------------------------------------------


def test_what_an_agent_holds_goes_on() -> None:
    scene = one()
    assert scene.say(e.WorkerJoined(HOST, 1, ((T0, 1),))) == []
    assert scene.trial(0).state is TrialState.RUNNING


def test_what_never_reached_an_agent_is_asked_again_under_the_same_number() -> None:
    scene = Scene(slots=1)
    (first,) = of_kind(scene.propose(0), a.StartAttempt)
    assert scene.say(e.WorkerJoined(HOST, 1)) == [first]


def test_what_started_and_is_not_there_any_more_is_lost() -> None:
    scene = one()
    scene.say(e.WorkerJoined(HOST, 1))
    assert scene.trial(0).losses == 1


def test_what_has_spoken_has_started() -> None:
    scene = Scene(slots=1)
    scene.propose(0)
    scene.final(0)  # its "started" was lost
    assert not of_kind(scene.say(e.WorkerJoined(HOST, 1)), a.StartAttempt)
    assert scene.trial(0).outcome is Outcome.LOST


def test_an_agent_may_hold_words_of_an_older_attempt_as_well() -> None:
    scene = one()
    scene.exit(0, EndReason.FAILED)
    scene.tick()
    scene.started(0, 2)
    for holds in (((T0, 1), (T0, 2)), ((T0, 2), (T0, 1))):
        (stop,) = scene.say(e.WorkerJoined(HOST, 1, holds))
        assert isinstance(stop, a.StopAttempt)
        assert stop.attempt == 1
        assert scene.trial(0).attempt_state is AttemptState.RUNNING


def test_an_agent_lost_again_and_again_ends_the_experiment() -> None:
    scene = Scene()
    for _ in range(2):
        assert of_kind(scene.say(e.WorkerLost(HOST, "no")), a.LaunchWorker)
    actions = scene.say(e.WorkerLost(HOST, "no"))
    assert [x.phase for x in of_kind(actions, a.Finish)] == [Phase.FAILED]
    assert not of_kind(actions, a.LaunchWorker)


def test_nothing_new_goes_to_a_silent_worker_and_what_it_runs_goes_on() -> None:
    scene = Scene(slots=2)
    scene.propose(0)
    scene.say(e.WorkerSuspect(HOST, 31.0))
    assert not of_kind(scene.propose(1), a.StartAttempt)
    assert scene.trial(0).state is TrialState.RUNNING
    (start,) = of_kind(scene.say(e.WorkerHeard(HOST)), a.StartAttempt)
    assert start.trial == 1
    scene.assert_replays()


def test_silence_ends_with_a_hello_or_a_loss_and_is_told_once() -> None:
    scene = Scene(slots=1)
    for over in (e.WorkerJoined(HOST, 1), e.WorkerLost(HOST, "gone")):
        scene.say(e.WorkerSuspect(HOST, 31.0))
        scene.say(e.WorkerSuspect(HOST, 32.0))
        assert not scene.counted
        scene.say(over)
        assert scene.state.workers[HOST].suspect_since is None
        scene.say(e.WorkerHeard(HOST))
        assert not scene.counted
    scene.say(e.WorkerSuspect(HOST, 31.0))
    assert not scene.counted  # nobody is there to be suspected
    scene.say(e.WorkerSuspect(WorkerId("nobody"), 31.0))
    assert not scene.counted


def test_the_emptiest_worker_gets_the_next_and_the_limit_holds_over_all() -> None:
    scene = Scene(slots=3)
    scene.say(e.WorkerJoined(WorkerId("other"), 2))
    for number in range(3):
        scene.propose(number)
    assert [scene.trial(n).worker for n in range(3)] == ["local", "local", "other"]
    scene.say(e.TrialSubmitted("{}"))
    assert list(scene.state.queued) == [3]


# -- kills and stops ---------------------------------------------------------------------------


def test_a_kill_is_not_undone_by_a_failure_or_a_loss() -> None:
    for reason in (EndReason.FAILED, EndReason.LOST, EndReason.SHUTDOWN, EndReason.KILLED):
        scene = one(trial_retries=5)
        scene.say(e.TrialStopRequested(T0, EndReason.KILLED))
        scene.exit(0, reason)
        assert scene.trial(0).state is TrialState.DELIVERING


def test_a_kill_survives_the_head() -> None:
    scene = one()
    scene.say(e.TrialStopRequested(T0, EndReason.KILLED))
    scene.say(e.HeadStarted(2))
    (stop,) = scene.say(e.WorkerJoined(HOST, 1, ((T0, 1),)))
    assert stop == a.StopAttempt(HOST, T0, 1, EndReason.KILLED, 10.0)
    scene.say(e.WorkerJoined(HOST, 1))
    assert scene.trial(0).outcome is Outcome.KILLED


def test_a_kill_during_a_stop_is_remembered() -> None:
    scene = one()
    scene.say(e.StopRequested(e.StopKind.NOW, "user"))
    scene.say(e.TrialStopRequested(T0, EndReason.KILLED))
    scene.exit(0, EndReason.SHUTDOWN)
    assert scene.trial(0).outcome is Outcome.KILLED


@pytest.mark.parametrize("where", ["queued", "held", "backoff"])
def test_a_kill_before_there_is_an_attempt(where: str) -> None:
    scene = Scene(slots=2, workers=1)
    scene.propose(0)
    if where == "queued":
        scene.propose(1)
    elif where == "held":
        scene.propose(1, parent=0)
    else:
        scene.started(0)
        scene.exit(0, EndReason.FAILED)
    number = 0 if where == "backoff" else 1
    assert scene.trial(number).state.value == where
    actions = scene.say(e.TrialStopRequested(TrialId(number), EndReason.KILLED))
    (deliver,) = of_kind(actions, a.Deliver)
    assert (deliver.value, deliver.success) == (None, False)
    assert not scene.state.waits


@pytest.mark.parametrize("how", ["open", "blocked", "parked"])
def test_a_kill_of_a_request_cancels_it(how: str) -> None:
    scene = Scene(slots=2)
    scene.propose(0)
    if how == "blocked":
        scene.wait(1, 0)
    if how == "parked":
        scene.not_now(1)
    actions = scene.say(e.TrialStopRequested(TrialId(1), EndReason.KILLED))
    assert actions[0] == a.CancelRequest(TrialId(1))
    assert scene.trial(1).outcome is Outcome.NO_TRIAL
    scene.propose(1)  # crossed
    assert not scene.counted


@pytest.mark.parametrize("code, outcome", [(0, Outcome.SUCCEEDED), (143, Outcome.FAILED)])
def test_who_was_through_when_all_was_stopped_has_succeeded(code: int, outcome: Outcome) -> None:
    """Mutation: what the order to stop meets has failed, whatever it left."""
    scene = one(through_when_stopped=True)
    scene.say(e.FinalReported(T0, 1, 1, "0.9"))
    scene.say(e.StopRequested(e.StopKind.NOW, "user"))
    scene.say(e.AttemptEnded(T0, 1, EndReason.SHUTDOWN, code))
    assert (scene.trial(0).outcome, scene.trial(0).result) == (outcome, "0.9")


def test_stop_now_ends_attempts_which_run_again_after_a_resume() -> None:
    scene = one()
    (stop,) = scene.say(e.StopRequested(e.StopKind.NOW, "user", grace_s=3.0))
    assert stop == a.StopAttempt(HOST, T0, 1, EndReason.SHUTDOWN, 3.0)
    (finish,) = of_kind(scene.exit(0, EndReason.SHUTDOWN), a.Finish)
    assert finish == a.Finish(Phase.STOPPED, "user")
    scene.say(e.HeadStarted(2))
    (start,) = of_kind(scene.say(e.WorkerJoined(HOST, 1)), a.StartAttempt)
    assert start.attempt == 2
    assert (scene.trial(0).failures, scene.trial(0).losses) == (0, 0)


NOW, DRAIN = e.StopKind.NOW, e.StopKind.DRAIN
ENDS_EARLIER = {
    "nothing": (),
    "a drain": (e.StopRequested(DRAIN, "user"),),
    "a stop": (e.StopRequested(NOW, "user"),),
    "a stop with a long grace": (e.StopRequested(NOW, "user", grace_s=600.0),),
    "a drain and a stop": (e.StopRequested(DRAIN, "user"), e.StopRequested(NOW, "user")),
    "a kill of the trial": (e.TrialStopRequested(T0, EndReason.KILLED),),
    "an early stop": (e.TrialStopRequested(T0, EndReason.STOPPED_EARLY),),
}


@pytest.mark.parametrize("grace_s", [None, 0.0, 3.0])
@pytest.mark.parametrize("runs", [False, True])
@pytest.mark.parametrize("before", ENDS_EARLIER)
def test_a_stop_goes_as_far_as_it_says_whatever_was_asked_before(
    before: str, runs: bool, grace_s: float | None
) -> None:
    """``bequeath kill`` is a stop with a grace of its own. Without one of its own a stop leaves
    what is being stopped alone: its time is counted already."""
    scene = Scene(slots=1, trial_stop_grace_s=10.0)
    scene.propose(0)
    if runs:
        scene.started(0)
    earlier = scene.say(*ENDS_EARLIER[before])
    stops = of_kind(scene.say(e.StopRequested(NOW, "user", grace_s=grace_s)), a.StopAttempt)
    reason = getattr(ENDS_EARLIER[before][-1], "reason", None) if before != "nothing" else None
    if not isinstance(reason, EndReason):
        reason = EndReason.SHUTDOWN
    if grace_s is not None:
        assert stops == [a.StopAttempt(HOST, T0, 1, reason, grace_s)]
    elif of_kind(earlier, a.StopAttempt):
        assert stops == []
    else:
        assert stops == [a.StopAttempt(HOST, T0, 1, reason, 10.0)]


STOPS: dict[str, tuple[tuple[e.Event, ...], float]] = {
    "the usual grace": ((e.StopRequested(NOW, "user"),), 10.0),
    "time to save": ((e.StopRequested(NOW, "user", grace_s=600.0),), 600.0),
    "at once": ((e.StopRequested(NOW, "user", grace_s=0.0),), 0.0),
    "at once after all": (
        (e.StopRequested(NOW, "user", grace_s=600.0), e.StopRequested(NOW, "user", grace_s=0.0)),
        0.0,
    ),
    "the same once more": (
        (e.StopRequested(NOW, "user", grace_s=600.0), e.StopRequested(NOW, "user")),
        600.0,
    ),
    "of a trial that is killed": (
        (
            e.TrialStopRequested(T0, EndReason.KILLED),
            e.StopRequested(NOW, "user", grace_s=600.0),
        ),
        600.0,
    ),
    "of a trial that is killed then": (
        (
            e.StopRequested(NOW, "user", grace_s=600.0),
            e.TrialStopRequested(T0, EndReason.KILLED),
        ),
        600.0,
    ),
}


@pytest.mark.parametrize("resumed", [False, True], ids=["one head", "the next head"])
@pytest.mark.parametrize("stop", STOPS)
def test_a_stop_that_is_ordered_again_keeps_its_grace(stop: str, resumed: bool) -> None:
    """After each hello of its agent an order is repeated, which may never have come. Mutation: with
    the usual grace: a trial that has ten minutes to save is killed after ten seconds, as soon as
    the line to its machine fails for a moment."""
    events, grace_s = STOPS[stop]
    scene = one(trial_stop_grace_s=10.0)
    scene.say(*events)
    reason = scene.trial(0).kill_reason or EndReason.SHUTDOWN
    if resumed:
        scene.say(e.HeadStarted(2))
    again = [a.StopAttempt(HOST, T0, 1, reason, grace_s)]
    if resumed and reason is EndReason.SHUTDOWN:
        again = []  # what was stopped with the experiment goes on with it
    for _ in range(2):
        assert scene.say(e.WorkerJoined(HOST, 1, ((T0, 1),))) == again
    for state in (scene.state, scene.replayed(), decode_state(encode_state(scene.state))):
        assert of_kind(core.outstanding(state), a.StopAttempt) == again
    scene.assert_replays()


def test_a_grace_is_that_of_one_attempt() -> None:
    """Mutation: the next attempt is stopped with what a user gave the one before."""
    scene = one(trial_stop_grace_s=10.0)
    scene.say(e.StopRequested(NOW, "user", grace_s=600.0))
    scene.exit(0, EndReason.SHUTDOWN)
    scene.say(e.HeadStarted(2), e.WorkerJoined(HOST, 1))
    scene.started(0, 2)
    (stop,) = scene.say(e.TrialStopRequested(T0, EndReason.KILLED))
    assert stop == a.StopAttempt(HOST, T0, 2, EndReason.KILLED, 10.0)
    assert scene.say(e.WorkerJoined(HOST, 1, ((T0, 2),))) == [stop]


def test_a_drain_finishes_what_runs_and_starts_nothing() -> None:
    scene = Scene(slots=2, workers=1)
    scene.propose(0)
    scene.propose(1)
    assert scene.say(e.StopRequested(e.StopKind.DRAIN, "user")) == []
    actions = scene.run(0)
    assert not of_kind(actions, a.StartAttempt)
    assert of_kind(scene.deliver(0), a.Finish)[0].phase is Phase.STOPPED
    scene.assert_replays()
