"""How many places are asked for: as many as trials could use."""

from __future__ import annotations

from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.head.workers import load_of
from tests.support.scene import HOST, Scene


def queued(scene: Scene, worker: str = "slurm-1") -> int:
    return load_of(scene.state, lambda: scene.now, worker).queued


def test_what_is_queued_beyond_the_concurrency_needs_no_place() -> None:
    """A user submits more than may run at once. Mutation: places are held for them at a scheduler,
    and nothing ever runs there."""
    scene = Scene(slots=2, workers=2)
    for trial in range(2):
        scene.propose(trial)
    assert len(scene.state.running) == 2
    for _ in range(4):
        scene.say(e.TrialSubmitted("{}"))
    assert len(scene.state.queued) == 4
    assert queued(scene) == queued(scene, HOST) == 0


def test_what_is_lost_is_queued_for_whoever_gives_a_place() -> None:
    scene = Scene(slots=3, workers=1)
    scene.say(e.WorkerJoined(WorkerId("slurm-1"), 1))
    for trial in range(3):
        scene.propose(trial)
    assert queued(scene, "slurm-2") == 1
    scene.say(e.WorkerLost(WorkerId("slurm-1"), "its node has gone", planned=True))
    scene.wait_until(scene.now + 60)
    assert queued(scene, "slurm-2") == 2
