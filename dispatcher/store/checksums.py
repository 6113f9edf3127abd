"""Checksums of what a replay takes on trust: journal rows, bases, tuner states.

SQLite finds a page that is torn, not a bit that has flipped within a value. CRC-32 does, for
a third of a microsecond a row; it is no defence against a forger.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

_NUMBERS: Final = struct.Struct("<qd")


def crc_of(number: int, at: float, *contents: bytes) -> int:
    """Compute the checksum of a row's number, its time and its contents."""
    crc = crc32(_NUMBERS.pack(number, at))
    for content in contents:
        crc = crc32(content, crc)
    return crc


def fits(crc: int | None, number: int, at: float, *contents: str | bytes) -> bool:
    """Whether a row is as it was written.

    Takes what a damaged row may hold in place of a number or a text.

    Args:
        crc: as stored; None for rows of schema 0001, which have no checksum and fit if they are
            texts or bytes.
        number: the row's.
        at: the row's moment, in seconds since the epoch.
        contents: the row's texts and bytes, in the order of :func:`crc_of`.
    """
    if crc is None:
        return all(isinstance(each, str | bytes) for each in contents)
    try:
        raw = (each.encode() if isinstance(each, str) else each for each in contents)
        return crc == crc_of(number, at, *raw)
    except (TypeError, struct.error):
        return False


def state_fits(crc: int | None, number: int, state: str | bytes) -> bool:
    """Whether a tuner's state is as it was written: a text, with its checksum. One flipped bit of
    its column's type makes bytes of it that have the same one.

    Args:
        crc: see :func:`fits`.
        number: the row's.
        state: what the row holds.
    """
    return isinstance(state, str) and fits(crc, number, 0.0, state)
