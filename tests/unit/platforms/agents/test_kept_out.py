"""An agent that may not join says why at each heartbeat; its head shows it and waits."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from tests.unit.platforms.local.test_gaps import Scene as BothEnds
from tests.unit.platforms.local.test_leases import LOCAL, Scene
from trial_runtime import facts, wire
from trial_runtime.fact_wire import encode_fact
from trial_runtime.facts import EndReason


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    process = Popen(["sleep", "600"])
    yield Scene(tmp_path, process)
    process.kill()
    process.wait()


def trouble(scene: Scene, text: str, life: str = "a") -> list[e.Event]:
    hello = wire.AgentHello(life, "local", 2, scene.process.pid, [], 1, trouble=text)
    return scene.hear(hello)


def test_it_is_told_once_and_again_when_it_changes(scene: Scene) -> None:
    assert trouble(scene, "not mounted") == [e.WorkerLost(LOCAL, "not mounted", kept_out=True)]
    assert trouble(scene, "not mounted") == []
    assert trouble(scene, "read-only") == [e.WorkerLost(LOCAL, "read-only", kept_out=True)]
    assert scene.backend.waiting() == "read-only"


def test_it_is_not_lost_for_want_of_words_and_hears_its_head(scene: Scene) -> None:
    """Mutation: no ping is sent, and the agent leaves when ``headGrace`` is over."""
    trouble(scene, "not mounted")
    for _ in range(100):
        assert scene.wait(1.0) == []
        sent = len(scene.link.said)
        assert trouble(scene, "not mounted") == []
        assert len(scene.link.said) > sent
    assert scene.process.poll() is None


def test_it_joins_when_its_host_is_mended(scene: Scene) -> None:
    trouble(scene, "not mounted")
    (joined,) = trouble(scene, "")
    assert isinstance(joined, e.WorkerJoined)
    assert scene.backend.waiting() is None


def test_its_words_are_not_believed_before(scene: Scene) -> None:
    trouble(scene, "not mounted")
    word = encode_fact(facts.AttemptStarted(1, 1, 5))
    assert scene.hear(wire.AttemptMessages(1, [word])) == []


ENDED = (TrialId(3), 1)


@pytest.fixture
def both(tmp_path: Path) -> BothEnds:
    """An agent that has found trouble on its host, and what the one before it has left."""
    ends = BothEnds(tmp_path)
    ends.outbox.add(facts.FinalReported(3, 1, 1, "0.5"), urgent=True)
    ends.outbox.add(facts.AttemptEnded(3, 1, EndReason.FINISHED), urgent=True)
    ends.agent = ends.new_agent()
    ends.agent.tell_trouble("not mounted")
    return ends


def test_what_an_agent_before_it_has_left_is_said_first(both: BothEnds) -> None:
    """Else a trial that had finished counts as lost, and runs again."""
    joined, final, ended = both.carry()[0]
    assert joined == e.WorkerJoined(LOCAL, 0, (ENDED,)), "it takes nothing new"
    assert isinstance(final, e.FinalReported)
    assert isinstance(ended, e.AttemptEnded)
    assert both.beat() == ([], []), "not on disk yet"
    both.head.acknowledge()
    both.beat()
    assert both.outbox.first > both.outbox.newest
    assert both.beat()[0] == [e.WorkerLost(LOCAL, "not mounted", kept_out=True)]
    assert both.beat() == ([], [])
    both.agent.tell_trouble("")
    assert both.carry()[0] == [e.WorkerJoined(LOCAL, 2)]


def test_it_joins_as_another_when_its_host_is_mended_meanwhile(both: BothEnds) -> None:
    both.carry()
    both.agent.tell_trouble("read-only")
    assert both.carry()[0] == [], "it has something to say all the same"
    both.agent.tell_trouble("")
    joined, *_said_again = both.carry()[0]
    assert joined == e.WorkerJoined(LOCAL, 2, (ENDED,))
    both.head.acknowledge()
    both.beat()
    assert both.beat() == ([], []), "and stays"


def test_it_starts_nothing_before(both: BothEnds) -> None:
    """An order that the core gives again, since the agent before never got it."""
    both.carry()
    start = a.StartAttempt(LOCAL, TrialId(4), 1, "{}")
    both.head.perform(start)
    both.head.acknowledge()
    both.head.flush()
    assert both.carry()[1] == []
    assert [type(event) for event in both.beat()[0]] == [e.WorkerLost]
    both.agent.tell_trouble("")
    both.carry()
    both.head.perform(start)
    both.head.flush()
    assert [type(order) for order in both.carry()[1]] == [facts.StartAttempt]


def test_its_offer_is_not_taken_for_what_its_host_has(both: BothEnds) -> None:
    """Devices that cannot be counted are none: no trial is to be refused for that."""
    both.line.up.clear()
    offer = wire.OfferMessage((), 8.0, 64, ())
    hello = wire.AgentHello(
        "b", "local", 2, 1, [ENDED], 1, trouble="no driver", offer=offer, hands_in=True
    )
    frame = wire.frame(wire.AgentFrame(1, [hello]))
    assert both.head.receive(frame) == [e.WorkerJoined(LOCAL, 0, (ENDED,))]
