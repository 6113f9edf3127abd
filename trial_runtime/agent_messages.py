"""Messages of an agent about its attempts, numbered and kept until the head has them on disk.

A message is encoded once, however often it is sent: :class:`trial_runtime.wire.Words` carries
the encoded messages unchanged.
"""

from __future__ import annotations

from typing import Literal, Optional, Union

import msgspec

from trial_runtime.trial_wire import (
    UNREADABLE,
    Code,
    Count,
    Message,
    Name,
    Seconds,
    Text,
    WeightsKind,
    WireError,
    brief,
)

#: How an attempt may end; the texts are those of ``dispatcher.core.model.EndReason``.
FINISHED = "finished"
FAILED = "failed"
SIGNALLED = "signalled"
OUT_OF_MEMORY = "out of memory"
TIMED_OUT = "timed out"
START_FAILED = "could not start"
SHUT_DOWN = "stopped with the experiment"
LOST = "lost"
PREEMPTED = "preempted"
END_REASONS = frozenset(
    {
        FINISHED,
        FAILED,
        SIGNALLED,
        OUT_OF_MEMORY,
        TIMED_OUT,
        START_FAILED,
        SHUT_DOWN,
        LOST,
        PREEMPTED,
        "killed by the user",
        "stopped early",
    }
)


class Started(Message, frozen=True, tag="s"):
    """The attempt's process has started."""

    trial: Count
    attempt: Count
    pid: Count = 0


class MetricRelayed(Message, frozen=True, tag="m"):
    """An intermediate metric. ``seq`` numbers the messages of one attempt from 1."""

    trial: Count
    attempt: Count
    seq: Count
    value: str


class FinalRelayed(Message, frozen=True, tag="f"):
    """A final metric."""

    trial: Count
    attempt: Count
    seq: Count
    value: str


class PublishedRelayed(Message, frozen=True, tag="w"):
    """Weights that a trial published itself."""

    trial: Count
    attempt: Count
    seq: Count
    digest: Name
    kind: WeightsKind
    nbytes: Count


class VersionRelayed(Message, frozen=True, tag="v"):
    """A trial offers a version to a shared store, see :class:`Offered`."""

    trial: Count
    attempt: Count
    seq: Count
    store: Name
    base: Count
    path: Name
    digest: Name
    nbytes: Count


class Ended(Message, frozen=True, tag="e"):
    """The attempt's processes are gone.

    ``reason`` is one of :data:`END_REASONS`. The last three fields describe plain files at the
    save path, synced and digested.
    """

    trial: Count
    attempt: Count
    reason: Name
    exit_code: Optional[Code] = None
    signal: Optional[Code] = None
    text: Text = ""
    cpu_s: Seconds = 0.0
    wall_s: Seconds = 0.0
    digest: Name = ""
    kind: Union[WeightsKind, Literal[""]] = ""
    nbytes: Count = 0


Word = Union[Started, MetricRelayed, FinalRelayed, PublishedRelayed, Ended, VersionRelayed]

_encoder = msgspec.msgpack.Encoder()
_word: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)


def encode_word(word: Word) -> msgspec.Raw:
    """Encode a message as :class:`Words` carries it, once for however often it is sent."""
    return msgspec.Raw(_encoder.encode(word))


def decode_word(raw: msgspec.Raw | bytes) -> Word:
    """Decode what :func:`encode_word` returned; raises :class:`WireError`."""
    try:
        return _word.decode(raw)
    except UNREADABLE as error:
        raise WireError(f"malformed word: {brief(error)}") from error
