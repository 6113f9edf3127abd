"""A worker whose host has to be mended first: no loss, said in one sentence, back when it is."""

from __future__ import annotations

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.core.trouble import troubles
from dispatcher.core.why import Cause, why
from tests.support.scene import HOST, Scene, of_kind

TROUBLE = "the weights root /mnt/w is read-only on this host: mount and export it for writing"


def test_it_is_never_given_up_and_nothing_is_started_for_it() -> None:
    scene = Scene()
    for number in range(5):
        actions = scene.say(e.WorkerLost(HOST, f"{TROUBLE} {number}", kept_out=True))
        assert not of_kind(actions, a.LaunchWorker)
        assert not of_kind(actions, a.Finish)
        (report,) = of_kind(actions, a.ReportWorker)
        assert report.text == f"worker local takes no trials: {TROUBLE} {number}"
    assert scene.state.phase is Phase.RUNNING
    scene.assert_replays()


def test_why_says_what_has_to_be_mended_until_it_is() -> None:
    scene = Scene()
    scene.say(e.WorkerLost(HOST, TROUBLE, kept_out=True))
    scene.propose(0)
    told = why(scene.state, scene.state.now)
    assert told.cause is Cause.WORKER_LOST
    assert f"worker local takes no trials: {TROUBLE}" in told.text
    assert TROUBLE in troubles(scene.state, scene.state.now)[0]
    (start,) = of_kind(scene.say(e.WorkerJoined(HOST, 1)), a.StartAttempt)
    assert start.trial == 0
    assert troubles(scene.state, scene.state.now) == []


def test_what_it_ran_before_is_lost_and_a_real_loss_counts() -> None:
    scene = Scene(lost_retries=3)
    scene.propose(0)
    scene.say(e.WorkerLost(HOST, TROUBLE, kept_out=True))
    assert scene.state.workers[HOST].losses == 0
    assert of_kind(scene.say(e.WorkerLost(HOST, "its process ended")), a.LaunchWorker)
    assert scene.state.workers[HOST].losses == 1
    assert "is not there (its process ended)" in troubles(scene.state, scene.state.now)[0]
