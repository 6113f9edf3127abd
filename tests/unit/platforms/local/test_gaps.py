"""What a broken connection takes is noticed on both sides, and asked for once."""

from __future__ import annotations

from pathlib import Path
from typing import get_args

import pytest
import zmq
from msgspec.structs import replace

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason
from dispatcher.experiment.sections import MOST_PARAMETERS_BYTES
from tests.support.local_backend import LocalBackend
from tests.support.workers import agent_config
from trial_runtime import facts, wire
from trial_runtime.agent.link.head_link import HeadLink
from trial_runtime.agent.link.outbox import Outbox
from trial_runtime.endpoint import MAX_MESSAGE_BYTES
from trial_runtime.fact_wire import encode_fact

LOCAL = WorkerId("local")


class Frames:
    """A line that a test carries frames over by hand. Link, context and socket in one."""

    def __init__(self) -> None:
        self.down: list[bytes] = []
        self.up: list[bytes] = []
        self.inbox: list[bytes] = []
        self.room = 1_000_000  # frames that the head's side takes until it says no

    def send(self, frame: bytes, flags: int | None = None) -> bool:
        if flags is None and self.room <= 0:
            return False
        if flags is None:
            self.room -= 1
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

    def __init__(self, folder: Path, heartbeat_s: float = 1.0) -> None:
        self.now = 100.0
        self.line = Frames()
        config = replace(agent_config(folder), heartbeat_s=heartbeat_s)
        self.logs: list[tuple[str, wire.LogEnds]] = []  # that were handed in
        self.head = LocalBackend(
            self.line,
            config,
            keep_logs=lambda worker, logs: self.logs.extend((worker, x) for x in logs),
            clock=lambda: self.now,
        )
        self.outbox = Outbox(config.spool_path)
        self.held: list[tuple[int, int]] = []
        self.config = config
        self.agent = self.new_agent()
        self.agent.heartbeat(0, {})
        self.carry()

    def new_agent(self) -> HeadLink:
        """Another process under the same routing id."""
        return HeadLink(
            self.line,  # type: ignore[arg-type]
            self.config,
            self.outbox,
            lambda: self.held,
            clock=lambda: self.now,
        )

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


@pytest.mark.parametrize("heartbeat_s, pings", [(1.0, 60), (4.0, 15)])
def test_one_of_a_crowd_is_pinged_as_seldom_as_it_speaks(
    tmp_path: Path, heartbeat_s: float, pings: int
) -> None:
    """And takes its head for no dead one. Mutations: a ping a second goes to each of a thousand;
    three seconds are silence for all."""
    scene = Scene(tmp_path, heartbeat_s)
    said = 0
    for half in range(1, 121):
        scene.now += 0.5
        if half * 0.5 % heartbeat_s == 0:
            scene.agent.heartbeat(0, {})
            scene.agent.look()
        scene.head.check()
        assert not scene.agent.quiet
        said += len(scene.line.down)
        scene.carry()
    assert said == pings
    for _ in range(4):
        scene.now += heartbeat_s
        scene.agent.look()
    assert scene.agent.quiet


def test_a_last_word_that_was_lost_comes_with_the_next_heartbeat(scene: Scene) -> None:
    scene.outbox.add(facts.AttemptEnded(3, 1, EndReason.FINISHED), urgent=True)
    scene.agent.flush()
    scene.lose()
    events, _ = scene.beat()
    assert [type(event) for event in events] == [e.AttemptEnded]
    assert scene.beat() == ([], []), "once is enough"


def test_logs_come_with_the_end_however_often_it_is_lost(scene: Scene) -> None:
    """Mutations: they go by themselves, and are lost with a connection; those of what is known
    already come once more."""
    logs = wire.LogEnds(3, 1, [wire.LogEnd("stderr", b"torn")])
    scene.outbox.add(facts.AttemptEnded(3, 1, EndReason.FAILED), urgent=True, logs=logs)
    scene.agent.flush()
    scene.lose()
    assert scene.logs == []
    scene.beat()
    assert scene.logs == [("local", logs)]
    scene.head.acknowledge()
    scene.beat()
    scene.agent.greet()
    scene.carry()
    assert scene.logs == [("local", logs)]


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
    assert [type(order) for order in orders] == [facts.StartAttempt]
    assert scene.beat() == ([], []), "and nothing is missing now"


def _answer(trial: int) -> a.AnswerOffer:
    return a.AnswerOffer(LOCAL, TrialId(trial), 1, "digest", True)


def test_answers_of_shared_stores_do_not_stand_for_an_order_that_was_lost(scene: Scene) -> None:
    """The agent counted them and the head did not, so that a trial that was to be stopped behind
    an answer ran for ever."""
    scene.head.perform(_answer(3))
    scene.head.flush()
    scene.carry()
    scene.head.perform(a.StopAttempt(LOCAL, TrialId(3), 1, EndReason.KILLED, 1.0))
    scene.head.flush()
    scene.lose()
    scene.held = [(3, 1)]
    events, _ = scene.beat()
    assert events == [e.WorkerJoined(LOCAL, 2, ((TrialId(3), 1),))]
    assert scene.beat() == ([], []), "and nothing is missing now"


def test_an_answer_that_follows_a_lost_order_does_not_hide_the_gap(scene: Scene) -> None:
    scene.head.perform(_start(3))
    scene.head.flush()
    scene.lose()
    scene.held = [(2, 1)]
    scene.head.perform(_answer(2))
    scene.head.flush()
    events, _ = scene.carry()
    assert events == [e.WorkerJoined(LOCAL, 2, ((TrialId(2), 1),))]


_ONE_OF_EACH: tuple[wire.FromHead, ...] = (
    wire.Welcome(),
    wire.Ack(0),
    facts.StartAttempt(LOCAL, 3, 1, "{}"),
    facts.StopAttempt(LOCAL, 3, 1, EndReason.KILLED, 1.0),
    wire.Ping(),
    wire.Shutdown(1.0),
    wire.VersionAnswered(3, 1, wire.OfferAnswered("digest", True)),
)


@pytest.mark.parametrize("message", _ONE_OF_EACH, ids=lambda message: type(message).__name__)
def test_both_ends_count_the_same_messages(scene: Scene, message: wire.FromHead) -> None:
    """Mutation: one end leaves out a kind."""
    outbox = scene.head._outbox
    assert outbox.send([message])
    events, _ = scene.carry()
    assert events == [], "what the head counts alone is missed"
    assert scene.agent._orders == outbox._orders, "what the agent counts alone hides what is lost"


def test_each_kind_of_message_is_counted_by_both_ends_in_a_test() -> None:
    """All but questions: one that is lost is asked again, and tests of its own see to that."""
    counted = {type(message) for message in _ONE_OF_EACH}
    assert counted == set(get_args(wire.FromHead)) - {wire.FileAsked}


def test_many_frames_behind_a_gap_are_answered_by_one_welcome(scene: Scene) -> None:
    life = scene.agent.incarnation
    word = encode_fact(facts.MetricReported(1, 1, 1, "1"))
    for first in range(5, 25):
        frame = wire.AgentFrame(1, [wire.AttemptMessages(first, [word])])
        scene.head.receive(wire.frame(frame))
    said = [
        m for frame in scene.line.down for m in wire.decode_orders(wire.from_head(frame), LOCAL)
    ]
    assert said == [wire.Welcome()]
    scene.now += 1.0  # it was lost, perhaps
    scene.head.receive(wire.frame(wire.AgentFrame(1, [wire.Heartbeat(life, 0, 30, {}, 24)])))
    said = [
        m for frame in scene.line.down for m in wire.decode_orders(wire.from_head(frame), LOCAL)
    ]
    assert said == [wire.Welcome(), wire.Welcome()]


def test_a_hello_said_again_tells_which_words_are_not_there_any_more(scene: Scene) -> None:
    """The head acknowledged words 1 to 3 while a hello that still offered them was under way."""
    for seq in (1, 2, 3):
        scene.outbox.add(facts.MetricReported(1, 1, seq, "1"), urgent=True)
    hello = wire.AgentHello("anew", "local", 2, 1, [(1, 1)], 1)
    scene.head.receive(wire.frame(wire.AgentFrame(1, [hello])))
    scene.agent.incarnation = "anew"
    scene.outbox.acknowledge(3)
    scene.outbox.add(facts.FinalReported(1, 1, 4, "1"), urgent=True)
    scene.lose()
    found = [event for _ in range(3) for event in scene.beat()[0]]
    assert [type(event) for event in found] == [e.FinalReported]


def _start(trial: int, parameters: str = "{}") -> a.StartAttempt:
    return a.StartAttempt(LOCAL, TrialId(trial), 1, parameters)


def _trials(orders: list[wire.FromHead]) -> list[int]:
    return [order.trial for order in orders if isinstance(order, facts.StartAttempt)]


def test_orders_for_a_dead_agent_are_not_obeyed_by_its_successor(scene: Scene) -> None:
    """Both have the same routing id, so a line that keeps what it could not hand over hands it to
    whoever comes. Mutation: an agent does not ask for whom a frame is."""
    scene.head.perform(_start(17))
    scene.head.flush()
    scene.agent = scene.new_agent()
    events, orders = scene.carry()
    assert orders == []
    scene.head.perform(_start(18))  # the head has not seen that the old one is dead
    scene.head.flush()
    assert scene.carry() == ([], [])
    events, orders = scene.beat()
    assert events == [e.WorkerJoined(LOCAL, 2, ())]
    assert orders == []
    scene.head.perform(_start(19))
    scene.head.flush()
    assert _trials(scene.carry()[1]) == [19]


def test_an_acknowledgement_for_a_dead_agent_leaves_the_words_of_its_successor(
    scene: Scene,
) -> None:
    """Each numbers its words from one on."""
    for seq in range(1, 4):
        scene.outbox.add(facts.MetricReported(1, 1, seq, "1"), urgent=True)
    scene.agent.flush()
    scene.carry()
    scene.head.acknowledge()
    scene.head.perform(_start(17))
    scene.head.flush()
    scene.outbox = Outbox(scene.config.spool_path)
    scene.outbox.add(facts.AttemptEnded(9, 1, EndReason.LOST), urgent=True)
    scene.agent = scene.new_agent()
    scene.carry()
    assert scene.outbox.attempts() == {(9, 1)}


def test_nothing_behind_a_gap_is_obeyed(scene: Scene) -> None:
    """The agent joins anew with what it holds, and the head gives its orders by that: what came
    behind the gap would run without the head's knowledge. Mutation: it is obeyed all the same."""
    scene.head.perform(_start(3))
    scene.head.flush()
    scene.lose()
    scene.head.perform(_start(4))
    scene.head.flush()
    events, orders = scene.carry()
    assert events == [e.WorkerJoined(LOCAL, 2, ())]
    assert orders == []


def test_the_last_order_is_obeyed_behind_a_gap_too(scene: Scene) -> None:
    scene.head.perform(_start(3))
    scene.head.flush()
    scene.lose()
    scene.head.perform(_start(4))
    scene.head.part(leave_running=False, deadline_s=5.0)
    _, orders = scene.carry()
    assert [type(order) for order in orders] == [wire.Shutdown]


def test_orders_of_a_head_that_was_followed_by_another_are_not_obeyed(scene: Scene) -> None:
    """They lie before the new head's welcome, which is answered by what is held now."""
    life = scene.agent.incarnation
    older = wire.HeadFrame(1, [wire.encode_order(facts.StartAttempt(LOCAL, 3, 1, "{}"))], 1, life)
    newer = wire.HeadFrame(2, [wire.encode_order(wire.Welcome())])
    scene.line.inbox = [wire.frame(older), wire.frame(newer)]
    assert scene.agent.receive() == []
    assert scene.agent.epoch == 2


def test_what_has_gathered_for_a_dead_agent_is_void(scene: Scene) -> None:
    """The core gives its orders again. Mutation: they stay for the next one."""
    scene.line.room = 0
    scene.head.perform(_start(17))
    scene.head.flush()
    scene.line.room = 1_000_000
    scene.agent = scene.new_agent()
    scene.agent.heartbeat(0, {})
    events, orders = scene.carry()
    scene.head.flush()
    assert [type(event) for event in events] == [e.WorkerJoined]
    assert orders + scene.carry()[1] == []


def test_many_large_orders_go_as_several_frames(scene: Scene) -> None:
    """A frame above the limit closes the connection. Mutation: all go as one."""
    large = '"' + "y" * 600_000 + '"'
    for trial in range(32):
        scene.head.perform(_start(trial, large))
    scene.line.room = 5
    scene.head.flush()
    scene.line.room = 1_000_000
    scene.head.flush()
    assert max(map(len, scene.line.down)) <= MAX_MESSAGE_BYTES // 4
    events, orders = scene.carry()
    assert events == []
    assert _trials(orders) == list(range(32))
    assert scene.beat() == ([], []), "none is missing"


def test_the_largest_parameters_that_a_file_may_allow_are_sent(scene: Scene) -> None:
    scene.head.perform(_start(7, '"' + "y" * (MOST_PARAMETERS_BYTES - 2) + '"'))
    scene.head.flush()
    assert scene.head.check() == []
    assert _trials(scene.carry()[1]) == [7]


def test_an_order_larger_than_any_frame_ends_its_attempt(scene: Scene) -> None:
    """Mutation: it is sent, and the agent's end of the line hangs up, again and again."""
    scene.head.perform(_start(7, '"' + "y" * MAX_MESSAGE_BYTES + '"'))
    scene.head.perform(_start(8))
    scene.head.flush()
    (end,) = scene.head.check()
    assert isinstance(end, e.AttemptEnded)
    assert (end.trial, end.attempt, end.reason) == (7, 1, EndReason.START_FAILED)
    assert "8,388,610 characters" in end.text
    assert _trials(scene.carry()[1]) == [8]
    assert scene.head.check() == []


def test_a_head_that_only_pings_is_there(scene: Scene) -> None:
    """The agent of a quiet trial hears nothing else for hours. Mutation: pings do not count."""
    for _ in range(10):
        scene.now += 1.0
        scene.agent.look()
        scene.head.check()
        scene.carry()
    assert scene.agent.silence_s < 2.0
    for _ in range(4):
        scene.now += 1.0
        scene.agent.look()
    assert scene.agent.silence_s >= 4.0
