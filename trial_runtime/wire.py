"""All messages: those of :mod:`trial_runtime.trial_wire`, and those of agent and head.

Facts of attempts (:mod:`trial_runtime.facts`) travel by themselves: they are numbered, and kept by
the agent until the head has them on disk. Each frame of the head carries its epoch, which fences an
older head.
"""

from __future__ import annotations

from typing import Annotated, Any, Optional, Union

import msgspec
from msgspec import Meta

from trial_runtime.fact_wire import ORDER_LAYOUTS, array_of, order_of
from trial_runtime.facts import AttemptOrder, StartAttempt, StopAttempt
from trial_runtime.resource_wire import (
    AttemptSample,
    DeviceMessage,
    DeviceSample,
    OfferMessage,
    Samples,
)
from trial_runtime.session_file import PinnedVersion
from trial_runtime.trial_wire import (
    MAX_TRIAL_FRAME_BYTES,
    MAX_TRIAL_MESSAGES,
    UNREADABLE,
    VERSION,
    AcceptsStop,
    Attach,
    Count,
    Done,
    Final,
    FromTrial,
    Leave,
    Message,
    Metric,
    Name,
    OfferAnswered,
    Offered,
    PublishedMessage,
    Receipt,
    Refused,
    Run,
    StopAsked,
    Text,
    ToTrial,
    WireError,
    body,
    brief,
    frame,
    to_trial,
)

__all__ = [
    "FILES",
    "MAX_FILE_NAME_BYTES",
    "MAX_LOGS",
    "MAX_LOG_END_BYTES",
    "MAX_PIECE_BYTES",
    "MAX_TRIAL_FRAME_BYTES",
    "UNCOUNTED",
    "VERSION",
    "AcceptsStop",
    "Ack",
    "AgentFrame",
    "AgentHello",
    "Attach",
    "AttemptMessages",
    "AttemptSample",
    "DeviceMessage",
    "DeviceSample",
    "Done",
    "Fenced",
    "FileAsked",
    "FileGiven",
    "Final",
    "FromAgent",
    "FromHead",
    "FromTrial",
    "HeadFrame",
    "Heartbeat",
    "Leave",
    "LogEnd",
    "LogEnds",
    "Metric",
    "OfferAnswered",
    "OfferMessage",
    "Offered",
    "Offers",
    "Ping",
    "PinnedVersion",
    "PublishedMessage",
    "Receipt",
    "Refused",
    "Run",
    "Samples",
    "Shutdown",
    "StopAsked",
    "ToTrial",
    "VersionAnswered",
    "Welcome",
    "WireError",
    "decode_orders",
    "encode_order",
    "frame",
    "from_agent",
    "from_head",
    "from_trial",
    "to_trial",
]


#: As many as an experiment file may ask for.
Slots = Annotated[int, Meta(ge=1, le=99_999)]


# -- agent → head --------------------------------------------------------------------------


#: Numbered messages in one :class:`AttemptMessages` of an agent, and messages in one frame of it:
#: it sends 2,000, and a few. The length of a list is bounded before any of it is decoded.
MAX_NUMBERED = 4096
MAX_AGENT_MESSAGES = 256

#: Attempts that an agent may claim to hold: more than fit into its outbox.
MAX_HOLDS = 1 << 18

#: What an agent may be asked for: files of attempts (:class:`FileAsked`). Nobody else is asked.
FILES = "files"
MAX_SERVICES = 64

#: Bytes of a file in one :class:`FileGiven`, and of the name of one.
MAX_PIECE_BYTES = 256 << 10
MAX_FILE_NAME_BYTES = 4096

#: Reasons for which it refused messages, of its trials and of older heads.
MAX_REFUSED = 256

#: Logs of one attempt whose ends are handed in, and bytes of the end of one.
MAX_LOGS = 64
MAX_LOG_END_BYTES = 64 << 10


class LogEnd(msgspec.Struct, frozen=True, array_like=True):
    """The end of one log of an attempt.

    ``before``: bytes of the file that come before ``data``. ``older``: bytes of the older parts
    of the log. ``version`` and ``identity`` are those of the file, as :class:`FileGiven` has them.
    """

    name: Name
    data: Annotated[bytes, Meta(max_length=MAX_LOG_END_BYTES)]
    before: Count = 0
    older: Count = 0
    version: Name = ""
    identity: Name = ""


class LogEnds(msgspec.Struct, frozen=True, array_like=True):
    """The ends of all logs of an attempt that is over; none of one that has printed nothing."""

    trial: Count
    attempt: Count
    logs: Annotated[list[LogEnd], Meta(max_length=MAX_LOGS)]

    @property
    def nbytes(self) -> int:
        """How many bytes of logs these are."""
        return sum(len(each.data) for each in self.logs)


class AttemptMessages(Message, frozen=True, tag="W"):
    """Numbered messages about attempts, kept until the head acknowledges them.

    The first has number ``first``; the others follow without a gap. ``logs``: the ends of the logs
    of attempts whose end is among the messages, of an agent whose files nobody else sees.
    """

    first: Count
    messages: Annotated[list[msgspec.Raw], Meta(max_length=MAX_NUMBERED)]
    logs: Annotated[list[LogEnds], Meta(max_length=MAX_NUMBERED)] = msgspec.field(
        default_factory=list
    )


class AgentHello(Message, frozen=True, tag="H"):
    """An agent introduces itself to a head.

    ``life`` is the agent's incarnation: it distinguishes one agent process from the next.
    ``holds``: the attempts that it runs or has messages of. ``first``: the number of its oldest
    kept message. ``orders``: the number of the newest order that it received from this head.
    ``trouble``: a fault of its host that keeps it from joining; it goes on checking.
    ``hands_in``: in spite of that it has messages, left by an agent before it, and joins to send
    them; it takes nothing new, and leaves again when they are on disk.
    ``hopeless``: the trouble stays until somebody changes the experiment or the host.
    ``offer``: its resources beside slots; None from an agent that does not count.
    ``share``: the token below its weights root, from an agent whose configuration names none.
    ``ticket``: the one of its configuration. ``start``: drawn when its process began; with the same
    ticket and another ``start`` comes a process that was started a second time by somebody else.
    ``serves``: what it may be asked for beside orders, such as :data:`FILES`.
    ``way``: the word for the way by which it reaches this head, where it knows one.
    ``restarts``: how often its scheduler has lent the place anew under this ticket, as some do by
    themselves: of two processes the one with more of them comes after the other.
    """

    life: Name
    worker: Name
    slots: Slots
    pid: Count
    holds: Annotated[list[tuple[Count, Count]], Meta(max_length=MAX_HOLDS)]
    first: Annotated[int, Meta(ge=1, le=(1 << 53) - 1)]
    orders: Count = 0
    trouble: Text = ""
    offer: Optional[OfferMessage] = None
    hopeless: bool = False
    share: Text = ""
    hands_in: bool = False
    ticket: Text = ""
    start: Name = ""
    serves: Annotated[list[Name], Meta(max_length=MAX_SERVICES)] = msgspec.field(
        default_factory=list
    )
    way: Name = ""
    restarts: Count = 0


class Offers(Message, frozen=True, tag="O"):
    """The agent's offer for trials has changed. ``life`` as in its hello."""

    life: Name
    offer: OfferMessage


class Heartbeat(Message, frozen=True, tag="B"):
    """The agent lives.

    ``newest`` is the number of its newest numbered message, ``sent`` that of the newest one it
    sent: a head that has not received it by now never will. ``refused`` counts the messages of
    trials and strangers that it refused, by reason. ``samples``: the usage of trials, where it was
    measured since the last heartbeat. ``leaving``: whoever lent its place has asked it to go.
    """

    life: Name
    running: Count
    newest: Count
    refused: Annotated[dict[Name, Count], Meta(max_length=MAX_REFUSED)] = msgspec.field(
        default_factory=dict
    )
    sent: Count = 0
    samples: Optional[Samples] = None
    leaving: bool = False


class Fenced(Message, frozen=True, tag="X"):
    """The agent follows a head of a later epoch."""

    epoch: Count


class FileGiven(Message, frozen=True, tag="F"):
    """The answer to a :class:`FileAsked`, by its number.

    ``size``, ``version`` and ``identity`` are those of the whole. ``gone``: there is no such
    file, or of a list, no folder of the attempt. ``error``: why it cannot be read.
    """

    number: Count
    data: Annotated[bytes, Meta(max_length=MAX_PIECE_BYTES)] = b""
    size: Count = 0
    version: Name = ""
    identity: Name = ""
    gone: bool = False
    error: Text = ""


FromAgent = Union[AttemptMessages, AgentHello, Heartbeat, Fenced, Offers, FileGiven]


# -- head → agent --------------------------------------------------------------------------


class Welcome(Message, frozen=True, tag="w"):
    """The head asks for a hello, and then for all messages that are not acknowledged."""


class Ack(Message, frozen=True, tag="k"):
    """All numbered messages up to and including ``number`` are durably on disk."""

    number: int


class VersionAnswered(Message, frozen=True, tag="v"):
    """The answer to an attempt's offer. It may get lost: the trial offers again."""

    trial: Count
    attempt: Count
    answer: OfferAnswered


class Ping(Message, frozen=True, tag="p"):
    """The head lives."""


class Shutdown(Message, frozen=True, tag="q"):
    """End all attempts within ``grace_s``, send what is left, exit."""

    grace_s: float


class FileAsked(Message, frozen=True, tag="f"):
    """The head asks for a part of a file of an attempt, or of the list of its files (JSON).

    Only agents that serve :data:`FILES` know it. It or its answer may get lost: whoever wants to
    know asks again. ``most``: of a list, so many files below ``path`` at most; zero: the file is
    meant. ``number`` is nobody's but the asker's.
    """

    number: Count
    trial: Count
    attempt: Count
    path: Annotated[bytes, Meta(max_length=MAX_FILE_NAME_BYTES)]
    offset: Count
    limit: Annotated[int, Meta(ge=0, le=MAX_PIECE_BYTES)]
    most: Count = 0


FromHead = Union[Welcome, Ack, AttemptOrder, Ping, Shutdown, VersionAnswered, FileAsked]

#: Messages that the next one of their kind makes up for, and questions. All others are orders:
#: both ends count them, and a difference between the counts means that an order was lost.
UNCOUNTED = (Welcome, Ack, Ping, FileAsked)


class HeadFrame(msgspec.Struct, frozen=True, array_like=True):
    """A frame from the head, with its epoch, which fences an older head.

    ``messages`` are encoded each by :func:`encode_order`, so that their sizes are known before.
    ``orders`` counts the orders up to the end of this frame: an agent that has received fewer
    missed some (a connection that broke loses what was under way). Zero where nobody counts.
    ``life`` is the incarnation of the agent that the frame is for, since the agents before and
    after it have the same routing id; empty if it is for any.
    """

    epoch: Count
    messages: list[msgspec.Raw]
    orders: Count = 0
    life: Name = ""


class AgentFrame(msgspec.Struct, frozen=True, array_like=True):
    """A frame from an agent, with the epoch of the head that it is for."""

    epoch: Count
    messages: Annotated[list[FromAgent], Meta(max_length=MAX_AGENT_MESSAGES)]


_encoder = msgspec.msgpack.Encoder()
_from_trial: msgspec.msgpack.Decoder[list[FromTrial]] = msgspec.msgpack.Decoder(
    Annotated[list[FromTrial], Meta(min_length=1, max_length=MAX_TRIAL_MESSAGES)]
)
_from_agent = msgspec.msgpack.Decoder(AgentFrame)
_from_head = msgspec.msgpack.Decoder(HeadFrame)
_order: msgspec.msgpack.Decoder[Any] = msgspec.msgpack.Decoder(
    Union[(Welcome, Ack, Ping, Shutdown, VersionAnswered, FileAsked, *ORDER_LAYOUTS)]
)


def from_trial(payload: bytes) -> list[FromTrial]:
    """Messages of a trial or warm worker; raises :class:`WireError`."""
    if len(payload) > MAX_TRIAL_FRAME_BYTES:
        raise WireError(f"a frame of {len(payload):,} bytes; {MAX_TRIAL_FRAME_BYTES:,} are allowed")
    return body(payload, _from_trial)


def from_agent(payload: bytes) -> AgentFrame:
    """A frame of an agent; raises :class:`WireError`."""
    return body(payload, _from_agent)


def from_head(payload: bytes) -> HeadFrame:
    """A frame of a head; raises :class:`WireError`."""
    return body(payload, _from_head)


def encode_order(message: FromHead) -> msgspec.Raw:
    """Encode a message of a head as its frame carries it."""
    if isinstance(message, (StartAttempt, StopAttempt)):
        return msgspec.Raw(_encoder.encode(array_of(message)))
    return msgspec.Raw(_encoder.encode(message))


def decode_orders(frame: HeadFrame, worker: str) -> list[FromHead]:
    """The messages of a frame, for the worker that reads it; raises :class:`WireError`."""
    try:
        messages = [_order.decode(raw) for raw in frame.messages]
    except UNREADABLE as error:
        raise WireError(f"malformed message: {brief(error)}") from error
    of_attempts = ORDER_LAYOUTS
    return [order_of(m, worker) if isinstance(m, of_attempts) else m for m in messages]
