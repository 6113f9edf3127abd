"""Failures as a policy: retries by reason, and the end of an experiment in which all fails."""

from __future__ import annotations

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.failures import telling_line
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, Outcome, Phase, TrialState
from dispatcher.core.settings import CAUSE_CHARS
from tests.support.scene import HOST, Scene, of_kind

T0 = TrialId(0)


def one(**settings: object) -> Scene:
    """Trial 0 has started."""
    scene = Scene(**{"slots": 1, "retry_backoff_s": 2.0, **settings})
    scene.propose(0)
    scene.started(0)
    return scene


def fail(scene: Scene, text: str = "", *, code: int | None = 1, reason: str = "failed") -> object:
    """The open request's trial runs and fails; the actions that followed."""
    (number,) = scene.state.open
    scene.propose(number)
    ended = e.AttemptEnded(number, 1, EndReason(reason), code, text=text)
    actions = scene.say(ended)
    return actions + scene.deliver(number)


# -- retries by reason -------------------------------------------------------------------------


@pytest.mark.parametrize("reason", list(EndReason), ids=lambda r: r.name)
def test_what_is_tried_again_unless_the_file_says_otherwise(reason: EndReason) -> None:
    scene = one(trial_retries=1, lost_retries=1)
    scene.exit(0, reason)
    again = scene.trial(0).state in (TrialState.BACKOFF, TrialState.QUEUED, TrialState.RUNNING)
    never = (EndReason.FINISHED, EndReason.TIMED_OUT, EndReason.KILLED, EndReason.STOPPED_EARLY)
    assert again is (reason not in never)


@pytest.mark.parametrize("reason", [EndReason.LOST, EndReason.PREEMPTED])
def test_what_is_not_the_trial_s_fault_does_not_count_against_it(reason: EndReason) -> None:
    scene = one(trial_retries=0, lost_retries=2, losses_at_once=True)
    actions = scene.exit(0, reason)
    (start,) = of_kind(actions, a.StartAttempt)  # at once
    assert (start.attempt, scene.trial(0).failures, scene.trial(0).losses) == (2, 0, 1)
    scene.exit(0, reason, 2)
    assert scene.state.backoff[T0] - scene.now == 2.0  # the second time after a moment
    scene.tick()
    scene.exit(0, reason, 3)
    assert scene.trial(0).outcome is Outcome.LOST
    scene.assert_replays()


def test_losses_do_not_lengthen_the_back_off_of_failures() -> None:
    scene = one(trial_retries=2, losses_at_once=True)
    scene.exit(0, EndReason.LOST)
    scene.exit(0, EndReason.FAILED, 2)
    assert scene.state.backoff[T0] - scene.now == 2.0
    scene.tick()
    scene.exit(0, EndReason.FAILED, 3)
    assert scene.state.backoff[T0] - scene.now == 4.0


def test_a_reason_with_a_limit_of_its_own_does_not_use_up_the_common_one() -> None:
    scene = one(trial_retries=1, retries={"out of memory": 0, "signalled": 2, "timed out": 1})
    scene.exit(0, EndReason.SIGNALLED)
    scene.tick()
    scene.exit(0, EndReason.TIMED_OUT, 2)
    scene.tick()
    scene.exit(0, EndReason.SIGNALLED, 3)
    scene.tick()
    assert scene.trial(0).failures == 0
    scene.exit(0, EndReason.FAILED, 4)
    assert scene.trial(0).failures == 1
    assert scene.state.backoff[T0] - scene.now == 16.0  # the fourth of all
    scene.tick()
    scene.exit(0, EndReason.OUT_OF_MEMORY, 5)
    assert scene.trial(0).outcome is Outcome.FAILED
    scene.assert_replays()


def test_an_older_journal_keeps_its_back_off() -> None:
    """Replayed under another rule, attempts would begin that never did."""
    scene = one(lost_retries=5)
    assert not of_kind(scene.exit(0, EndReason.LOST), a.StartAttempt)
    assert scene.state.backoff[T0] - scene.now == 2.0


# -- too many in a row -------------------------------------------------------------------------


def all_fail(limit: int = 4, **settings: object) -> Scene:
    return Scene(**{"slots": 1, "trial_retries": 0, "max_failed_in_a_row": limit, **settings})


def test_trials_that_fail_in_a_row_end_the_experiment_and_name_the_cause() -> None:
    scene = all_fail()
    for _ in range(3):
        fail(scene, "Traceback …\nModuleNotFoundError: No module named 'torch'\n\n")
    assert scene.state.phase is Phase.RUNNING
    (finish,) = of_kind(fail(scene, "ModuleNotFoundError: No module named 'torch'"), a.Finish)
    assert finish.phase is Phase.FAILED
    assert finish.reason == (
        "4 trials failed in a row with: failed (exit code 1): "
        "ModuleNotFoundError: No module named 'torch' (trial 3)"
    )
    scene.assert_replays()


def test_what_runs_may_finish_and_nothing_new_begins() -> None:
    scene = Scene(slots=2, trial_retries=0, max_failed_in_a_row=2)
    scene.propose(0)
    scene.propose(1)
    scene.exit(1, EndReason.FAILED)
    scene.deliver(1)
    scene.propose(2)
    assert not of_kind(scene.exit(2, EndReason.FAILED), a.OpenRequest)
    assert scene.state.phase is Phase.DRAINING
    scene.deliver(2)
    assert not scene.state.open
    scene.run(0)
    (finish,) = of_kind(scene.deliver(0), a.Finish)
    assert finish.phase is Phase.FAILED
    assert finish.reason.startswith("2 trials failed in a row")


def test_where_causes_differ_the_most_common_and_its_share_are_named() -> None:
    scene = all_fail()
    fail(scene, "CUDA error at 0x7f01, 12 GB")
    fail(scene, "ValueError: width", code=2)
    fail(scene, "CUDA error at 0x9e33, 80 GB")
    (finish,) = of_kind(fail(scene, code=None, reason="timed out"), a.Finish)
    assert finish.reason == (
        "4 trials failed in a row, 2 of 4 with: failed (exit code 1): "
        "CUDA error at 0x9e33, 80 GB (trial 2)"
    )


def test_a_success_in_between_begins_the_count_anew() -> None:
    scene = all_fail()
    for _ in range(3):
        fail(scene, "one")
    (number,) = scene.state.open
    scene.whole(number)
    for _ in range(3):
        fail(scene, "two")
    assert scene.state.phase is Phase.RUNNING
    (finish,) = of_kind(fail(scene, "two"), a.Finish)
    assert finish.reason.startswith("4 trials failed in a row with: failed (exit code 1): two")


def test_attempts_that_are_tried_again_do_not_count() -> None:
    scene = all_fail(2, trial_retries=1)
    scene.propose(0)
    scene.exit(0, EndReason.FAILED)
    scene.tick()
    assert scene.state.failures.in_a_row == 0
    scene.exit(0, EndReason.FAILED, 2)
    assert scene.state.failures.in_a_row == 1


@pytest.mark.parametrize("reason", [EndReason.KILLED, EndReason.STOPPED_EARLY])
def test_what_users_and_assessors_end_counts_neither_way(reason: EndReason) -> None:
    scene = all_fail(3)
    fail(scene)
    fail(scene)
    fail(scene, code=None, reason=reason.value)
    assert (scene.state.phase, scene.state.failures.in_a_row) == (Phase.RUNNING, 2)
    assert of_kind(fail(scene), a.Finish)


def test_a_kill_that_crossed_with_a_failure_is_a_kill() -> None:
    scene = all_fail(1)
    scene.propose(0)
    scene.say(e.TrialStopRequested(T0, EndReason.KILLED))
    scene.exit(0, EndReason.FAILED)
    assert scene.state.phase is Phase.RUNNING


def test_a_trial_that_brought_its_result_before_it_crashed_went_well() -> None:
    scene = all_fail(1)
    scene.propose(0)
    scene.final(0)
    scene.exit(0, EndReason.SIGNALLED)
    assert scene.state.phase is Phase.RUNNING
    assert scene.state.failures.went_well == 1


def test_children_of_failed_parents_are_a_consequence_and_no_further_failure() -> None:
    scene = Scene(slots=3, trial_retries=0, max_failed_in_a_row=2)
    scene.propose(0)
    scene.propose(1, parent=0)
    scene.propose(2, parent=0)
    scene.exit(0, EndReason.FAILED)
    for number in range(3):
        scene.deliver(number)
    assert scene.trial(2).outcome is Outcome.FAILED
    assert scene.state.failures.in_a_row == 1


def test_a_resume_begins_the_count_anew() -> None:
    scene = all_fail(2)
    fail(scene)
    assert of_kind(fail(scene), a.Finish)
    scene.say(e.HeadStarted(2), e.WorkerJoined(HOST, 1), e.TunerHostReady())
    assert not of_kind(fail(scene), a.Finish)
    assert of_kind(fail(scene), a.Finish)
    scene.assert_replays()


def test_many_different_causes_are_bounded() -> None:
    scene = all_fail(0)
    for number in range(100):
        fail(scene, f"Error{chr(65 + number % 26)}{chr(65 + number // 26)}")
    assert len(scene.state.failures.causes) <= 33
    assert sum(cause.count for cause in scene.state.failures.causes.values()) == 100


def test_off_by_default_so_that_an_older_journal_is_replayed_as_it_was() -> None:
    scene = Scene(slots=1, trial_retries=0)
    for _ in range(50):
        fail(scene)
    assert scene.state.phase is Phase.RUNNING


# -- nothing to show ---------------------------------------------------------------------------


def test_an_experiment_whose_trials_all_fail_is_not_completed() -> None:
    scene = all_fail(0, max_trials=3)
    fail(scene, "no", code=7)
    fail(scene, "no", code=7)
    (finish,) = of_kind(fail(scene, "no", code=7), a.Finish)
    assert finish == a.Finish(
        Phase.FAILED, "all 3 trials failed with: failed (exit code 7): no (trial 2)"
    )
    scene.say(e.HeadStarted(2))
    (again,) = of_kind(scene.say(e.Tick()), a.Finish) or [finish]
    assert again.phase is Phase.FAILED  # a resume that changes nothing changes nothing
    assert scene.state.phase is Phase.FAILED


def test_nor_is_one_whose_time_ended_with_nothing_but_failures() -> None:
    scene = all_fail(0, max_duration_s=100.0)
    fail(scene)
    (finish,) = of_kind(scene.wait_until(scene.now + 200.0), a.Finish)
    assert finish.phase is Phase.FAILED
    assert finish.reason.startswith("the only trial failed with: failed (exit code 1)")


def test_one_success_is_something_to_show() -> None:
    scene = all_fail(0, max_trials=2)
    fail(scene)
    (number,) = scene.state.open
    scene.propose(number)
    scene.run(number)
    (finish,) = of_kind(scene.deliver(number), a.Finish)
    assert finish.phase is Phase.COMPLETED


def test_an_experiment_whose_trials_were_all_killed_is_completed() -> None:
    scene = all_fail(1, max_trials=1)
    (finish,) = of_kind(fail(scene, code=None, reason=EndReason.KILLED.value), a.Finish)
    assert finish.phase is Phase.COMPLETED


# -- the line that is named --------------------------------------------------------------------


TRACEBACK = """\
loading …
Traceback (most recent call last):
  File "a.py", line 1, in <module>
    import torch
ImportError: no torch

During handling of the above exception, another exception occurred:

Traceback (most recent call last):
  File "a.py", line 3, in main
    raise RuntimeError(x)
RuntimeError: two lines,
and a hint
"""


def test_the_line_that_tells_most_is_bounded_and_harmless() -> None:
    assert telling_line(TRACEBACK) == "RuntimeError: two lines,"
    assert telling_line("Traceback (most recent call last):\n  File") == "File"
    assert telling_line("a\nbash: pyhton: command not found\n  \n\n").startswith("bash: pyhton")
    hint = (
        "trial_runtime.api_errors.InvalidMetric: a metric must be finite, not nan\n  leave it out"
    )
    assert telling_line(hint).endswith("a metric must be finite, not nan")
    assert telling_line("  nothing but\n  indented lines") == "indented lines"
    assert telling_line("") == telling_line(" \n\t\n") == ""
    assert telling_line("gone\x1b[2J\x07\u202ered") == "gone [2J  red"
    assert len(telling_line("x" * 9999)) == CAUSE_CHARS


def test_a_time_out_and_a_signal_are_told_by_what_they_are() -> None:
    scene = all_fail(1)
    (finish,) = of_kind(fail(scene, "ran longer …\nepoch 7", reason="timed out"), a.Finish)
    assert finish.reason == "1 trials failed in a row with: timed out (trial 0)"
    scene = all_fail(1)
    scene.propose(0)
    ended = e.AttemptEnded(T0, 1, EndReason.SIGNALLED, None, 11, "ended by SIGSEGV")
    scene.say(ended)
    assert "signalled (signal 11): ended by SIGSEGV" in scene.state.phase_reason
