from __future__ import annotations

import msgspec
import pytest

from tests.support.workers import LOCAL
from trial_runtime import facts, wire
from trial_runtime.fact_wire import decode_fact, encode_fact
from trial_runtime.facts import EndReason
from trial_runtime.session_file import SessionFile

SESSION = SessionFile(1, "ipc://x", "t1.1:s", 1, 1, "/f", '{"x":1}', save_path="/w/1")


def test_trial_messages_there_and_back():
    said = [
        wire.Attach(12),
        wire.AcceptsStop(),
        wire.Metric("0.5"),
        wire.Final('{"default":1}'),
        wire.PublishedMessage("d", "bequeath", 7),
        wire.Done((3, 1), 1, "text", 0.5, True, True),
    ]
    assert wire.from_trial(wire.frame(said)) == said
    answers = [
        wire.Receipt(3),
        wire.StopAsked("killed by the user"),
        wire.Refused("no"),
        wire.Run(SESSION, "/r/s1.1.json"),
        wire.Leave(),
        wire.OfferAnswered("d", accepted=False, newest=wire.PinnedVersion("omega", 3, "p", "e")),
    ]
    assert wire.to_trial(wire.frame(answers)) == answers


def test_agent_and_head_there_and_back():
    said = [
        facts.AttemptStarted(1, 1, 5),
        facts.MetricReported(1, 1, 1, "0.5"),
        facts.AttemptEnded(1, 1, EndReason.FAILED, 3, None, "text", None, 0.1, 0.2),
    ]
    frame = wire.AgentFrame(
        4,
        [
            wire.AgentHello("life", "local", 2, 7, [(1, 1)], 1),
            wire.Heartbeat("life", 1, 5),
            wire.AttemptMessages(1, [encode_fact(fact) for fact in said]),
            wire.Fenced(4),
        ],
    )
    back = wire.from_agent(wire.frame(frame))
    assert [decode_fact(raw) for raw in back.messages[2].messages] == said
    orders = [
        wire.Welcome(),
        wire.Ack(5),
        facts.StartAttempt(LOCAL, 1, 2, "{}", "a", "b", "c", "files"),
        facts.StopAttempt(LOCAL, 1, 2, EndReason.TIMED_OUT, 1.5),
        wire.Ping(),
        wire.Shutdown(2.0),
        wire.VersionAnswered(1, 2, wire.OfferAnswered("d", accepted=False, refusal="no")),
    ]
    sent = wire.HeadFrame(3, [wire.encode_order(order) for order in orders])
    read = wire.from_head(wire.frame(sent))
    assert read == sent
    assert wire.decode_orders(read, LOCAL) == orders


@pytest.mark.parametrize(
    "message", [["?"], ["s", 1], ["t", 1, 2, "bored", 1.5], ["s", -1, 1, ""], 7]
)
def test_a_frame_with_an_order_that_cannot_be_read_is_refused_whole(message):
    good = wire.encode_order(wire.Shutdown(2.0))
    frame = wire.HeadFrame(3, [good, msgspec.Raw(msgspec.msgpack.encode(message))])
    with pytest.raises(wire.WireError, match="malformed message"):
        wire.decode_orders(wire.from_head(wire.frame(frame)), LOCAL)


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b"\x02\x90",
        b"\x01",
        b"\x01\xff",
        b"\x01" + b"\x91\x92\xa1?\x01",
        b"\x01" + b"\x91\x92\xa1\xff\x01",  # text that is not UTF-8
        b"\x01" + b"\x91" * 5000,  # deeper than the interpreter goes
    ],
)
def test_nonsense_is_refused(payload):
    for decode in (wire.from_trial, wire.to_trial, wire.from_agent, wire.from_head):
        with pytest.raises(wire.WireError):
            decode(payload)


def test_a_frame_of_a_trial_is_bounded():
    with pytest.raises(wire.WireError, match="are allowed"):
        wire.from_trial(b"\x01" + bytes(wire.MAX_TRIAL_FRAME_BYTES))


class _FrameOf010(msgspec.Struct, frozen=True, array_like=True):
    """A head's frame as agents of 0.1.0 know it."""

    epoch: int
    messages: list[msgspec.Raw]
    orders: int = 0


def test_an_agent_that_knows_of_no_lives_reads_todays_frames_and_the_other_way_round():
    stop = wire.encode_order(facts.StopAttempt(LOCAL, 1, 2, EndReason.TIMED_OUT, 1.5))
    today = wire.HeadFrame(3, [stop], 4, "a-life")
    old = msgspec.msgpack.decode(wire.frame(today)[1:], type=_FrameOf010)
    assert old == _FrameOf010(3, [stop], 4)
    assert wire.from_head(wire.frame(old)) == wire.HeadFrame(3, [stop], 4, "")
