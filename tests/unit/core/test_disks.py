"""A disk that runs full: nothing new is started, what runs goes on, nobody is accused."""

from __future__ import annotations

from dispatcher import core
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import EndReason, Phase, TrialState
from tests.support.scene import Scene, of_kind

LOW = e.DiskLow("/data/w", 90 << 20, 500 << 20)
ROOM = e.DiskRecovered("/data/w", 700 << 20)


def test_no_request_and_no_attempt_and_what_runs_goes_on() -> None:
    scene = Scene(slots=3, workers=2)
    for number in range(3):
        scene.propose(number)
    (report,) = scene.say(LOW)
    assert report == a.ReportDisk(
        "/data/w",
        "no new trials: the disk of /data/w has 90 MB left and 500 MB are kept in reserve; "
        "free space there, and they start again",
    )
    scene.run(0)
    actions = scene.deliver(0)
    assert not of_kind(actions, (a.StartAttempt, a.OpenRequest))
    assert list(scene.state.queued) == [2]
    actions = scene.say(ROOM)
    assert [x.trial for x in of_kind(actions, a.StartAttempt)] == [2]
    assert [x.trial for x in of_kind(actions, a.OpenRequest)] == [3]
    scene.assert_replays()


def test_said_again_it_is_known_with_the_newest_figures() -> None:
    scene = Scene()
    scene.say(LOW)
    since = scene.state.low_disks["/data/w"].since
    assert scene.say(e.DiskLow("/data/w", 1 << 20, 500 << 20)) == []
    assert scene.state.low_disks["/data/w"].free_bytes == 1 << 20
    assert scene.state.low_disks["/data/w"].since == since


def test_each_of_two_disks_must_recover() -> None:
    scene = Scene(slots=1)
    scene.say(LOW, e.DiskLow("/home/e", 1, 2))
    scene.propose(0)
    assert not of_kind(scene.say(ROOM), a.StartAttempt)
    assert of_kind(scene.say(e.DiskRecovered("/home/e", 9)), a.StartAttempt)


def test_a_disk_that_was_never_low_needs_no_recovery() -> None:
    scene = Scene()
    assert scene.say(ROOM) == []
    assert not scene.counted


def test_no_deadlock_is_named_while_nothing_may_be_asked() -> None:
    """What waits may wait for a trial that is proposed by a request not opened yet."""
    scene = Scene(slots=1, stall_timeout_s=10.0)
    scene.say(e.ForeignWaitSeen(scene.state.trials[0].id))
    scene.propose(1)
    scene.say(LOW)
    scene.run(1)
    scene.deliver(1)
    assert list(scene.state.blocked) == [0]
    assert not scene.state.open
    assert core.next_deadline(scene.state) is None
    scene.wait_until(scene.now + 1000.0)
    assert scene.state.phase is Phase.RUNNING
    assert of_kind(scene.say(ROOM), a.OpenRequest)


def test_an_attempt_that_fails_meanwhile_is_tried_again_afterwards() -> None:
    scene = Scene(slots=1)
    scene.propose(0)
    scene.say(LOW)
    scene.exit(0, EndReason.FAILED)
    assert not of_kind(scene.tick(), a.StartAttempt)
    assert scene.trial(0).state is TrialState.QUEUED
    assert core.next_deadline(scene.state) is None  # the head does not tick for ever
    assert of_kind(scene.say(ROOM), a.StartAttempt)


def test_a_new_head_looks_for_itself() -> None:
    scene = Scene()
    scene.say(LOW, e.HeadStarted(2))
    assert not scene.state.low_disks


def test_a_drain_ends_all_the_same() -> None:
    scene = Scene(slots=1)
    scene.propose(0)
    scene.say(LOW, e.StopRequested(e.StopKind.DRAIN, "user"))
    scene.run(0)
    assert of_kind(scene.deliver(0), a.Finish)[0].phase is Phase.STOPPED
