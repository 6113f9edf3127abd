"""Checksums of what is believed without asking: journal rows, bases, tuner states.

SQLite finds a page that is torn, not a bit that has flipped within a value. CRC-32 does, for
a third of a microsecond a row; it is no defence against a forger.
"""

from __future__ import annotations

import struct
from typing import Final
from zlib import crc32

_NUMBERS: Final = struct.Struct("<qd")


def crc_of(number: int, at: float, *contents: bytes) -> int:
    """Over a row's number, its time and its contents."""
    crc = crc32(_NUMBERS.pack(number, at))
    for content in contents:
        crc = crc32(content, crc)
    return crc
