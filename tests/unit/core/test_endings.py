"""How trials end (design §1): a scenario a row, from the last attempt to the waiting child."""

from __future__ import annotations

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, FailReason, Outcome, TrialState, Verdict
from tests.support.scene import Scene, of_kind


def family(**settings: object) -> Scene:
    """Trial 0 runs; request 1 waits for it."""
    scene = Scene(**{"trial_retries": 0, "lost_retries": 0, **settings})
    scene.propose(0)
    scene.started(0)
    scene.wait(1, 0)
    return scene


def told(actions: list[a.Action]) -> a.Deliver:
    (deliver,) = of_kind(actions, a.Deliver)
    return deliver


def after_the_end(scene: Scene) -> tuple[TrialState, object]:
    """The waiting child moves when, and only when, result and end were delivered."""
    child, parent = scene.trial(1), scene.trial(0)
    assert child.state is TrialState.BLOCKED
    if parent.result is not None:
        scene.result(0)
        assert child.state is TrialState.BLOCKED
    assert parent.verdict is None
    scene.end(0)
    assert child.state is TrialState.OPEN
    return parent.state, parent.verdict


def test_final_exit_0_weights_committed() -> None:
    scene = family()
    scene.publish(0)
    scene.final(0, "0.9")
    deliver = told(scene.exit(0))
    assert (deliver.value, deliver.success, deliver.verdict) == ("0.9", True, Verdict())
    assert after_the_end(scene) == (TrialState.ENDED, Verdict())


def test_weights_may_be_plain_files_that_the_agent_found() -> None:
    scene = family()
    scene.final(0)
    assert told(scene.exit(0, files=True)).verdict.ok


def test_final_exit_0_and_the_promised_weights_are_not_there() -> None:
    scene = family()
    scene.final(0, "0.9")
    deliver = told(scene.exit(0))
    assert (deliver.value, deliver.success) == ("0.9", True)
    assert after_the_end(scene)[1] == Verdict(FailReason.WEIGHTS_MISSING)


def test_who_promises_no_weights_owes_none() -> None:
    scene = Scene()
    scene.propose(0, saves=False)
    scene.final(0)
    assert told(scene.exit(0)).verdict.ok


@pytest.mark.parametrize("substitute", [None, "-1"])
@pytest.mark.parametrize("committed", [True, False])
def test_exit_0_without_a_final(substitute: str | None, committed: bool) -> None:
    scene = family(substitute_result=substitute)
    deliver = told(scene.exit(0, files=committed))
    assert (deliver.value, deliver.success) == (substitute, True)
    expected = Verdict() if committed else Verdict(FailReason.WEIGHTS_MISSING)
    assert after_the_end(scene)[1] == expected


def test_a_silent_trial_fails_where_the_file_says_so() -> None:
    scene = family(silent_is_failure=True)
    deliver = told(scene.exit(0, files=True))
    assert (deliver.value, deliver.success) == (None, False)
    assert after_the_end(scene)[1] == Verdict(FailReason.FAILED)


@pytest.mark.parametrize("reason", [EndReason.FAILED, EndReason.SIGNALLED, EndReason.LOST])
@pytest.mark.parametrize("published", [True, False])
def test_final_reported_then_a_crash(reason: EndReason, published: bool) -> None:
    scene = family(trial_retries=9, lost_retries=9)
    scene.final(0, "0.9")
    if published:
        scene.publish(0)
    deliver = told(scene.exit(0, reason, files=not published))
    assert (deliver.value, deliver.success) == ("0.9", False)
    assert deliver.verdict.ok is published  # files found after a crash may be torn
    assert after_the_end(scene)[0] is TrialState.ENDED
    assert scene.trial(0).attempt == 1


@pytest.mark.parametrize(
    "reason, outcome, word",
    [
        (EndReason.FAILED, Outcome.FAILED, FailReason.FAILED),
        (EndReason.SIGNALLED, Outcome.FAILED, FailReason.FAILED),
        (EndReason.OUT_OF_MEMORY, Outcome.FAILED, FailReason.FAILED),
        (EndReason.START_FAILED, Outcome.FAILED, FailReason.FAILED),
        (EndReason.TIMED_OUT, Outcome.TIMED_OUT, FailReason.TIMED_OUT),
        (EndReason.LOST, Outcome.LOST, FailReason.LOST),
        (EndReason.KILLED, Outcome.KILLED, FailReason.KILLED),
    ],
)
def test_failed_timed_out_lost_killed(
    reason: EndReason, outcome: Outcome, word: FailReason
) -> None:
    scene = family()
    scene.publish(0)  # complete weights of a trial without a result bequeath nothing
    deliver = told(scene.exit(0, reason))
    assert (deliver.value, deliver.success) == (None, False)
    assert after_the_end(scene)[1] == Verdict(word)
    assert scene.trial(0).outcome is outcome


@pytest.mark.parametrize("keeps", [True, False])
@pytest.mark.parametrize("published", [True, False])
def test_stopped_early(keeps: bool, published: bool) -> None:
    scene = family(early_stop_keeps_result=keeps)
    scene.metric(0, 1, "0.1")
    scene.metric(0, 2, "0.2")
    if published:
        scene.publish(0)
    (stop,) = scene.say(e.TrialStopRequested(TrialId(0), EndReason.STOPPED_EARLY))
    assert isinstance(stop, a.StopAttempt)
    deliver = told(scene.exit(0, EndReason.STOPPED_EARLY))
    assert (deliver.value, deliver.success) == (("0.2", True) if keeps else (None, False))
    expected = Verdict() if published else Verdict(FailReason.STOPPED_EARLY)
    assert after_the_end(scene)[1] == expected


@pytest.mark.parametrize(
    "kind", [e.RequestEnd.ERROR, e.RequestEnd.NONSENSE, e.RequestEnd.CANCELLED]
)
def test_a_request_that_ended_without_parameters(kind: e.RequestEnd) -> None:
    scene = Scene(on_tuner_error="continue")
    scene.wait(1, 0)
    actions = scene.refuse(0, kind, text="Traceback\nValueError: no")
    (gate,) = of_kind(actions, a.OpenGate)
    assert gate == a.OpenGate(TrialId(0), Verdict(FailReason.NO_TRIAL))
    assert not of_kind(actions, a.Deliver)
    assert scene.trial(1).state is TrialState.OPEN


def test_a_failed_attempt_that_is_tried_again_releases_nobody() -> None:
    scene = family(trial_retries=1)
    assert not of_kind(scene.exit(0, EndReason.FAILED), a.Deliver)
    assert scene.trial(1).state is TrialState.BLOCKED
    (start,) = of_kind(scene.tick(), a.StartAttempt)
    assert start.attempt == 2
    assert told(scene.run(0, attempt=2)).success
    assert after_the_end(scene)[1] == Verdict()


def test_a_gate_never_opens_before_the_result() -> None:
    """STYLE §3: the order is the product's promise, so an end that overtakes is refused."""
    from dispatcher.errors import InvalidTransition

    scene = family()
    scene.run(0)
    with pytest.raises(InvalidTransition, match="promise 1"):
        scene.end(0)
    scene.result(0)
    with pytest.raises(InvalidTransition, match="delivered before"):
        scene.result(0)
    scene.end(0)


@pytest.mark.parametrize("end_dropped", [True, False])
def test_what_a_killed_request_returns_is_ended_and_never_run(end_dropped: bool) -> None:
    """Others may wait for its trial_end in a way of their own. Journals from before say nothing."""
    scene = Scene(slots=3, lookahead=8, end_dropped=end_dropped)
    scene.wait(2, 1)
    scene.say(e.ForeignWaitSeen(TrialId(1)))
    killed = scene.say(e.TrialStopRequested(TrialId(1), EndReason.KILLED))
    assert a.CancelRequest(TrialId(1)) in killed
    assert any(isinstance(each, a.OpenGate) and each.trial == 1 for each in killed)
    assert scene.trial(2).state is TrialState.OPEN  # wait_for does not wait for the thread
    said = scene.propose(1)
    told = [each for each in said if isinstance(each, a.Deliver)]
    if not end_dropped:
        assert told == []
        assert not scene.counted
        return
    (told_once,) = told
    assert (told_once.trial, told_once.value, told_once.success) == (1, None, False)
    assert scene.state.submitted == 0
    scene.end(1)
    assert scene.trial(1).outcome is Outcome.NO_TRIAL
    assert scene.trial(1).state is TrialState.ENDED
    assert scene.propose(1) == []  # once
    assert not scene.counted


def test_a_killed_request_that_raises_has_nothing_to_end() -> None:
    scene = Scene(end_dropped=True)
    scene.say(e.TrialStopRequested(TrialId(0), EndReason.KILLED))
    assert scene.refuse(0, e.RequestEnd.CANCELLED) == []
    assert not scene.counted


@pytest.mark.parametrize("end_dropped", [True, False])
def test_a_refused_answer_is_ended(end_dropped: bool) -> None:
    scene = Scene(slots=3, on_tuner_error="continue", end_dropped=end_dropped)
    scene.propose(0)
    refusals = scene.say(e.Proposed(TrialId(1), "{}", "t/0"))  # that path is another's
    nonsense = scene.refuse(2, e.RequestEnd.NONSENSE, text="x: NaN is not JSON")
    raised = scene.refuse(3, e.RequestEnd.ERROR, text="ValueError: no")
    ends = [
        [each.trial for each in said if isinstance(each, a.Deliver)]
        for said in (refusals, nonsense, raised)
    ]
    assert ends == ([[1], [2], []] if end_dropped else [[], [], []])


def test_a_refused_answer_that_is_asked_for_again_is_not_over() -> None:
    scene = Scene(on_tuner_error="retry", end_dropped=True)
    said = scene.refuse(0, e.RequestEnd.NONSENSE, text="x: NaN is not JSON")
    assert not [each for each in said if isinstance(each, a.Deliver)]
    assert a.OpenRequest(TrialId(0)) in said


# -- results that lack an objective ----------------------------------------------------------

TWO = ("default", "size")
LACKS = "its result has no number 'size', which is an objective"


@pytest.mark.parametrize(
    "result", ["0.5", '{"default": 0.5}', '{"default": 1, "size": "big"}', '{"size": NaN}', "[]"]
)
def test_a_result_that_lacks_an_objective_is_a_failure_and_no_result(result: str) -> None:
    """Mutation: the tuner gets it, and raises; or the trial is tried again."""
    scene = family(objectives=TWO, trial_retries=3)
    scene.publish(0)
    scene.final(0, result)
    deliver = told(scene.exit(0))
    assert (deliver.value, deliver.success) == (None, False)
    trial = scene.trial(0)
    assert (trial.outcome, trial.attempt) == (Outcome.FAILED, 1)
    assert trial.refusal.startswith("its result has no number '")
    assert deliver.verdict.ok, "its weights are complete, and it published them itself"


def test_a_result_that_has_them_all_counts() -> None:
    scene = family(objectives=TWO)
    scene.final(0, '{"default": 1, "size": 3, "more": "x"}')
    assert told(scene.exit(0)).success
    assert scene.trial(0).refusal == ""


def test_a_result_that_lacks_an_objective_bequeaths_nothing_that_an_agent_only_found() -> None:
    scene = family(objectives=TWO)
    scene.final(0)
    deliver = told(scene.exit(0, files=True))
    assert deliver.verdict == Verdict(FailReason.FAILED)


def test_how_it_ended_stands_above_what_its_result_lacks() -> None:
    scene = family(objectives=TWO)
    scene.final(0)
    assert told(scene.exit(0, EndReason.TIMED_OUT)).value is None
    assert scene.trial(0).outcome is Outcome.TIMED_OUT


def test_many_of_them_end_the_experiment_and_name_the_objective() -> None:
    scene = Scene(objectives=TWO, max_failed_in_a_row=2, trial_retries=0)
    for number in range(2):
        scene.propose(number)
        scene.run(number)
    assert scene.state.phase_reason == f"2 trials failed in a row with: {LACKS} (trial 1)"
