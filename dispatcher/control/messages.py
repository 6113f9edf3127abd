"""The wire between the command line (or a notebook) and a running head: one request, one reply."""

from __future__ import annotations

from typing import Any

import msgspec


class Request(msgspec.Struct, array_like=True):
    """``verb`` names what the desk does; ``number`` pairs the reply with it."""

    number: int
    verb: str
    arguments: dict[str, Any] = {}


class Reply(msgspec.Struct, array_like=True):
    """``data`` if all went well, else the three parts of a :class:`UserError`."""

    number: int
    data: Any = None
    error: str = ""
    hint: str = ""


encoder = msgspec.msgpack.Encoder()
request_decoder = msgspec.msgpack.Decoder(Request)
reply_decoder = msgspec.msgpack.Decoder(Reply)
