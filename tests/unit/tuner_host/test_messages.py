"""What may be said on the tuner host's channel, and in frames of which size."""

from __future__ import annotations

import pytest

from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import FailReason, Verdict
from dispatcher.errors import ProtocolError
from dispatcher.tuner_host import messages as m
from tests.support.batches import encode_batch

T = TrialId(3)
UP = [
    m.Hello(12),
    e.WaitStarted(T, 1, (TrialId(1), TrialId(2)), "any"),
    e.RequestFailed(T, e.RequestEnd.ABANDONED, "gone", TrialId(1)),
    m.Note("careful"),
    m.TunerBroken("no data"),
    e.TunerStateTaken("{}"),
    e.StacksReported({3: "stack"}),
]
DOWN = [
    a.OpenRequest(T),
    a.AnswerWait(T, 1, "failed", parent=T, reason=FailReason.LOST, chain=(T,)),
    a.Deliver(T, "{}", None, False, Verdict(FailReason.NO_TRIAL, (T,))),
    m.Shutdown(2.5),
]


def test_both_ways() -> None:
    (up,) = m.encode(UP)
    (down,) = m.encode(DOWN)
    assert m.decode_from_host(up) == UP
    assert m.decode_from_head(down) == DOWN


def test_events_and_actions_are_encoded_as_the_codec_does() -> None:
    events = [e.EndDelivered(T), e.Proposed(T, "{}")]
    assert m.encode(events) == [encode_batch(list(events))]


def test_large_batches_are_cut_into_frames() -> None:
    proposals = [e.Proposed(TrialId(i), "x" * 100_000) for i in range(30)]
    frames = m.encode(proposals)
    assert len(frames) == 3
    assert max(map(len, frames)) < m.FRAME_BYTES + 100_000
    assert [one for frame in frames for one in m.decode_from_host(frame)] == proposals


@pytest.mark.parametrize(
    "payload",
    [
        b"\xff not msgpack",
        b"\x91\x92\xa1\xff\x80",  # a name that is not UTF-8
        b"\x91\x92\xa4Note" + b"\x91" * 5000,  # deeper than the interpreter goes
        b"\x91\x92\xa4Note\x81\xa4text\xa1\xff",
        m.encode([e.TrialSubmitted("{}")])[0],  # a user's word, not the host's
        m.encode([a.OpenRequest(T)])[0],  # the head's word
        m.encode([m.Shutdown(1.0)])[0],
        encode_batch([("Hello", 1)]),
        b"\x91\x92\xa5Hello\x81\xa3pid\xa1x",  # a pid that is text
    ],
)
def test_what_a_host_may_not_say(payload: bytes) -> None:
    with pytest.raises(ProtocolError):
        m.decode_from_host(payload)


def test_a_host_cannot_report_its_own_loss() -> None:
    """Mutation: all that comes from the tuner's side is taken from its process as well."""
    (frame,) = m.encode([e.TunerHostLost("gone")])
    with pytest.raises(ProtocolError):
        m.decode_from_host(frame)


def test_texts_of_authors_with_lone_surrogates() -> None:
    (frame,) = m.encode([e.RequestFailed(T, e.RequestEnd.ERROR, "\ud800!"), m.Note("\udfff")])
    failed, note = m.decode_from_host(frame)
    assert failed.text == "\\ud800!"
    assert note.text == "\\udfff"
