"""The head's side of an agent whose scheduler moves it: the next one shows the same ticket, and
says how often that was."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.platforms.agents.process import Loss, Waiting
from tests.unit.platforms.agents.test_waiting import Q, Scene, beat
from trial_runtime import wire

MOVED = Loss("its place was taken back: Stopping", planned=True, returns=True)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path)
    made.runs()
    hello(made)
    return made


def hello(scene: Scene, start: str = "s1", life: str = "a", *, restarts: int = 0) -> list[e.Event]:
    message = wire.AgentHello(
        life, "q", 2, 1, [], 1, offer=wire.OfferMessage(), ticket="t1", start=start,
        restarts=restarts,
    )  # fmt: skip
    return scene.driver.receive(wire.frame(wire.AgentFrame(1, [message])))


def dismissals(scene: Scene) -> int:
    return sum(isinstance(order, wire.Shutdown) for order in scene.link.said)


def test_a_move_gives_nothing_up(scene: Scene) -> None:
    """Mutation: its allocation is given up, as with any loss."""
    scene.process.loss = MOVED
    scene.process.pid, scene.process.wait = None, Waiting("Stopping", 0.0)
    lost, waits = scene.wait(0.5)
    assert lost == e.WorkerLost(Q, MOVED.reason, planned=True)
    assert waits == e.WorkerWaits(Q, "Stopping", 0.0)
    assert scene.process.given_up == 0
    scene.driver.perform(a.LaunchWorker(Q))
    assert scene.wait(300.0) == [], "it may take long, and is no silence"
    scene.runs()
    (joined,) = hello(scene, "s2", "b", restarts=1)
    assert isinstance(joined, e.WorkerJoined)


def test_the_next_agent_may_come_before_its_scheduler_says_so(scene: Scene) -> None:
    """The head was away from the scheduler. It joins once its predecessor's loss is on disk.
    Mutations: it is taken for a second start, and sent away, which ends the job; what ran before is
    lost at the worker's cost; its allocation is given up."""
    assert hello(scene, "s2", "b", restarts=1) == [
        e.WorkerLost(Q, "its place was taken back: its agent runs in another one", planned=True)
    ]
    assert (dismissals(scene), scene.process.given_up) == (0, 0)
    scene.driver.perform(a.LaunchWorker(Q))
    (joined,) = hello(scene, "s2", "b", restarts=1)
    assert joined == e.WorkerJoined(Q, 2, (), joined.offer)  # type: ignore[union-attr]
    scene.driver.perform(a.StartAttempt(Q, TrialId(1), 1, "{}", None))
    scene.driver.flush()
    assert any(isinstance(order, a.StartAttempt) for order in scene.link.said)


@pytest.mark.parametrize("restarts", [0, 1])
def test_an_agent_of_a_group_before_is_sent_away(scene: Scene, restarts: int) -> None:
    """On a node that was lost, and is back; or a second start in the same group."""
    hello(scene, "s2", "b", restarts=1)
    scene.driver.perform(a.LaunchWorker(Q))
    hello(scene, "s2", "b", restarts=1)
    assert hello(scene, "s3", "c", restarts=restarts) == []
    assert dismissals(scene) == 1


def test_that_it_was_asked_to_go_comes_first(scene: Scene) -> None:
    """Nothing new begins where everything is about to stop."""
    (offers,) = beat(scene)
    assert isinstance(offers, e.WorkerOffers)
    assert offers.offer.ends_at == 0.0
