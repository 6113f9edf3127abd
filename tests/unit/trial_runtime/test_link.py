"""A trial's side of the talk with its agent; the agent's side is a bare listener."""

from __future__ import annotations

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from trial_runtime import wire
from trial_runtime.agent.trials.listener import Listener, Peer
from trial_runtime.api_errors import AgentGone, ReportRefused
from trial_runtime.link import AgentLink
from trial_runtime.local_channel import SCHEME
from trial_runtime.session_file import SessionFile


class Agent:
    """Answers by hand."""

    def __init__(self, path: str) -> None:
        self.address = SCHEME + path
        self.listener = Listener(path, limit=1 << 20, most=10)
        self.peer: Peer | None = None

    def hear(self) -> list[wire.FromTrial]:
        said: list[wire.FromTrial] = []
        for peer, frame in self.listener.receive():
            if self.peer is None:
                self.peer = peer  # and the frame is its secret
            elif isinstance(frame, bytes):
                said.extend(wire.from_trial(frame))
        return said

    def say(self, *messages: wire.ToTrial) -> None:
        assert self.peer is not None
        assert self.peer.send(wire.frame(messages))


@pytest.fixture
def agent() -> Iterator[Agent]:
    with tempfile.TemporaryDirectory() as folder:
        made = Agent(str(Path(folder) / "a"))
        yield made
        made.listener.close()


@pytest.fixture
def link(agent: Agent) -> Iterator[AgentLink]:
    made = AgentLink(agent.address, "secret")
    made.connect()
    assert agent.hear()
    yield made
    assert made._channel is not None
    made._channel.close()


def order(trial: int) -> wire.Run:
    session = SessionFile(
        version=1,
        address="",
        routing="",
        trial=trial,
        attempt=1,
        folder="",
        parameters="{}",
    )
    return wire.Run(session, "")


def test_an_order_that_comes_while_receipts_are_taken_in_is_not_lost(
    agent: Agent, link: AgentLink
) -> None:
    """An agent sends the next function before a worker has looked at all that came before."""
    agent.say(wire.Receipt(1), order(7))
    agent.say(order(8), wire.Leave())
    link.poll()  # as every 64th report does
    assert agent.peer is not None
    agent.peer.close()  # an order that is lost is missed, and not waited for
    assert [link.next_order() for _ in range(3)] == [order(7), order(8), wire.Leave()]


def test_a_refusal_is_raised_by_the_report_that_hears_of_it(agent: Agent, link: AgentLink) -> None:
    agent.say(wire.Refused("too many"))
    with pytest.raises(ReportRefused, match="too many"):
        link.post([wire.Metric("1")], wait=True)
    agent.say(wire.Receipt(100))
    link.post([wire.Metric("2")], wait=True)  # the next one is heard again


def test_an_agent_that_hangs_up_says_why_or_is_gone(agent: Agent, link: AgentLink) -> None:
    agent.say(wire.Refused("no more of this"))
    assert agent.peer is not None
    agent.peer.close()
    with pytest.raises(ReportRefused, match="no more of this"):
        link.post([wire.Metric("1")], wait=True)
    with pytest.raises(AgentGone):
        link.post([wire.Metric("1")], wait=True)


def test_a_stop_is_noted_when_somebody_looks(agent: Agent, link: AgentLink) -> None:
    agent.say(wire.StopAsked("killed by the user"))
    assert link.stop_reason is None
    link.poll()
    assert link.stop_reason == "killed by the user"


def test_a_warm_workers_next_attempt_begins_with_nothing_of_the_one_before(
    agent: Agent, link: AgentLink
) -> None:
    """Mutation: the next trial is to stop, or its first report is refused, since that of the
    trial before was."""
    link.renew((1, 1))
    agent.say(wire.StopAsked("stopped early"), wire.Refused("too many"), order(2))
    link.poll()
    assert link.stop_reason == "stopped early"
    assert link.next_order() == order(2)
    link.renew((2, 1))
    assert (link.attempt, link.stop_reason) == ((2, 1), None)
    link.post([wire.Metric("1")])
    agent.say(wire.StopAsked("stopped early, too"))
    link.poll()
    assert link.stop_reason == "stopped early, too", "which was meant for this one"
