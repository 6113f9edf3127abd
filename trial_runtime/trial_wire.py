"""The messages between a trial and its agent, apart from the rest since each trial loads them.

A frame is one byte of version and a msgpack body, a list of messages, since both sides
coalesce. Structs are arrays on the wire, so fields may only be added at their end, with a
default. Weights never travel here, only their digests. The rest is :mod:`trial_runtime.wire`.

Every number and text has bounds, checked while it is decoded: what passes fits the columns of
a database and the memory of a head, whoever wrote it.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal, Optional, TypeVar, Union

import msgspec
from msgspec import Meta

from trial_runtime.session_file import PinnedVersion, SessionFile

VERSION = 1
_VERSION_BYTE = bytes([VERSION])

#: Largest frame a trial may send (bytes); far above any metric, far below what would hurt.
MAX_TRIAL_FRAME_BYTES = 2 << 20

#: Messages in one frame of a trial: its library sends a few at most.
MAX_TRIAL_MESSAGES = 1024

#: Counts and ids: what JSON, SQLite and C all hold exactly.
Count = Annotated[int, Meta(ge=0, le=(1 << 53) - 1)]
#: Exit statuses and the like.
Code = Annotated[int, Meta(ge=-(1 << 53), le=(1 << 53) - 1)]
#: Durations in seconds; no NaN, no infinity.
Seconds = Annotated[float, Meta(ge=0, le=1e12)]
#: Ids, digests, reasons.
Name = Annotated[str, Meta(max_length=256)]
#: Texts for people.
Text = Annotated[str, Meta(max_length=64 << 10)]
WeightsKind = Literal["bequeath", "files"]

T = TypeVar("T")


class WireError(ValueError):
    """Raised when a frame is not one of ours, or is of another version."""


class Message(msgspec.Struct, frozen=True, array_like=True):
    """Base of all messages."""


# -- trial → agent -------------------------------------------------------------------------


class Attach(Message, frozen=True, tag="a"):
    """The first message of a connection: a process of an attempt has started.

    ``attempt`` names the attempt where a warm worker's processes could belong to one or another.
    """

    pid: Count
    attempt: Optional[tuple[Count, Count]] = None


class AcceptsStop(Message, frozen=True, tag="h"):
    """The trial calls ``should_stop``, so it gets time to act on a stop."""


class Metric(Message, frozen=True, tag="m"):
    """An intermediate metric, as JSON text."""

    value: str


class Final(Message, frozen=True, tag="f"):
    """The final metric, as JSON text."""

    value: str


class PublishedMessage(Message, frozen=True, tag="w"):
    """Complete weights are at the save path."""

    digest: Name
    kind: WeightsKind
    nbytes: Count


class Offered(Message, frozen=True, tag="o"):
    """An offer of version ``base + 1`` of a shared store, repeated until :class:`OfferAnswered`.

    ``path`` is relative to the folder of the experiment's stores.
    """

    store: Name
    base: Count
    path: Name
    digest: Name
    nbytes: Count


class Done(Message, frozen=True, tag="d"):
    """A warm worker's function returned or raised.

    ``code`` is the exit status that a process of its own would have. ``spent``: the worker should
    be replaced.
    """

    attempt: tuple[Count, Count]
    code: Code
    text: Text = ""
    cpu_s: Seconds = 0.0
    out_of_memory: bool = False
    spent: bool = False


FromTrial = Union[Attach, AcceptsStop, Metric, Final, PublishedMessage, Done, Offered]


# -- agent → trial -------------------------------------------------------------------------


class Receipt(Message, frozen=True, tag="r"):
    """The agent holds the first ``count`` messages of this connection."""

    count: int


class StopAsked(Message, frozen=True, tag="s"):
    """The trial should stop: ``should_stop`` answers true from now on."""

    reason: str


class Refused(Message, frozen=True, tag="x"):
    """The agent refuses a message: a cap was passed, or the attempt is over."""

    text: str


class Run(Message, frozen=True, tag="n"):
    """Run the function for this attempt (warm workers only).

    ``marker`` marks the processes that it starts, so that the agent finds those it leaves behind.
    """

    session: SessionFile
    marker: str


class OfferAnswered(Message, frozen=True, tag="v"):
    """The answer to an offer of ``digest`` to a shared store.

    ``newest`` is the store's newest version: this one, if ``accepted``. ``refusal``: the reason why
    no such version can ever be accepted.
    """

    digest: Name
    accepted: bool
    newest: Optional[PinnedVersion] = None
    refusal: Text = ""


class Leave(Message, frozen=True, tag="l"):
    """End this warm worker."""


ToTrial = Union[Receipt, StopAsked, Refused, Run, Leave, OfferAnswered]


_encoder = msgspec.msgpack.Encoder()

#: What decoding bytes of a peer can raise: msgspec's own errors, which are ValueErrors in its later
#: versions only; text which is not UTF-8; deep nesting ends in a RecursionError.
UNREADABLE = (msgspec.MsgspecError, ValueError, RecursionError)
_to_trial: msgspec.msgpack.Decoder[list[ToTrial]] = msgspec.msgpack.Decoder(list[ToTrial])


def frame(body: Any) -> bytes:
    """A body (a list of messages, or a frame of head or agent) as bytes."""
    return _VERSION_BYTE + _encoder.encode(body)


def body(payload: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
    """Decode what :func:`frame` returned; raises :class:`WireError`."""
    if not payload or payload[0] != VERSION:
        theirs = payload[0] if payload else "none"
        raise WireError(f"wire version {theirs}, where {VERSION} is spoken")
    try:
        return decoder.decode(memoryview(payload)[1:])
    except UNREADABLE as error:
        raise WireError(f"malformed message: {brief(error)}") from error


def brief(error: Exception) -> str:
    """The text of an error, bounded and printable: some errors quote what they refuse."""
    text = str(error)
    text = text if len(text) <= 200 else f"{text[:200]}..."
    return "".join(each if each.isprintable() else "\N{REPLACEMENT CHARACTER}" for each in text)


def to_trial(payload: bytes) -> list[ToTrial]:
    """Messages to a trial or warm worker; raises :class:`WireError`."""
    return body(payload, _to_trial)
