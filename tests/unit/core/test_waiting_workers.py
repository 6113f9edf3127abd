"""A worker whose place belongs to a scheduler: it waits, and is lost without blame."""

from __future__ import annotations

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import EndReason, Outcome, Phase, TrialState
from dispatcher.core.resources import Offer
from dispatcher.core.trouble import troubles
from tests.support.scene import HOST, Scene, of_kind


def test_waiting_is_no_loss_however_often_its_reason_changes() -> None:
    """Mutation: a wait counts as a loss, and the experiment ends with its only worker."""
    scene = Scene()
    for number in range(20):
        actions = scene.say(e.WorkerWaits(HOST, f"Priority {number}", 60.0 * number))
        (report,) = of_kind(actions, a.ReportWorker)
        assert "waits for its place since" in report.text
        assert not of_kind(actions, a.LaunchWorker | a.Finish)
    worker = scene.state.workers[HOST]
    assert (worker.alive, worker.losses, scene.state.phase) == (False, 0, Phase.RUNNING)
    scene.assert_replays()


def test_one_that_never_joined_may_wait_and_its_slots_come_with_it() -> None:
    scene = Scene(workers=2)
    other = WorkerId("queue-1")
    scene.say(e.WorkerWaits(other, "Resources", 30.0))
    assert troubles(scene.state, scene.state.now) == [
        "worker queue-1 waits for its place since 30 s: Resources"
    ]
    scene.say(e.WorkerJoined(other, 3, offer=Offer(ends_at=1e9)))
    worker = scene.state.workers[other]
    assert (worker.slots, worker.waiting, worker.waits_since) == (3, "", None)
    assert worker.offer == Offer(ends_at=1e9)
    assert troubles(scene.state, scene.state.now) == []


def test_a_place_that_is_taken_back_costs_nobody_anything() -> None:
    """Mutation: a preempted worker is given up as one that dies, and its trial fails."""
    scene = Scene(lost_retries=9, trial_retries=0)
    scene.propose(0)
    for attempt in range(1, 6):
        scene.say(e.AttemptStarted(scene.state.trials[0].id, attempt))
        actions = scene.say(e.WorkerLost(HOST, "preempted by job 17", planned=True))
        assert of_kind(actions, a.LaunchWorker), "the next one is asked for"
        (report,) = of_kind(actions, a.ReportWorker)
        assert report.text == "worker local has lost its place: preempted by job 17"
        trial = scene.state.trials[0]
        assert (trial.failures, trial.losses, trial.failed_on) == (0, attempt, None)
        scene.say(e.WorkerWaits(HOST, "BeginTime"))
        scene.wait_until(scene.state.now + 600.0)
        (start,) = of_kind(scene.say(e.WorkerJoined(HOST, 1)), a.StartAttempt)
        assert start.attempt == attempt + 1
    assert scene.state.workers[HOST].losses == 0
    scene.assert_replays()


def test_the_file_says_how_often_a_place_may_be_taken_from_a_trial() -> None:
    scene = Scene(lost_retries=0, retries={EndReason.PREEMPTED: 1})
    scene.propose(0)
    scene.say(e.WorkerLost(HOST, "wall time", planned=True))
    assert scene.state.trials[0].outcome is None
    scene.wait_until(scene.state.now + 600.0)
    scene.say(e.WorkerJoined(HOST, 1), e.WorkerLost(HOST, "wall time", planned=True))
    assert scene.state.trials[0].outcome is Outcome.LOST


def test_whoever_was_lost_before_is_not_forgiven_by_a_planned_loss() -> None:
    scene = Scene()
    scene.say(e.WorkerLost(HOST, "its process ended"))
    scene.say(e.WorkerLost(HOST, "preempted", planned=True))
    assert scene.state.workers[HOST].losses == 1


def test_what_a_head_before_us_left_there_is_gone_with_its_place() -> None:
    """The next incarnation waits already when the next head comes: nothing told it of the loss."""
    scene = Scene(lost_retries=3)
    scene.propose(0)
    assert scene.state.trials[0].state is TrialState.RUNNING
    scene.say(e.HeadStarted(2))
    scene.say(e.WorkerWaits(HOST, "Resources", 5.0))
    trial = scene.state.trials[0]
    assert trial.state in (TrialState.BACKOFF, TrialState.QUEUED)
    assert (trial.losses, trial.failures) == (1, 0)


def test_one_that_is_not_asked_for_is_no_trouble() -> None:
    scene = Scene()
    scene.say(e.WorkerLost(HOST, "idle for 300 s", planned=True))
    (report,) = of_kind(scene.say(e.WorkerWaits(HOST, "")), a.ReportWorker)
    assert report.text.startswith("worker local is not needed")
    assert troubles(scene.state, scene.state.now) == []


def test_trials_that_were_to_end_end_as_they_were_to() -> None:
    scene = Scene()
    scene.propose(0)
    scene.say(e.TrialStopRequested(scene.state.trials[0].id, EndReason.KILLED))
    scene.say(e.WorkerLost(HOST, "wall time", planned=True))
    assert scene.state.trials[0].outcome is Outcome.KILLED


def test_days_in_a_queue_are_named_as_days() -> None:
    scene = Scene()
    texts = []
    for waited_s in (5.0, 125.0, 7_300.0, 260_000.0):
        scene.say(e.WorkerWaits(HOST, "Priority", waited_s))
        texts.append(troubles(scene.state, scene.state.now)[0].split(" since ")[1])
    assert texts == ["5 s: Priority", "2 min: Priority", "2 h: Priority", "3 days: Priority"]


def test_memory_that_ran_out_is_the_doing_of_the_only_trial_there() -> None:
    """Of two nobody knows whose. Mutation: both are charged with it."""
    alone = Scene(trial_retries=0, lost_retries=0)
    alone.propose(0)
    alone.say(e.WorkerLost(HOST, "out of memory", ends_as=EndReason.OUT_OF_MEMORY))
    assert alone.state.trials[0].outcome is Outcome.FAILED
    two = Scene(slots=2, trial_retries=0, lost_retries=1)
    two.propose(0)
    two.propose(1)
    assert len(two.state.running) == 2
    two.say(e.WorkerLost(HOST, "out of memory", ends_as=EndReason.OUT_OF_MEMORY))
    for number in (0, 1):
        trial = two.state.trials[number]
        assert (trial.losses, trial.failures, trial.outcome) == (1, 0, None)
    two.assert_replays()
