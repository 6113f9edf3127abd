"""An agent may be somebody else's: what it says is judged as it is to judge what trials say."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from subprocess import Popen

import msgspec
import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.resources import Offer
from dispatcher.errors import ProtocolError
from dispatcher.platforms.agents.message_check import (
    BESIDE_METRICS,
    MOST_UNREADABLE,
    MessageCheck,
    Refused,
)
from tests.unit.platforms.local.test_leases import LOCAL, Scene
from trial_runtime import facts, wire
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.link.head_link import OFFER_AGAIN_S
from trial_runtime.fact_wire import encode_fact
from trial_runtime.facts import EndReason


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    process = Popen(["sleep", "600"])
    yield Scene(tmp_path, process)
    process.kill()
    process.wait()


def words(first: int, *said: facts.AttemptFact) -> wire.AttemptMessages:
    return wire.AttemptMessages(first, [encode_fact(word) for word in said])


BAD = ["not json", "NaN", "[" * 60_000, '{"default": 1e999}', '"\\ud800"', "\x1b[2J", '{"x": 1}']
BAD += ['{"default": 1, "x": ' + "[" * 10 + "]" * 10 + "}", "1" * 70_000, "123456789" * 3]


@pytest.mark.parametrize("value", BAD)
def test_a_value_that_no_agent_takes_from_a_trial_is_not_taken_from_an_agent(
    scene: Scene, value: str
) -> None:
    """Mutation: the head journals whatever an agent relays; the command line stumbles over it."""
    scene.hello()
    said = words(1, facts.MetricReported(1, 1, 1, value), facts.FinalReported(1, 1, 2, value))
    assert scene.hear(said, words(3, facts.FinalReported(1, 1, 3, "0.5"))) == [
        e.FinalReported(TrialId(1), 1, 3, "0.5")
    ]
    assert scene.backend.statistics().refused == {"metric": 2}


def test_any_json_is_taken_for_nni_and_nothing_else() -> None:
    check = MessageCheck("far", TrialSpec(".", nni=True), lambda: 0.0)
    check.judge(facts.FinalReported(1, 1, 1, '["a", {"b": 1}]'))
    for value in ("NaN", "[" * 60_000, "x"):
        with pytest.raises(Refused, match="attempt 1"):
            check.judge(facts.FinalReported(1, 1, 1, value))


@pytest.mark.parametrize("kind", ["final", "weights", "version", "started", "ended"])
@pytest.mark.parametrize("trial", [1, 2, 9], ids=["that it holds", "given", "of others"])
def test_the_words_of_an_attempt_are_counted(kind: str, trial: int) -> None:
    """The journal has a bound, whoever speaks. Mutation: words of attempts that it does not hold,
    or ends, are not counted."""
    check = MessageCheck("far", TrialSpec(".", max_metrics=10), lambda: 0.0)
    check.joined([(1, 1)])
    check.given(2, 1)
    made = {
        "final": facts.FinalReported(trial, 1, 1, "0.5"),
        "weights": facts.WeightsPublished(trial, 1, 1, facts.Weights("ab", "files", 1)),
        "version": facts.VersionOffered(trial, 1, 1, "omega", 0, "x", "ab", 1),
        "started": facts.AttemptStarted(trial, 1, 1),
        "ended": facts.AttemptEnded(trial, 1, EndReason.FAILED),
    }
    taken = sum(takes(check, made[kind]) for _ in range(1000))
    assert taken <= 2 * 10 + BESIDE_METRICS + (kind == "ended")


def test_an_end_is_heard_however_much_was_said_before() -> None:
    check = MessageCheck("far", TrialSpec(".", max_metrics=1), lambda: 0.0)
    check.given(1, 1)
    assert sum(takes(check, facts.MetricReported(1, 1, 1, "0.5")) for _ in range(100)) < 100
    assert takes(check, facts.AttemptEnded(1, 1, EndReason.FINISHED))


def takes(check: MessageCheck, word: facts.AttemptFact) -> bool:
    try:
        check.judge(word)
    except Refused:
        return False
    return True


def test_a_frame_of_millions_of_words_is_refused_before_they_are_decoded() -> None:
    """Mutation: no bound; each of eight million bytes becomes an object."""
    true = wire.frame(wire.AgentFrame(1, [wire.AttemptMessages(1, [msgspec.Raw(b"\xc0")])]))
    place = true.rindex(b"\x91\xc0")
    many = (1 << 20).to_bytes(4, "big")
    with pytest.raises(wire.WireError, match="length"):
        wire.from_agent(true[:place] + b"\xdd" + many + b"\xc0" * (1 << 20))
    messages = [wire.Heartbeat("a", 0, 0)] * (wire.MAX_AGENT_MESSAGES + 1)
    with pytest.raises(wire.WireError, match="length"):
        wire.from_agent(wire.frame(wire.AgentFrame(1, messages)))
    hello = wire.AgentHello("a", "w", 1, 1, [(0, 0)] * (wire.MAX_HOLDS + 1), 1)
    with pytest.raises(wire.WireError, match="length"):
        wire.from_agent(wire.frame(wire.AgentFrame(1, [hello])))


def test_one_that_says_nothing_but_nonsense_is_not_listened_to_any_more(scene: Scene) -> None:
    """And is lost. Mutation: it is refused for ever, frame by frame."""
    scene.hello()
    for _ in range(MOST_UNREADABLE + 1):
        with pytest.raises(ProtocolError):
            scene.backend.receive(b"\x01nonsense")
    assert scene.hear(words(1, facts.FinalReported(1, 1, 1, "0.5"))) == []
    assert scene.backend.receive(b"\x01nonsense") == []
    (lost,) = scene.wait(0.5)
    assert isinstance(lost, e.WorkerLost)
    assert "nobody can read" in lost.reason
    assert scene.backend.statistics().refused == {
        "unreadable frame": MOST_UNREADABLE + 1,
        "not listened to": 2,
    }


def test_some_nonsense_is_only_counted(scene: Scene) -> None:
    scene.hello()
    for _ in range(MOST_UNREADABLE):
        with pytest.raises(ProtocolError):
            scene.backend.receive(b"\x01nonsense")
    assert len(scene.hear(words(1, facts.FinalReported(1, 1, 1, "0.5")))) == 1


def test_one_that_never_stops_introducing_itself_is_lost(scene: Scene) -> None:
    """Each hello is a row of the journal. Mutation: they are not counted."""
    joined = [event for life in range(1000) for event in scene.hello(str(life))]
    assert 1 <= len(joined) <= 50
    (lost,) = scene.wait(0.5)
    assert isinstance(lost, e.WorkerLost)
    assert "too often" in lost.reason


def test_of_an_offer_that_never_stands_still_the_newest_counts_in_the_end(scene: Scene) -> None:
    """It may be honest: trials that are short and share devices change what is free on them. So it
    keeps its trials. Mutation: each is a row of the journal."""
    scene.hello()
    news = []
    for cores in range(1, 1000):
        news += scene.hear(wire.Offers("a", wire.OfferMessage(cpus=cores)))
    assert 1 <= len(news) <= 50
    assert news[0] == e.WorkerOffers(LOCAL, Offer(cpus=1))
    assert scene.backend.statistics().refused["news of the host"] > 900
    for _ in range(int(OFFER_AGAIN_S)):
        scene.hear(wire.Heartbeat("a", 0, 0))
        assert scene.wait(1.0) == []
    newest = wire.Offers("a", wire.OfferMessage(cpus=999))
    assert scene.hear(newest) == [e.WorkerOffers(LOCAL, Offer(cpus=999))]
    assert scene.hear(newest) == []


def test_a_host_that_is_mended_slowly_may_say_so_for_ever(scene: Scene) -> None:
    said = wire.AgentHello("a", "local", 2, scene.process.pid, [], 1, trouble="not mounted")
    for _ in range(1000):
        scene.hear(said)
    assert scene.wait(0.5) == []


def test_no_agent_has_more_slots_than_it_is_to_have(scene: Scene) -> None:
    """Mutation: what it says counts, and all trials go to the one that says most."""
    (joined,) = scene.hear(wire.AgentHello("a", "local", 99_999, scene.process.pid, [], 1))
    assert isinstance(joined, e.WorkerJoined)
    assert joined.slots == 2


def test_given_attempts_speak_up_to_their_bound_and_others_go_on(scene: Scene) -> None:
    scene.hello()
    scene.backend.perform(a.StartAttempt(LOCAL, TrialId(3), 1, "{}"))
    said = [facts.MetricReported(3, 1, seq, "0.5") for seq in range(1, 200)]
    assert len(scene.hear(words(1, *said))) == 199
