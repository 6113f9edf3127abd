"""The head's side of an agent without one: who is believed, suspect, given up, sent away."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.errors import ProtocolError, Superseded
from dispatcher.platforms.local.installed import installed_code
from tests.support.local_backend import LocalBackend
from tests.support.workers import agent_config
from trial_runtime import facts, wire
from trial_runtime.agent.processes.record import AgentRecord, record_of, write_record
from trial_runtime.fact_wire import encode_fact

LOCAL = WorkerId("local")


class Link:
    """What the head said."""

    def __init__(self) -> None:
        self.said: list[wire.FromHead] = []
        self.orders = 0  # as the last frame counts them
        self.renewed: list[str] = []

    def send(self, payload: bytes) -> bool:
        frame = wire.from_head(payload)
        self.said.extend(wire.decode_orders(frame, LOCAL))
        self.orders = frame.orders
        return True

    def renew(self, routing_id: str) -> None:
        self.renewed.append(routing_id)


class Scene:
    """A head of epoch 2 that takes up an agent: a process that sleeps."""

    def __init__(self, folder: Path, process: subprocess.Popen[bytes]) -> None:
        self.now = 100.0
        self.leads = True
        self.link = Link()
        self.process = process
        write_record(folder / "agent-local.json", record_of(process.pid, code=installed_code()))
        self.backend = LocalBackend(
            self.link,
            agent_config(folder, epoch=2, run_folder=str(folder / "r")),
            suspect_s=5.0,
            lost_s=20.0,
            leads=lambda: self.leads,
            clock=lambda: self.now,
        )
        self.backend.perform(a.LaunchWorker(LOCAL))

    def hear(self, *messages: wire.FromAgent, epoch: int = 2) -> list[e.Event]:
        return self.backend.receive(wire.frame(wire.AgentFrame(epoch, list(messages))))

    def hello(self, life: str = "a", pid: int | None = None) -> list[e.Event]:
        return self.hear(
            wire.AgentHello(life, "local", 2, pid or self.process.pid, [(1, 1)], first=1)
        )

    def wait(self, seconds: float) -> list[e.Event]:
        """As the engine does: a look twice a second."""
        events: list[e.Event] = []
        for _ in range(int(seconds * 2)):
            self.now += 0.5
            events += self.backend.check()
        return events


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    process = subprocess.Popen(["sleep", "600"])
    yield Scene(tmp_path, process)
    process.kill()
    process.wait()


def test_silent_then_heard(scene: Scene) -> None:
    """Mutation: ``WorkerSuspect`` is said at each look, or ``WorkerHeard`` never."""
    scene.hello()
    assert scene.wait(4.0) == []
    (suspect,) = scene.wait(6.0)
    assert isinstance(suspect, e.WorkerSuspect)
    assert 5.0 < suspect.silent_s < 6.0
    assert "silent" in (scene.backend.waiting() or "")
    assert scene.hear(wire.Heartbeat("a", 1, 0)) == [e.WorkerHeard(LOCAL)]
    assert scene.wait(4.0) == []
    assert scene.backend.waiting() is None


def test_silent_for_too_long(scene: Scene) -> None:
    scene.hello()
    events = scene.wait(25.0)
    assert [type(event) for event in events] == [e.WorkerSuspect, e.WorkerLost]
    assert scene.process.wait(120) == -9


def test_one_that_leaves_as_we_come_is_followed_and_nothing_is_lost_by_that(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its successor has its spool: what it had finished counts, and is not run again. Mutation:
    whatever has ended is lost with all that the head believes to be there."""
    successor = subprocess.Popen(["sleep", "600"])

    def start(folder: Path, worker: str, *, code: str) -> AgentRecord:
        write_record(folder / f"agent-{worker}.json", record_of(successor.pid, code=code))
        return record_of(successor.pid)

    monkeypatch.setattr("dispatcher.platforms.local.process.start_agent", start)
    monkeypatch.setattr("dispatcher.platforms.local.process.FIRST_PAUSE_S", 0.0)
    try:
        scene.process.kill()
        scene.process.wait()
        assert scene.wait(1.0) == []
        assert scene.backend.statistics().pid == successor.pid
        (joined,) = scene.hello("b", pid=successor.pid)
    finally:  # a failure waits for nobody
        successor.kill()
        successor.wait()
    assert isinstance(joined, e.WorkerJoined)
    assert joined.holds == ((TrialId(1), 1),)


def test_one_that_ends_after_it_has_joined_is_lost(scene: Scene) -> None:
    scene.hello()
    scene.process.kill()
    scene.process.wait()
    assert scene.wait(1.0) == [e.WorkerLost(LOCAL, "its process ended")]


def test_orders_to_the_one_before_are_not_missed_by_the_next(scene: Scene) -> None:
    """Else it joins twice. Mutation: a welcome counts those to the one before."""
    scene.hello()
    scene.backend.perform(a.StartAttempt(LOCAL, TrialId(3), 1, "{}"))
    scene.backend.flush()
    assert scene.link.orders == 1
    scene.wait(25.0)
    scene.link.said.clear()
    scene.hear(wire.Heartbeat("b", 0, 0))
    assert (scene.link.said, scene.link.orders) == ([wire.Welcome()], 0)


def test_what_the_line_keeps_for_one_that_is_lost_is_dropped(scene: Scene) -> None:
    """Its successor has the same routing id, and may be of a version that asks for no more."""
    scene.hello()
    (routing_id,) = scene.link.renewed
    scene.wait(25.0)
    assert scene.link.renewed == [routing_id, routing_id]


def test_a_pause_of_the_head_itself_gives_up_nobody(scene: Scene) -> None:
    """Mutation: time in which nobody looked counts."""
    scene.hello()
    scene.now += 3600.0
    assert scene.backend.check() == []
    assert scene.process.poll() is None


def test_who_does_not_lead_any_more_kills_nobody(scene: Scene) -> None:
    """It was stopped, and the agent is another head's. Mutation: ``check`` does not ask."""
    scene.hello()
    scene.leads = False
    assert scene.wait(60.0) == []
    assert scene.process.poll() is None


def test_one_that_was_given_up_and_comes_back_is_told_to_leave(scene: Scene) -> None:
    """Its process is not the one on record. Mutation: ``_join`` asks for no pid."""
    assert [type(x) for x in scene.hello()] == [e.WorkerJoined]
    scene.link.said.clear()
    assert scene.hello("z", pid=1) == []
    assert scene.link.said == [wire.Shutdown(0.0)]


def test_a_later_head(scene: Scene) -> None:
    """The agent's word alone ends no head that leads; one that does not lead ends by it."""
    for say in (
        lambda: scene.hear(wire.Fenced(7)),
        lambda: scene.hear(wire.Heartbeat("a", 0, 0), epoch=3),
    ):
        scene.leads = True
        with pytest.raises(ProtocolError, match="follows a head of epoch"):
            say()
        scene.leads = False
        with pytest.raises(Superseded):
            say()


def test_who_follows_the_head_before_is_welcomed_and_not_yet_believed(scene: Scene) -> None:
    word = encode_fact(facts.AttemptStarted(1, 1))
    assert scene.hear(wire.AttemptMessages(1, [word]), epoch=1) == []
    assert scene.link.said == [wire.Welcome()]


def test_one_that_has_not_joined_yet_may_take_its_time(scene: Scene) -> None:
    """On a busy machine. Mutation: the lease runs from the launch."""
    assert scene.wait(50.0) == []
    assert [type(event) for event in scene.wait(15.0)] == [e.WorkerLost]
