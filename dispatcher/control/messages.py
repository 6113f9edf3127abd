"""Messages between the command line (or a notebook) and a running head: one request, one reply."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from dispatcher.control.bounds import MAX_GRACE_S
from dispatcher.core.events import StopKind

#: Largest request (bytes). Parameters by hand and search spaces are far smaller; the engine's
#: thread reads them, and everybody waits while it does.
MAX_REQUEST_BYTES = 2 << 20


class ControlRequest(msgspec.Struct, array_like=True):
    """A request. ``verb`` names the method of the server, ``number`` pairs the reply with it."""

    number: int
    verb: str
    arguments: dict[str, Any] = {}


class Reply(msgspec.Struct, array_like=True):
    """A reply: ``data`` if all went well, else the parts of a :class:`UserError`."""

    number: int
    data: Any = None
    error: str = ""
    hint: str = ""


class NoArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``ping``, ``step_down`` and ``snapshot``: none."""


class StopArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``stop``; ``grace_s`` (seconds) replaces that of the experiment file."""

    kind: StopKind
    reason: str
    grace_s: Annotated[float, msgspec.Meta(ge=0, le=MAX_GRACE_S)] | None = None


class StopTrialArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``stop_trial``."""

    trial: int


class SubmitArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``submit``: the parameters of one trial."""

    parameters: dict[str, Any]


class UpdateArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``update``: a key of the experiment file and its new value."""

    key: str
    value: Any


class ImportArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``import``: results of another experiment."""

    rows: list[dict[str, Any]]


class ReadArguments(msgspec.Struct, forbid_unknown_fields=True):
    """Arguments of ``read_attempt``: a part of a file of an attempt that a worker runs or ran, or
    with ``most`` of the list (JSON) of its files below a path. Names are bytes, as files have
    them."""

    worker: str
    trial: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
    attempt: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
    path: Annotated[bytes, msgspec.Meta(max_length=4096)]
    offset: Annotated[int, msgspec.Meta(ge=0, lt=1 << 53)]
    limit: Annotated[int, msgspec.Meta(ge=0)]
    most: Annotated[int, msgspec.Meta(ge=0, lt=1 << 31)] = 0


class PieceRead(msgspec.Struct):
    """The data of the reply to ``read_attempt``.

    ``gone``: no such file, or of a list, no folder of that attempt. ``trouble``: why the agent
    could not be asked, which may pass; ``error``: why it cannot read there.
    """

    data: bytes = b""
    size: int = 0
    version: str = ""
    identity: str = ""
    gone: bool = False
    trouble: str = ""
    error: str = ""


encoder = msgspec.msgpack.Encoder()
request_decoder = msgspec.msgpack.Decoder(ControlRequest)
reply_decoder = msgspec.msgpack.Decoder(Reply)
