"""The messages in TensorBoard's files, written without protobuf: a handful of fields each.

Numbers of fields are those of ``event.proto`` and ``summary.proto`` of TensorFlow, and of
``api.proto`` of TensorBoard's HParams plugin.
"""

from __future__ import annotations

import math
import struct
from collections.abc import Mapping, Sequence
from enum import IntEnum
from functools import lru_cache
from typing import Final

Plain = float | str | bool

_VARINT, _FIXED64, _BYTES, _FIXED32 = 0, 1, 2, 5
_pack4: Final = struct.Struct("<f").pack
_pack8: Final = struct.Struct("<d").pack

#: Numbers beyond it are infinite for TensorBoard, which keeps 32 bits.
LARGEST_FLOAT32: Final = 3.4028234663852886e38


class DataType(IntEnum):
    """The types of a column of HParams."""

    STRING = 1
    BOOL = 2
    FLOAT64 = 3


class SessionStatus(IntEnum):
    """How a run ended, for HParams."""

    UNKNOWN = 0
    SUCCESS = 1
    FAILURE = 2


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    parts = bytearray()
    while number >= 0x80:
        parts.append(number & 0x7F | 0x80)
        number >>= 7
    parts.append(number)
    return bytes(parts)


def _key(field: int, wire: int) -> bytes:
    return _varint(field << 3 | wire)


def _number(field: int, value: int) -> bytes:
    return _key(field, _VARINT) + _varint(value)


def _double(field: int, value: float) -> bytes:
    return _key(field, _FIXED64) + struct.pack("<d", value)


def _bytes(field: int, value: bytes) -> bytes:
    return _key(field, _BYTES) + _varint(len(value)) + value


def _text(field: int, value: str) -> bytes:
    return _bytes(field, value.encode("utf-8", "replace"))


def _event(at: float, step: int, what: bytes) -> bytes:
    return _double(1, at) + (_number(2, step) if step else b"") + what


def file_version(at: float) -> bytes:
    """The first event of a file."""
    return _event(at, 0, _text(3, "brain.Event:2"))


def session_start(at: float) -> bytes:
    """A run begins again: a reader that has seen points of an earlier attempt forgets them."""
    return _event(at, 0, _bytes(7, _number(1, 1)))


@lru_cache(maxsize=1024)
def _scalar_parts(tag: str) -> tuple[bytes, bytes]:
    """Encode what comes before a scalar's value, and the key of its time, for one tag."""
    value = _text(1, tag) + _key(2, _FIXED32)
    length = len(value) + 4
    summary = _key(1, _BYTES) + _varint(length) + value
    return _key(5, _BYTES) + _varint(len(summary) + 4) + summary, _key(1, _FIXED64)


def scalar(tag: str, at: float, step: int, value: float) -> bytes:
    """A number of a metric; TensorBoard keeps 32 bits of it.

    Args:
        tag: its name.
        at: seconds since the epoch.
        step: at least 0.
        value: any float.
    """
    summary, time_key = _scalar_parts(tag)
    if not -LARGEST_FLOAT32 <= value <= LARGEST_FLOAT32 and value == value:
        value = math.copysign(math.inf, value)
    if step:
        return b"%b%b\x10%b%b%b" % (time_key, _pack8(at), _varint(step), summary, _pack4(value))
    return b"%b%b%b%b" % (time_key, _pack8(at), summary, _pack4(value))


def _hparams(at: float, tag: str, content: bytes) -> bytes:
    plugin = _bytes(1, _text(1, "hparams") + _bytes(2, content))
    tensor = _number(1, 1) + _bytes(2, b"")  # a float without a value: the content is all there is
    value = _text(1, tag) + _bytes(9, plugin) + _bytes(8, tensor)
    return _event(at, 0, _bytes(5, _bytes(1, value)))


def _value(value: Plain) -> bytes:
    """A ``google.protobuf.Value``."""
    if isinstance(value, bool):
        return _number(4, int(value))
    if isinstance(value, str):
        return _text(3, value)
    return _double(2, value)


@lru_cache(maxsize=1024)
def _float_parameter(name: str) -> bytes:
    """Encode what comes before the number of a parameter."""
    value = _double(2, 0.0)
    return _bytes(1, _text(1, name) + _bytes(2, value))[:-8]


def hparams_start(at: float, group: str, parameters: Mapping[str, Plain]) -> bytes:
    """The parameters of a run.

    Args:
        at: when it began (seconds since the epoch).
        group: the name of its row.
        parameters: plain values by their columns.
    """
    start = b"".join(
        _float_parameter(name) + _pack8(value)
        if type(value) is float
        else _bytes(1, _text(1, name) + _bytes(2, _value(value)))
        for name, value in parameters.items()
    )
    start += _text(4, group) + _double(5, at)
    return _hparams(at, "_hparams_/session_start_info", _bytes(3, start))


def hparams_end(at: float, status: SessionStatus) -> bytes:
    """The end of a run."""
    end = (_number(1, status) if status else b"") + _double(2, at)
    return _hparams(at, "_hparams_/session_end_info", _bytes(4, end))


def column(
    name: str, kind: DataType, domain: Sequence[Plain] | tuple[float, float] | None
) -> bytes:
    """A column of HParams.

    Args:
        name: of the parameter.
        kind: of its values.
        domain: a list of values, a tuple of two ends, or None.
    """
    info = _text(1, name) + _number(4, kind)
    if isinstance(domain, tuple):
        info += _bytes(6, _double(1, domain[0]) + _double(2, domain[1]))
    elif domain is not None:
        info += _bytes(5, b"".join(_bytes(1, _value(value)) for value in domain))
    return info


def hparams_experiment(
    at: float, description: str, columns: Sequence[bytes], metrics: Sequence[str]
) -> bytes:
    """The experiment.

    Args:
        at: when it began (seconds since the epoch).
        description: of it, any text.
        columns: as :func:`column` gives them.
        metrics: tags of results that have a column.
    """
    experiment = _text(1, description) + _double(3, at)
    experiment += b"".join(_bytes(4, each) for each in columns)
    experiment += b"".join(_bytes(5, _bytes(1, _text(2, tag))) for tag in metrics)
    return _hparams(at, "_hparams_/experiment", _bytes(2, experiment))
