"""Several events as one message: what the model of a tuner host sends in one step."""

from __future__ import annotations

from typing import Any

import msgspec

from dispatcher import codec

_decoder = msgspec.msgpack.Decoder(list[tuple[str, msgspec.Raw]])


def encode_batch(values: list[object]) -> bytes:
    """Several values as one message: a list of [name, fields]."""
    return msgspec.msgpack.encode([(type(value).__name__, value) for value in values])


def decode_batch(payload: bytes) -> list[Any]:
    """The inverse of :func:`encode_batch`."""
    return [codec.decode(name, bytes(raw)) for name, raw in _decoder.decode(payload)]
