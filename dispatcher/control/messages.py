"""Messages between the command line (or a notebook) and a running head: one request, one reply."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec

from dispatcher.core.events import StopKind

#: Longest grace that may be asked for (seconds): a day. Infinity would be no stop at all.
MAX_GRACE_S = 86_400.0

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


encoder = msgspec.msgpack.Encoder()
request_decoder = msgspec.msgpack.Decoder(ControlRequest)
reply_decoder = msgspec.msgpack.Decoder(Reply)
