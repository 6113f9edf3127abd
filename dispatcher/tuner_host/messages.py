"""Messages between head and tuner host besides events and actions.

One frame holds several messages, each a pair of class name and fields, as in
:mod:`dispatcher.codec`, which encodes the events and actions among them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from typing import Any, get_args

import msgspec

from dispatcher import codec
from dispatcher.core.actions import TunerAction
from dispatcher.core.events import Origin, TunerHostLost, reported_by
from dispatcher.errors import ProtocolError


class Hello(msgspec.Struct, frozen=True):
    """Opens the channel: first message of a process, before the tuner is built."""

    pid: int


class TunerBroken(msgspec.Struct, frozen=True):
    """Reports that the tuner cannot be built; the process ends after this."""

    reason: str


class Note(msgspec.Struct, frozen=True):
    """Holds a text that a user should read, such as running out of threads."""

    text: str


class ShownWanted(msgspec.Struct, frozen=True):
    """Asks for the metrics of before this process, for an assessor or an advisor."""


class Shutdown(msgspec.Struct, frozen=True):
    """Orders the end within ``deadline_s``: cancel our waits, call ``_on_exit``, exit."""

    deadline_s: float


UPWARD = (Hello, TunerBroken, Note, ShownWanted)
DOWNWARD = (Shutdown,)

#: Frames stay far below the channel's limit, so that one of them is never refused.
FRAME_BYTES = 1 << 20

_encoder = msgspec.msgpack.Encoder()
_pairs = msgspec.msgpack.Decoder(list[tuple[str, msgspec.Raw]])
_own = {cls.__name__: msgspec.msgpack.Decoder(cls) for cls in (*UPWARD, *DOWNWARD)}
#: The process cannot report its own loss: its driver does.
_from_host = {c.__name__ for c in (*(reported_by(Origin.TUNER) - {TunerHostLost}), *UPWARD)}
_from_head = {cls.__name__ for cls in (*get_args(TunerAction), *DOWNWARD)}


def encode(values: Iterable[object]) -> list[bytes]:
    """Encode the values in order, in as few frames of bounded size as possible."""
    frames: list[bytes] = []
    pairs: list[msgspec.Raw] = []
    size = 0
    for value in values:
        pair = _pair(value)
        if pairs and size + len(pair) > FRAME_BYTES:
            frames.append(_encoder.encode(pairs))
            pairs, size = [], 0
        pairs.append(msgspec.Raw(pair))
        size += len(pair)
    if pairs:
        frames.append(_encoder.encode(pairs))
    return frames


def _pair(value: object) -> bytes:
    name = type(value).__name__
    try:
        return _encoder.encode((name, value))
    except UnicodeEncodeError:
        # Authors' errors quote anything, lone surrogates (file names of old) included.
        fields = {key: _mended(entry) for key, entry in _fields(value)}
        return _encoder.encode((name, fields))


def _fields(value: object) -> list[tuple[str, Any]]:
    names = getattr(value, "__struct_fields__", None) or [
        field.name
        for field in dataclasses.fields(value)  # type: ignore[arg-type]
    ]
    return [(name, getattr(value, name)) for name in names]


def _mended(entry: Any) -> Any:
    if isinstance(entry, str):
        return entry.encode(errors="backslashreplace").decode()
    if isinstance(entry, dict):
        return {key: _mended(inner) for key, inner in entry.items()}
    return entry


def decode_from_host(payload: bytes) -> list[Any]:
    """Decode a host's events and messages. Raises ``ProtocolError`` for others."""
    return _decode(payload, _from_host)


def decode_from_head(payload: bytes) -> list[Any]:
    """Decode a head's actions and messages. Raises ``ProtocolError`` for others."""
    return _decode(payload, _from_head)


def _decode(payload: bytes, legal: set[str]) -> list[Any]:
    try:
        pairs = _pairs.decode(payload)
    except codec.UNREADABLE as error:
        raise ProtocolError(f"malformed message: {error}") from error
    values = []
    for name, raw in pairs:
        if name not in legal:
            raise ProtocolError(f"{name!r} may not be sent on the tuner host's channel")
        values.append(_decode_own(name, raw) if name in _own else codec.decode(name, bytes(raw)))
    return values


def _decode_own(name: str, raw: msgspec.Raw) -> object:
    try:
        return _own[name].decode(raw)
    except codec.UNREADABLE as error:
        raise ProtocolError(f"malformed {name}: {error}") from error
