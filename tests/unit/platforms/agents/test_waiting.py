"""The head's side of an agent whose place belongs to a scheduler: it waits, and is taken away."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.core.resources import Offer
from dispatcher.platforms.agents.driver import START_S, AgentDriver
from dispatcher.platforms.agents.process import Loss, Waiting
from dispatcher.platforms.agents.self_report import WAITS_EVERY_S
from tests.support.workers import agent_config
from tests.unit.platforms.local.test_leases import Link
from trial_runtime import wire
from trial_runtime.agent.config import AgentConfig

Q = WorkerId("q")


class Process:
    """A place that a test gives and takes."""

    place, trouble, outdated = "q", "", False

    def __init__(self) -> None:
        self.pid: int | None = None
        self.ends_at: float | None = None
        self.wait: Waiting | None = Waiting("Resources", 3.0)
        self.loss: Loss | None = None
        self.ticket = "t1"
        self.wanted = self.given_up = 0

    def ensure(self, config: AgentConfig) -> None:
        self.wanted += 1

    def waiting(self) -> Waiting | None:
        return self.wait

    def look(self, silent_s: float) -> Loss | None:
        loss, self.loss = self.loss, None
        return loss

    def expects(self, pid: int, ticket: str) -> bool | None:
        return ticket == self.ticket

    def give_up(self, grace_s: float = 0.0) -> None:
        self.given_up += 1
        self.pid = None

    def terminate(self) -> None: ...
    def end(self, until: float) -> None: ...
    def leave(self) -> None: ...


class Scene:
    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.link = Link()
        self.process = Process()
        config = agent_config(folder, "q")
        self.driver = AgentDriver(
            self.link,
            config,
            self.process,
            folder,
            suspect_s=5.0,
            lost_s=20.0,
            clock=lambda: self.now,
        )
        self.driver.perform(a.LaunchWorker(Q))

    def hello(self, ticket: str = "t1", start: str = "s1", life: str = "a") -> list[e.Event]:
        offer = wire.OfferMessage(cpus=4.0)
        hello = wire.AgentHello(life, "q", 2, 1, [], 1, offer=offer, ticket=ticket, start=start)
        return self.driver.receive(wire.frame(wire.AgentFrame(1, [hello])))

    def wait(self, seconds: float) -> list[e.Event]:
        events: list[e.Event] = []
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            events += self.driver.check()
        return events

    def runs(self, number: int = 1) -> None:
        self.process.pid, self.process.wait = number, None


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_wait_is_reported_and_is_no_silence(scene: Scene) -> None:
    """Mutation: whoever is not there for two minutes is lost."""
    assert scene.wait(300.0) == [e.WorkerWaits(Q, "Resources", 3.0)]
    assert scene.driver.waiting() == "q waits: Resources"
    assert scene.process.given_up == 0


def test_reasons_that_change_at_each_look_are_not_all_rows_of_the_journal(scene: Scene) -> None:
    events: list[e.Event] = []
    for number in range(40):
        scene.process.wait = Waiting(f"Priority {number}", number / 2)
        events += scene.wait(0.5)
    assert len(events) == 20 / WAITS_EVERY_S


def test_time_to_start_counts_from_the_place_and_not_from_the_order(scene: Scene) -> None:
    scene.wait(300.0)
    scene.runs()
    assert scene.wait(START_S - 1) == []
    (lost,) = scene.wait(2.0)
    assert isinstance(lost, e.WorkerLost)
    assert not lost.planned


def test_a_place_that_is_taken_back_is_lost_without_blame_and_waits_again(scene: Scene) -> None:
    scene.runs()
    assert isinstance(scene.hello()[0], e.WorkerJoined)
    scene.process.loss = Loss("preempted by 17", planned=True)
    assert scene.wait(0.5) == [e.WorkerLost(Q, "preempted by 17", planned=True)]
    assert scene.process.given_up == 1
    scene.driver.perform(a.LaunchWorker(Q))
    scene.process.wait = Waiting("BeginTime", 0.0)
    assert scene.wait(300.0) == [e.WorkerWaits(Q, "BeginTime", 0.0)]


def test_the_end_of_a_place_comes_with_its_offer_and_when_it_moves(scene: Scene) -> None:
    scene.runs()
    scene.process.ends_at = 5000.0
    (joined,) = scene.hello()
    assert isinstance(joined, e.WorkerJoined)
    assert joined.offer == Offer(cpus=4.0, ends_at=5000.0)
    scene.process.ends_at = 9000.0
    assert scene.wait(3.0) == [e.WorkerOffers(Q, Offer(cpus=4.0, ends_at=9000.0))]
    news = wire.frame(wire.AgentFrame(1, [wire.Offers("a", wire.OfferMessage(cpus=3.0))]))
    expected = [e.WorkerOffers(Q, Offer(cpus=3.0, ends_at=9000.0))]
    assert scene.driver.receive(news) == expected


def test_one_with_the_ticket_of_an_earlier_incarnation_must_leave(scene: Scene) -> None:
    """In a container every agent is process 1."""
    scene.runs()
    assert scene.hello(ticket="t0") == []
    assert any(isinstance(order, wire.Shutdown) for order in scene.link.said)
    assert isinstance(scene.hello()[0], e.WorkerJoined)


def test_a_second_start_with_the_same_ticket_is_refused_while_the_first_lives(
    scene: Scene,
) -> None:
    """Mutation: a scheduler that starts a pod twice has each attempt run twice."""
    scene.runs()
    scene.hello()
    assert scene.hello(start="s2", life="b") == []
    assert any(isinstance(order, wire.Shutdown) for order in scene.link.said)
    scene.driver.perform(a.StartAttempt(Q, TrialId(1), 1, "{}", None))
    scene.driver.flush()
    assert any(isinstance(order, a.StartAttempt) for order in scene.link.said)


def test_the_same_process_may_join_anew_after_orders_were_lost(scene: Scene) -> None:
    scene.runs()
    scene.hello()
    (joined,) = scene.hello(life="b")
    assert isinstance(joined, e.WorkerJoined)


def beat(scene: Scene, life: str = "a", *, leaving: bool = True) -> list[e.Event]:
    message = wire.Heartbeat(life, 1, 0, leaving=leaving)
    return scene.driver.receive(wire.frame(wire.AgentFrame(1, [message])))


def test_an_agent_that_is_asked_to_go_gets_nothing_more_and_is_not_blamed(scene: Scene) -> None:
    """Its scheduler says *finished* of it, since it has left in time. Mutations: the core learns it
    after the ends of attempts; the loss counts against the worker."""
    scene.runs()
    scene.process.ends_at = 5000.0
    scene.hello()
    assert beat(scene, leaving=False) == []
    assert beat(scene) == [e.WorkerOffers(Q, Offer(cpus=4.0, ends_at=0.0))]
    assert beat(scene) == []
    scene.process.loss = Loss("its agent has left")
    assert scene.wait(0.5) == [e.WorkerLost(Q, "its agent has left", planned=True)]
    scene.runs(2)
    assert scene.hello(start="s2", life="b") == [
        e.WorkerJoined(Q, 2, (), Offer(cpus=4.0, ends_at=5000.0))
    ]
    scene.process.loss = Loss("its process ended")
    assert scene.wait(0.5) == [e.WorkerLost(Q, "its process ended")]


def test_who_is_no_agent_of_ours_takes_no_place_back(scene: Scene) -> None:
    """The one before it, that is heard late. Mutation: any life counts."""
    scene.runs()
    scene.hello()
    assert beat(scene, "an older one") == []
    assert scene.wait(1.0) == []


def test_what_ran_there_ended_as_the_scheduler_says(scene: Scene) -> None:
    scene.runs()
    scene.hello()
    ends_as = EndReason.OUT_OF_MEMORY
    scene.process.loss = Loss("oom", ends_as=ends_as)
    assert scene.wait(0.5) == [e.WorkerLost(Q, "oom", ends_as=ends_as)]
