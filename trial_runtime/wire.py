"""What goes over the wire between a trial and its agent, and between the agent and the head.

A frame is one byte of version and a msgpack body. Both sides coalesce: a frame holds a list
of messages. Structs are arrays on the wire, so fields may only be added at their end, with a
default. Weights never travel here, only their digests.
"""

from __future__ import annotations

from typing import Any, TypeAlias, TypeVar

import msgspec

from trial_runtime.session_file import SessionFile

VERSION = 1
_VERSION_BYTE = bytes([VERSION])

#: Largest frame a trial may send (bytes); far above any metric, far below what would hurt.
MAX_TRIAL_FRAME_BYTES = 2 << 20

T = TypeVar("T")


class WireError(ValueError):
    """Raised when a frame is not one of ours, or is of another version."""


class _Message(msgspec.Struct, frozen=True, array_like=True):
    """Base of all messages."""


# -- trial → agent -------------------------------------------------------------------------


class Attach(_Message, frozen=True, tag="a"):
    """First word of a connection: a process of the attempt is there."""

    pid: int


class Heeding(_Message, frozen=True, tag="h"):
    """The trial asks ``should_stop``, so it deserves time to act on the answer."""


class Metric(_Message, frozen=True, tag="m"):
    """An intermediate metric, as JSON text."""

    value: str


class Final(_Message, frozen=True, tag="f"):
    """The final metric, as JSON text."""

    value: str


class Published(_Message, frozen=True, tag="w"):
    """Complete weights are at the save path."""

    digest: str
    kind: str
    nbytes: int


class Bye(_Message, frozen=True, tag="b"):
    """This process will say no more."""


class Done(_Message, frozen=True, tag="d"):
    """A warm worker's function returned or raised. ``code`` is what the exit status would be;
    ``spent``: the worker should be replaced."""

    attempt: tuple[int, int]
    code: int
    text: str = ""
    cpu_s: float = 0.0
    out_of_memory: bool = False
    spent: bool = False


FromTrial: TypeAlias = Attach | Heeding | Metric | Final | Published | Bye | Done


# -- agent → trial -------------------------------------------------------------------------


class Receipt(_Message, frozen=True, tag="r"):
    """The agent holds the first ``count`` messages of this connection."""

    count: int


class StopAsked(_Message, frozen=True, tag="s"):
    """The trial should stop: ``should_stop`` answers true from now on."""

    reason: str


class Refused(_Message, frozen=True, tag="x"):
    """The agent does not take this: a cap was passed, or the attempt is over."""

    text: str


class Run(_Message, frozen=True, tag="n"):
    """Run the function for this attempt (warm workers only). ``marker`` marks the processes
    that it starts, for the agent to find those it leaves behind."""

    session: SessionFile
    marker: str


class Leave(_Message, frozen=True, tag="l"):
    """End this warm worker."""


ToTrial: TypeAlias = Receipt | StopAsked | Refused | Run | Leave


# -- agent → head --------------------------------------------------------------------------


class Started(_Message, frozen=True, tag="s"):
    """The attempt's process is there."""

    trial: int
    attempt: int
    pid: int = 0


class MetricRelayed(_Message, frozen=True, tag="m"):
    """An intermediate metric. ``seq`` numbers the words of one attempt from 1."""

    trial: int
    attempt: int
    seq: int
    value: str


class FinalRelayed(_Message, frozen=True, tag="f"):
    """A final metric."""

    trial: int
    attempt: int
    seq: int
    value: str


class PublishedRelayed(_Message, frozen=True, tag="w"):
    """Weights a trial published itself."""

    trial: int
    attempt: int
    seq: int
    digest: str
    kind: str
    nbytes: int


class Ended(_Message, frozen=True, tag="e"):
    """The attempt's processes are gone. ``reason`` is one of :data:`END_REASONS`; the last
    three fields are plain files found at the save path, synced and digested."""

    trial: int
    attempt: int
    reason: str
    exit_code: int | None = None
    signal: int | None = None
    text: str = ""
    cpu_s: float = 0.0
    wall_s: float = 0.0
    digest: str = ""
    kind: str = ""
    nbytes: int = 0


Word: TypeAlias = Started | MetricRelayed | FinalRelayed | PublishedRelayed | Ended


class Words(_Message, frozen=True, tag="W"):
    """Numbered words; the first has number ``first``. Kept until the head acknowledges them."""

    first: int
    words: list[msgspec.Raw]


class AgentHello(_Message, frozen=True, tag="H"):
    """An agent introduces itself to a head: ``life`` tells one agent process from the next,
    ``holds`` are the attempts it runs or has words of, ``first`` its oldest kept word."""

    life: str
    worker: str
    slots: int
    pid: int
    holds: list[tuple[int, int]]
    first: int


class Heartbeat(_Message, frozen=True, tag="B"):
    """The agent lives. ``newest`` is the number of its newest word."""

    life: str
    running: int
    newest: int


class Fenced(_Message, frozen=True, tag="X"):
    """The agent follows a head of a later epoch."""

    epoch: int


FromAgent: TypeAlias = Words | AgentHello | Heartbeat | Fenced


# -- head → agent --------------------------------------------------------------------------


class Welcome(_Message, frozen=True, tag="w"):
    """The head is there and knows nothing yet: say hello, then all words not acknowledged."""


class Ack(_Message, frozen=True, tag="k"):
    """All words up to and including ``number`` are durably on disk."""

    number: int


class Start(_Message, frozen=True, tag="s"):
    """Run an attempt; see ``StartAttempt`` of the core."""

    trial: int
    attempt: int
    parameters: str
    save_path: str | None = None
    restore_path: str | None = None
    restore_digest: str | None = None
    restore_kind: str | None = None


class Stop(_Message, frozen=True, tag="t"):
    """End an attempt: told, then SIGTERM, then SIGKILL after ``grace_s``."""

    trial: int
    attempt: int
    reason: str
    grace_s: float


class Ping(_Message, frozen=True, tag="p"):
    """The head lives."""


class Shutdown(_Message, frozen=True, tag="q"):
    """End all attempts within ``grace_s``, hand in what is left, exit."""

    grace_s: float


FromHead: TypeAlias = Welcome | Ack | Start | Stop | Ping | Shutdown

#: How an attempt may end; the words are those of ``dispatcher.core.model.EndReason``.
FINISHED = "finished"
FAILED = "failed"
SIGNALLED = "signalled"
OUT_OF_MEMORY = "out of memory"
TIMED_OUT = "timed out"
START_FAILED = "could not start"
SHUT_DOWN = "stopped with the experiment"
LOST = "lost"
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
        "killed by the user",
        "stopped early",
    }
)


class HeadFrame(msgspec.Struct, frozen=True, array_like=True):
    """From the head: its epoch in every frame, which is what fences an older head."""

    epoch: int
    messages: list[FromHead]


class AgentFrame(msgspec.Struct, frozen=True, array_like=True):
    """From the agent: the epoch of the head it is meant for."""

    epoch: int
    messages: list[FromAgent]


_encoder = msgspec.msgpack.Encoder()
_from_trial: msgspec.msgpack.Decoder[list[FromTrial]] = msgspec.msgpack.Decoder(list[FromTrial])
_to_trial: msgspec.msgpack.Decoder[list[ToTrial]] = msgspec.msgpack.Decoder(list[ToTrial])
_from_agent = msgspec.msgpack.Decoder(AgentFrame)
_from_head = msgspec.msgpack.Decoder(HeadFrame)
_word: msgspec.msgpack.Decoder[Word] = msgspec.msgpack.Decoder(Word)


def frame(body: Any) -> bytes:
    """A body (a list of messages, a :class:`HeadFrame`, an :class:`AgentFrame`) as a frame."""
    return _VERSION_BYTE + _encoder.encode(body)


def encode_word(word: Word) -> msgspec.Raw:
    """A word as it will lie in :class:`Words`, so that it is encoded once however often sent."""
    return msgspec.Raw(_encoder.encode(word))


def decode_word(raw: msgspec.Raw | bytes) -> Word:
    """The inverse of :func:`encode_word`; raises :class:`WireError`."""
    try:
        return _word.decode(raw)
    except msgspec.MsgspecError as error:
        raise WireError(f"malformed word: {error}") from error


def _body(payload: bytes, decoder: msgspec.msgpack.Decoder[T]) -> T:
    if not payload or payload[0] != VERSION:
        theirs = payload[0] if payload else "none"
        raise WireError(f"wire version {theirs}, where {VERSION} is spoken")
    try:
        return decoder.decode(memoryview(payload)[1:])
    except msgspec.MsgspecError as error:
        raise WireError(f"malformed message: {error}") from error


def from_trial(payload: bytes) -> list[FromTrial]:
    """Messages of a trial or warm worker; raises :class:`WireError`."""
    if len(payload) > MAX_TRIAL_FRAME_BYTES:
        raise WireError(f"a frame of {len(payload):,} bytes; {MAX_TRIAL_FRAME_BYTES:,} are allowed")
    return _body(payload, _from_trial)


def to_trial(payload: bytes) -> list[ToTrial]:
    """Messages to a trial or warm worker; raises :class:`WireError`."""
    return _body(payload, _to_trial)


def from_agent(payload: bytes) -> AgentFrame:
    """A frame of an agent; raises :class:`WireError`."""
    return _body(payload, _from_agent)


def from_head(payload: bytes) -> HeadFrame:
    """A frame of a head; raises :class:`WireError`."""
    return _body(payload, _from_head)
