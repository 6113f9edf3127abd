"""Frames nobody should send: bytes at random, true frames that were damaged, and frames of the
right shape with values that no honest peer has."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable, Sequence
from typing import Any

import msgspec

_encode = msgspec.msgpack.Encoder().encode

#: Values at which fields break: beyond a column, a float, a length, a depth, an encoding.
WILD: Sequence[Any] = (
    0, -1, 1, 2, 3, 255, 1 << 31, (1 << 53) - 1, 1 << 53, (1 << 63) - 1, 1 << 63, (1 << 64) - 1,
    -(1 << 63), 0.0, -0.5, 1e308, float("inf"), float("-inf"), float("nan"), "", "0.5", "x", "\0",
    "../..", "/etc/passwd", "\x1b[2J", "‮", "é" * 300, "nan", "1e999", "[" * 3000, "9" * 5000,
    '{"default":1}', '{"default":{}}', "[]", None, True, False, [], {}, [[]], {"x": [1]}, b"",
    b"\xff\xfe", "a" * 70_000,
    msgspec.Raw(b"\x91" * 3000 + b"\x90"),  # deeper than the interpreter goes
    msgspec.Raw(b"\xdd\xff\xff\xff\xff"), msgspec.Raw(b"\xdb\xff\xff\xff\xff"),  # not that much
    msgspec.Raw(b"\xa2\xc3\x28"), msgspec.Raw(b"\xd9\x03\xed\xa0\x80"),  # no UTF-8
)  # fmt: skip


class Frames:
    """A seeded source of them.

    Args:
        seed: the same seed gives the same frames.
        true: makes true frames, to be damaged and imitated.
        prefix: bytes in front of a msgpack body, such as the version.
    """

    def __init__(
        self, seed: object, true: Callable[[random.Random], bytes], prefix: bytes = b"\x01"
    ) -> None:
        self._draw = random.Random(repr(seed))
        self._true = true
        self._prefix = prefix
        self._said: list[bytes] = []

    def next(self) -> bytes:
        """One more."""
        draw = self._draw
        kind = draw.choices(
            (self._noise, self._damaged, self._imitated, self._replayed, self._version),
            (1, 4, 8, 1, 1),
        )[0]
        frame = kind()
        self._said.append(frame)
        del self._said[:-64]
        return frame

    def _noise(self) -> bytes:
        return self._draw.randbytes(self._draw.choice((0, 1, 2, 7, 40, 900, 20_000)))

    def _damaged(self) -> bytes:
        draw, frame = self._draw, bytearray(self._true(self._draw))
        for _ in range(draw.choice((1, 1, 2, 5))):
            at = draw.randrange(len(frame) + 1)
            match draw.randrange(5):
                case 0 if at < len(frame):
                    frame[at] ^= 1 << draw.randrange(8)
                case 1:
                    del frame[at:]
                case 2:
                    frame[at:at] = draw.randbytes(draw.choice((1, 4, 9)))
                case 3:
                    frame[at : at + 5] = struct.pack(
                        ">BI", draw.choice(b"\xdd\xdb\xdf\xc6"), 1 << 31
                    )
                case _:
                    frame += frame[at:]
        return bytes(frame)

    def _imitated(self) -> bytes:
        """Right in shape, and wild in one or two of its values."""
        frame = self._true(self._draw)
        body = msgspec.msgpack.decode(frame[len(self._prefix) :])
        for _ in range(self._draw.choice((1, 1, 2))):
            body = self._wilder(body)
        return self._prefix + _encode(body)

    def _wilder(self, value: Any, depth: int = 0) -> Any:
        draw = self._draw
        if isinstance(value, list) and value and draw.random() < 0.97:
            at = draw.randrange(len(value))
            changed = list(value)
            match draw.randrange(20):
                case 0:
                    del changed[at]
                case 1:
                    changed.insert(at, draw.choice(WILD))
                case 2:
                    changed = changed * draw.choice((2, 50))
                case _:
                    changed[at] = self._wilder(value[at], depth + 1)
            return changed
        if isinstance(value, dict) and value:
            key = draw.choice(list(value))
            return {**value, key: self._wilder(value[key], depth + 1)}
        return draw.choice(WILD)

    def _replayed(self) -> bytes:
        return self._draw.choice(self._said) if self._said else self._noise()

    def _version(self) -> bytes:
        frame = self._true(self._draw)
        return bytes([self._draw.randrange(256)]) + frame[1:]
