"""What a broken connection takes is noticed on both sides, and asked for once."""

from __future__ import annotations

from pathlib import Path

import pytest
import zmq

from dispatcher.backends.local import LocalBackend
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from trial_runtime import wire
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.head_link import HeadLink
from trial_runtime.agent.outbox import Outbox
from trial_runtime.endpoint import Endpoint

LOCAL = WorkerId("local")


class Frames:
    """A line that a test carries frames over by hand. Link, context and socket in one."""

    def __init__(self) -> None:
        self.down: list[bytes] = []
        self.up: list[bytes] = []
        self.inbox: list[bytes] = []

    def send(self, frame: bytes, flags: int | None = None) -> bool:
        (self.down if flags is None else self.up).append(frame)
        return True

    def recv(self, _flags: int) -> bytes:
        if not self.inbox:
            raise zmq.Again
        return self.inbox.pop(0)

    def renew(self, _routing_id: str) -> None: ...
    def socket(self, _kind: int) -> Frames:
        return self

    def setsockopt(self, _option: int, _value: object) -> None: ...
    def connect(self, _address: str) -> None: ...


class Scene:
    """Both ends of the product's protocol, joined, and the line between."""

    def __init__(self, folder: Path) -> None:
        self.now = 100.0
        self.line = Frames()
        config = AgentConfig(
            worker="local",
            slots=2,
            head=Endpoint("ipc:///nowhere"),
            epoch=1,
            run_folder=str(folder),
            experiment_folder=str(folder),
            trial=TrialSpec(str(folder), command="true"),
            weights_root=str(folder),
        )
        self.head = LocalBackend(self.line, config, clock=lambda: self.now)
        self.outbox = Outbox(config.spool_path)
        self.held: list[tuple[int, int]] = []
        self.agent = HeadLink(self.line, config, self.outbox, lambda: self.held)  # type: ignore[arg-type]
        self.agent.heartbeat(0, {})
        self.carry()

    def carry(self) -> tuple[list[e.Event], list[wire.FromHead]]:
        """All frames arrive, and those that answer them; what both sides make of it."""
        events: list[e.Event] = []
        orders: list[wire.FromHead] = []
        while self.line.up or self.line.down:
            up, self.line.up = self.line.up, []
            for frame in up:
                events += self.head.receive(frame)
            self.line.inbox, self.line.down = self.line.down, []
            orders += self.agent.receive()
            self.agent.flush()
        return events, orders

    def lose(self) -> None:
        self.line.up.clear()
        self.line.down.clear()

    def beat(self) -> tuple[list[e.Event], list[wire.FromHead]]:
        self.now += 1.0
        self.agent.heartbeat(len(self.held), {})
        self.head.check()
        return self.carry()


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_a_last_word_that_was_lost_comes_with_the_next_heartbeat(scene: Scene) -> None:
    scene.outbox.add(wire.Ended(3, 1, wire.FINISHED), urgent=True)
    scene.agent.flush()
    scene.lose()
    events, _ = scene.beat()
    assert [type(event) for event in events] == [e.AttemptEnded]
    assert scene.beat() == ([], []), "once is enough"


def test_an_order_that_was_lost_makes_the_agent_join_anew(scene: Scene) -> None:
    start = a.StartAttempt(LOCAL, TrialId(3), 1, "{}")
    scene.head.perform(start)
    scene.head.flush()
    scene.lose()
    scene.held = [(2, 1)]
    events, _ = scene.beat()
    assert events == [e.WorkerJoined(LOCAL, 2, ((TrialId(2), 1),))]
    scene.head.perform(start)  # as the core answers a hello without it
    scene.head.flush()
    _, orders = scene.carry()
    assert [type(order) for order in orders] == [wire.Start]
    assert scene.beat() == ([], []), "and nothing is missing now"


def test_many_frames_behind_a_gap_are_answered_by_one_welcome(scene: Scene) -> None:
    life = scene.agent.life
    word = wire.encode_word(wire.MetricRelayed(1, 1, 1, "1"))
    for first in range(5, 25):
        frame = wire.AgentFrame(1, [wire.Words(first, [word])])
        scene.head.receive(wire.frame(frame))
    said = [m for frame in scene.line.down for m in wire.from_head(frame).messages]
    assert said == [wire.Welcome()]
    scene.now += 1.0  # it was lost, perhaps
    scene.head.receive(wire.frame(wire.AgentFrame(1, [wire.Heartbeat(life, 0, 30, {}, 24)])))
    said = [m for frame in scene.line.down for m in wire.from_head(frame).messages]
    assert said == [wire.Welcome(), wire.Welcome()]


def test_a_hello_said_again_tells_which_words_are_not_there_any_more(scene: Scene) -> None:
    """The head acknowledged words 1 to 3 while a hello that still offered them was under way."""
    for seq in (1, 2, 3):
        scene.outbox.add(wire.MetricRelayed(1, 1, seq, "1"), urgent=True)
    hello = wire.AgentHello("anew", "local", 2, 1, [(1, 1)], 1)
    scene.head.receive(wire.frame(wire.AgentFrame(1, [hello])))
    scene.agent.life = "anew"
    scene.outbox.acknowledge(3)
    scene.outbox.add(wire.FinalRelayed(1, 1, 4, "1"), urgent=True)
    scene.lose()
    found = [event for _ in range(3) for event in scene.beat()[0]]
    assert [type(event) for event in found] == [e.FinalReported]
