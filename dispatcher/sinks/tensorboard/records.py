"""The frame of TensorBoard's files: records with a masked CRC-32C each.

A record is its length (8 bytes), the checksum of that, the data, and the checksum of the data. The
standard library has no checksum of this kind. Since it is linear, it is the sum (``^``) of what
each byte adds by its distance from the end, which numpy looks up for thousands of records at once,
at a fraction of the price of a loop in Python.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from functools import lru_cache
from typing import Any, Final

import numpy as np

#: The Castagnoli polynomial, reflected.
_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_ALL_ONES: Final = 0xFFFFFFFF

#: Bytes of records that are summed together; a table of that many kilobytes belongs to it. Others
#: are summed byte by byte, as are those without the four bytes that the sum begins with.
_LONGEST: Final = 4096
_SHORTEST: Final = 4

Columns = np.ndarray[Any, Any]


def _make_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE: Final = _make_table()


def crc_of(data: bytes) -> int:
    """Return the checksum of some bytes."""
    crc = _ALL_ONES
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    return crc ^ _ALL_ONES


def masked_crc(data: bytes) -> int:
    """Return the checksum of some bytes, masked as TensorBoard wants it."""
    crc = crc_of(data)
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL_ONES


def masked(crcs: Columns) -> Columns:
    """Return checksums (any shape, ``uint32``) masked as TensorBoard wants them."""
    return (crcs >> 15 | crcs << 17) + np.uint32(_MASK_DELTA)


class _Shares:
    """The share that a byte has in a checksum, by its distance from the end: made as far as it was
    needed."""

    def __init__(self) -> None:
        self._known = np.array([_TABLE], dtype=np.uint32)

    def upto(self, longest: int) -> Columns:
        """Return a table of at least so many distances, each of 256 shares."""
        known = len(self._known)
        if known < longest:
            grown = np.empty((max(longest, 2 * known), 256), dtype=np.uint32)
            grown[:known] = self._known
            for each in range(known, len(grown)):  # one zero byte more behind it
                before = grown[each - 1]
                grown[each] = self._known[0][before & 0xFF] ^ before >> 8
            self._known = grown
        return self._known


_shares: Final = _Shares()


def shares(distances: Sequence[int]) -> Columns:
    """Return the shares in a checksum of each byte at each of these distances from the end, as a
    table of 256 columns."""
    return _shares.upto(max(distances) + 1)[list(distances)]


def _masked_crcs(records: Sequence[bytes], lengths: Sequence[int]) -> list[int]:
    """The checksums of records that are neither too short nor too long."""
    content = np.frombuffer(b"".join(records), dtype=np.uint8).copy()
    many = np.array(lengths)
    ends = many.cumsum()
    starts = ends - many
    content[(starts[:, None] + np.arange(_SHORTEST)).ravel()] ^= 0xFF  # all ones, to begin with
    places = (ends - 1).repeat(many) - np.arange(len(content))
    table = _shares.upto(int(many.max())).ravel()
    crcs = np.bitwise_xor.reduceat(table.take(places << 8 | content), starts)
    summed: list[int] = masked(crcs ^ np.uint32(_ALL_ONES)).tolist()
    return summed


@lru_cache(maxsize=4096)
def head(length: int) -> bytes:
    """Return what comes before a record of so many bytes."""
    size = struct.pack("<Q", length)
    return size + struct.pack("<I", masked_crc(size))


def framed_each(records: Sequence[bytes]) -> list[bytes]:
    """Return each of some records in its frame."""
    lengths = list(map(len, records))
    usual = [n for n, length in enumerate(lengths) if _SHORTEST <= length <= _LONGEST]
    crcs = dict.fromkeys(range(len(records)), 0)
    if usual:
        summed = _masked_crcs([records[n] for n in usual], [lengths[n] for n in usual])
        crcs.update(zip(usual, summed, strict=True))
    if len(usual) < len(records):
        crcs.update((n, masked_crc(records[n])) for n in set(crcs).difference(usual))
    pack = struct.Struct("<I").pack
    return [
        head(length) + record + pack(crcs[n])
        for n, (record, length) in enumerate(zip(records, lengths, strict=True))
    ]


def framed(records: Sequence[bytes]) -> bytes:
    """Return the bytes of records in their order."""
    return b"".join(framed_each(records))
