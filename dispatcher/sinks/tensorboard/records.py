"""The frame of TensorBoard's files: records with a masked CRC-32C each.

A record is its length (8 bytes), the checksum of that, the data, and the checksum of the data. The
standard library has no checksum of this kind; many records of one length are summed together, a
column at a time, which numpy does at a fraction of the price of a loop in Python.
"""

from __future__ import annotations

import struct
from collections import defaultdict
from collections.abc import Sequence
from functools import lru_cache
from typing import Final

import numpy as np

#: The Castagnoli polynomial, reflected.
_POLYNOMIAL: Final = 0x82F63B78
_MASK_DELTA: Final = 0xA282EAD8
_ALL_ONES: Final = 0xFFFFFFFF

#: Fewer records of one length are summed one by one.
_FEW: Final = 8


def _make_table() -> list[int]:
    table = []
    for byte in range(256):
        crc = byte
        for _ in range(8):
            crc = crc >> 1 ^ (_POLYNOMIAL if crc & 1 else 0)
        table.append(crc)
    return table


_TABLE: Final = _make_table()
_WIDE_TABLE: Final = np.array(_TABLE, dtype=np.uint32)


def masked_crc(data: bytes) -> int:
    """Return the checksum of some bytes, masked as TensorBoard wants it."""
    crc = _ALL_ONES
    table = _TABLE
    for byte in data:
        crc = table[(crc ^ byte) & 0xFF] ^ crc >> 8
    crc ^= _ALL_ONES
    return ((crc >> 15 | crc << 17) + _MASK_DELTA) & _ALL_ONES


def _masked_crcs(records: Sequence[bytes]) -> list[int]:
    """The checksums of records of one length."""
    rows = np.frombuffer(b"".join(records), dtype=np.uint8).reshape(len(records), -1)
    crc = np.full(len(records), _ALL_ONES, dtype=np.uint32)
    for column in np.ascontiguousarray(rows.T):
        crc = _WIDE_TABLE[(crc ^ column) & 0xFF] ^ crc >> 8
    crc ^= np.uint32(_ALL_ONES)
    rotated = crc >> 15 | crc << 17
    masked: list[int] = (rotated + np.uint32(_MASK_DELTA)).tolist()
    return masked


@lru_cache(maxsize=4096)
def _head(length: int) -> bytes:
    size = struct.pack("<Q", length)
    return size + struct.pack("<I", masked_crc(size))


def framed(records: Sequence[bytes]) -> bytes:
    """Return the bytes of records in their order."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, record in enumerate(records):
        by_length[len(record)].append(index)
    crcs = [0] * len(records)
    for length, indices in by_length.items():
        if len(indices) < _FEW or not length:
            for index in indices:
                crcs[index] = masked_crc(records[index])
        else:
            for index, crc in zip(
                indices, _masked_crcs([records[i] for i in indices]), strict=True
            ):
                crcs[index] = crc
    pack = struct.Struct("<I").pack
    return b"".join(
        part
        for record, crc in zip(records, crcs, strict=True)
        for part in (_head(len(record)), record, pack(crc))
    )
