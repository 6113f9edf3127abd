"""A worker on which trials fail one after another is left out while others are in health."""

from __future__ import annotations

import pytest

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, TrialState
from dispatcher.core.settings import QUARANTINE_MAX_S, QUARANTINE_S
from dispatcher.state_codec import decode_state, encode_state
from tests.support.scene import Scene, of_kind

GOOD, BAD = WorkerId("local/good"), WorkerId("local/bad")


def two(**settings: object) -> Scene:
    """Two workers of one slot each; every trial starts where :func:`place` says."""
    scene = Scene(
        begin=False, **{"slots": 2, "lookahead": 99, "trial_retries": 0, "quarantine_after": 3}
        | settings
    )  # fmt: skip
    scene.say(e.HeadStarted(1), e.WorkerJoined(GOOD, 1), e.WorkerJoined(BAD, 1))
    scene.say(e.TunerHostReady())
    return scene


def fill(scene: Scene) -> None:
    """Propose until no request is open."""
    while scene.state.open:
        scene.propose(min(scene.state.open))


def running_on(scene: Scene, worker: WorkerId) -> int | None:
    return next(iter(scene.state.workers[worker].running), None)


def end_on(scene: Scene, worker: WorkerId, reason: EndReason) -> list[a.Action]:
    """What runs there ends, and the tuner hears of it."""
    number = running_on(scene, worker)
    assert number is not None, f"nothing runs on {worker}"
    attempt = scene.trial(number).attempt
    if reason is EndReason.FINISHED:
        scene.publish(number, attempt)
        scene.final(number, attempt=attempt)
    actions = scene.exit(number, reason, attempt)
    if scene.trial(number).state is TrialState.DELIVERING:
        actions += scene.deliver(number)
    fill(scene)
    return actions


def spoil(scene: Scene, times: int = 3) -> list[a.Action]:
    """Trials fail on the bad worker while they go well on the good one."""
    fill(scene)
    actions: list[a.Action] = []
    for _ in range(times):
        actions += end_on(scene, GOOD, EndReason.FINISHED)
        actions += end_on(scene, BAD, EndReason.FAILED)
    return actions


def test_it_is_left_out_and_says_so() -> None:
    scene = two()
    actions = spoil(scene, 2)
    assert not of_kind(actions, a.ReportWorker)
    (report,) = of_kind(spoil(scene, 1), a.ReportWorker)
    assert report.worker == BAD
    assert report.text == (
        "worker local/bad is left out for 60 s: 3 trials failed there one after another"
    )
    assert running_on(scene, BAD) is None
    end_on(scene, GOOD, EndReason.FINISHED)
    assert running_on(scene, BAD) is None
    assert running_on(scene, GOOD) is not None
    scene.assert_replays()


def test_a_success_in_between_is_forgiveness() -> None:
    scene = two()
    spoil(scene, 2)
    end_on(scene, BAD, EndReason.FINISHED)
    assert not of_kind(spoil(scene, 2), a.ReportWorker)
    assert of_kind(spoil(scene, 1), a.ReportWorker)


def test_nobody_is_left_out_where_everybody_fails() -> None:
    scene = two()
    fill(scene)
    for _ in range(10):
        for worker in (GOOD, BAD):
            assert not of_kind(end_on(scene, worker, EndReason.FAILED), a.ReportWorker)


def test_the_only_worker_is_never_left_out() -> None:
    scene = Scene(slots=1, trial_retries=0, quarantine_after=3)
    for _ in range(10):
        (number,) = scene.state.open
        scene.propose(number)
        scene.exit(number, EndReason.FAILED)
        assert not of_kind(scene.deliver(number), a.ReportWorker)


def test_health_elsewhere_is_a_success_since_the_row_began() -> None:
    scene = two()
    fill(scene)
    end_on(scene, GOOD, EndReason.FINISHED)  # and a long trial from here on
    for _ in range(5):
        assert not of_kind(end_on(scene, BAD, EndReason.FAILED), a.ReportWorker)
    end_on(scene, GOOD, EndReason.FINISHED)
    assert of_kind(end_on(scene, BAD, EndReason.FAILED), a.ReportWorker)


@pytest.mark.parametrize(
    "reason", [EndReason.KILLED, EndReason.STOPPED_EARLY, EndReason.LOST, EndReason.PREEMPTED]
)
def test_what_is_not_the_worker_s_fault_is_not_held_against_it(reason: EndReason) -> None:
    scene = two(lost_retries=0)
    fill(scene)
    for _ in range(5):
        end_on(scene, GOOD, EndReason.FINISHED)
        assert not of_kind(end_on(scene, BAD, reason), a.ReportWorker)


def test_a_trial_that_fails_on_two_workers_is_held_against_neither() -> None:
    """Else a search space in which many trials fail would cost one worker after another."""
    scene = two(slots=1, trial_retries=1, quarantine_after=2)
    for _ in range(6):
        fill(scene)
        (number,) = scene.state.running
        first = scene.trial(number).worker
        scene.exit(number, EndReason.FAILED)
        assert list(scene.state.workers[first].health.failing) == [number]
        scene.tick()
        assert scene.trial(number).worker != first
        assert not of_kind(scene.exit(number, EndReason.FAILED, 2), a.ReportWorker)
        assert not any(w.health.failing for w in scene.state.workers.values())
        scene.deliver(number)
        fill(scene)
        (number,) = scene.state.running
        scene.run(number)  # there is health elsewhere
        scene.deliver(number)


def test_a_broken_worker_that_is_always_free_does_not_get_the_retries() -> None:
    """Each trial would spend both of its attempts there."""
    scene = two(trial_retries=1, quarantine_after=8, retry_backoff_s=0.0)
    fill(scene)
    failed = []
    for _ in range(3):
        failed.append(running_on(scene, BAD))
        end_on(scene, BAD, EndReason.FAILED)
    first, second, third = failed
    assert second == first  # one failure is more likely the trial's own
    assert third != second
    assert scene.trial(third).state is TrialState.QUEUED  # and waits for the good one
    end_on(scene, GOOD, EndReason.FINISHED)
    assert scene.trial(third).worker == GOOD


def test_a_failed_trial_is_tried_again_elsewhere() -> None:
    scene = two(trial_retries=1, retry_backoff_s=5.0, slots=1)
    scene.propose(0)
    first = scene.trial(0).worker
    scene.exit(0, EndReason.FAILED)
    (start,) = of_kind(scene.tick(), a.StartAttempt)
    assert start.worker != first


# -- the probe ---------------------------------------------------------------------------------


def test_one_probe_at_its_end_and_forgiveness_if_that_goes_well() -> None:
    scene = two(slots=3)
    scene.say(e.WorkerJoined(BAD, 2, _holds(scene, BAD)))
    spoil(scene)
    second = running_on(scene, BAD)  # began before; the worker had two slots
    assert second is not None
    end_on(scene, BAD, EndReason.FINISHED)  # no verdict: it began before
    due = core.next_deadline(scene.state)
    assert due == scene.state.workers[BAD].health.quarantined_until
    (start,) = of_kind(scene.tick(), a.StartAttempt)
    assert start.worker == BAD
    assert len(scene.state.workers[BAD].running) == 1
    assert scene.state.queued  # a second slot there, and it is not used
    actions = end_on(scene, BAD, EndReason.FINISHED)
    assert [x.text for x in of_kind(actions, a.ReportWorker)] == ["worker local/bad works again"]
    assert len(scene.state.workers[BAD].running) == 2
    scene.assert_replays()


def _holds(scene: Scene, worker: WorkerId) -> tuple[tuple[TrialId, int], ...]:
    return tuple((t, scene.state.trials[t].attempt) for t in scene.state.workers[worker].running)


@pytest.mark.parametrize("first_s", [QUARANTINE_S, 30.0])
def test_the_time_doubles_with_each_probe_that_fails_and_is_bounded(first_s: float) -> None:
    scene = two(quarantine_pause_s=first_s)
    spoil(scene, 2)
    end_on(scene, GOOD, EndReason.FINISHED)
    times, failed_at = [], scene.now + 1.0
    end_on(scene, BAD, EndReason.FAILED)
    for _ in range(8):
        until = scene.state.workers[BAD].health.quarantined_until
        assert until is not None
        times.append(until - failed_at)
        scene.tick()
        failed_at = scene.now + 1.0
        end_on(scene, BAD, EndReason.FAILED)
    assert times[:3] == [first_s, 2 * first_s, 4 * first_s]
    assert times[-1] == QUARANTINE_MAX_S


def test_a_first_pause_beyond_the_bound_is_as_long_as_was_asked_for() -> None:
    scene = two(quarantine_pause_s=2 * QUARANTINE_MAX_S)
    spoil(scene, 2)
    end_on(scene, GOOD, EndReason.FINISHED)
    begun = scene.now + 1.0
    end_on(scene, BAD, EndReason.FAILED)
    assert scene.state.workers[BAD].health.quarantined_until == begun + 2 * QUARANTINE_MAX_S


def test_a_probe_that_was_killed_says_nothing_and_another_follows() -> None:
    scene = two()
    spoil(scene)
    scene.tick()
    probe = running_on(scene, BAD)
    end_on(scene, BAD, EndReason.KILLED)
    assert running_on(scene, BAD) not in (None, probe)
    assert scene.state.workers[BAD].health.on_probation


def test_whoever_is_all_that_is_left_gets_its_probe_at_once() -> None:
    """An hour's quarantine must not become an hour in which nothing runs."""
    scene = two(lost_retries=5)
    spoil(scene)
    assert running_on(scene, BAD) is None
    (start,) = of_kind(scene.say(e.WorkerLost(GOOD, "gone")), a.StartAttempt)
    assert start.worker == BAD
    end_on(scene, BAD, EndReason.FAILED)
    assert running_on(scene, BAD) is not None  # there is still nobody else
    scene.assert_replays()


def test_a_lost_probe_is_no_verdict() -> None:
    scene = two()
    spoil(scene)
    scene.tick()
    scene.say(e.WorkerLost(BAD, "gone"))
    assert scene.state.workers[BAD].health.probe is None
    scene.say(e.WorkerJoined(BAD, 1))
    assert scene.state.workers[BAD].health.probe is not None


def test_a_state_that_was_stored_knows_when_a_worker_comes_back() -> None:
    """The moment is no part of what is stored. Mutation: a head that goes on ticks too late."""
    scene = two()
    spoil(scene)
    again = decode_state(encode_state(scene.state))
    due = core.next_deadline(again)
    assert due == core.next_deadline(scene.state) == again.workers[BAD].health.quarantined_until
    core.check(again)


def test_a_new_head_begins_without_prejudice() -> None:
    scene = two()
    spoil(scene)
    scene.say(e.HeadStarted(2))
    assert scene.state.workers[BAD].health.trusted
    assert core.next_deadline(scene.state) is None


def test_off_by_default_so_that_an_older_journal_is_replayed_as_it_was() -> None:
    scene = two(quarantine_after=0)
    assert not of_kind(spoil(scene, 30), a.ReportWorker)
