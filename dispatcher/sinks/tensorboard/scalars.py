"""Numbers of one tag, thousands at once: the bytes that their records have one by one.

A search reports millions of them, and they differ in nothing but time, step and number. So one
record is made by hand, as :func:`~dispatcher.sinks.tensorboard.messages.scalar` makes it, and the
others are copies with these three filled in.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import chain, pairwise
from typing import Final, NamedTuple

import numpy as np

from dispatcher.sinks.stored_points import NumberColumns
from dispatcher.sinks.tensorboard.messages import LARGEST_FLOAT32, scalar
from dispatcher.sinks.tensorboard.records import Columns, crc_of, head, masked, shares

#: The least step that takes one byte more; step 0 takes none.
_WIDER: Final = np.array([1, *(1 << 7 * n for n in range(1, 9))])

#: Bytes of the head before a record, where the time lies in it, and where the step does.
_HEAD, _AT, _STEP = 12, 13, 22


class _Pattern(NamedTuple):
    """A framed record whose time, step and number are nothing yet.

    Attributes:
        record: the whole, ``uint8``.
        moving: where these three lie.
        shares: of each byte there in the checksum, one table of 256 after the other.
        offsets: of those tables.
        crc: the checksum before they are filled in.
    """

    record: Columns
    moving: Columns
    shares: Columns
    offsets: Columns
    crc: np.uint32


@lru_cache(maxsize=256)
def _pattern(tag: str, width: int) -> _Pattern:
    """Make the pattern of a tag, for steps that take so many bytes."""
    one = bytearray(scalar(tag, 0.0, int(_WIDER[width - 1]) if width else 0, 0.0))
    moving = [*range(1, 9), *range(10, 10 + width), *range(len(one) - 4, len(one))]
    for each in moving:
        one[each] = 0
    record = np.frombuffer(head(len(one)) + one + bytes(4), dtype=np.uint8)
    table = shares([len(one) - 1 - each for each in moving])
    places = np.array(moving)
    offsets = np.arange(len(moving)) * 256
    return _Pattern(record, places + _HEAD, table.ravel(), offsets, np.uint32(crc_of(bytes(one))))


def framed_scalars(tag: str, many: Sequence[NumberColumns]) -> list[bytes]:
    """Return numbers of a metric as framed records, for each run the bytes of its own.

    Args:
        tag: its name.
        many: the points of each run; TensorBoard keeps 32 bits of each number.
    """
    counts = np.array([len(each.seqs) for each in many], dtype=np.int64)
    total, chained = int(counts.sum()), chain.from_iterable
    times = np.fromiter(chained(each.ats for each in many), "<f8", total)
    steps = np.fromiter(chained(each.seqs for each in many), np.int64, total)
    numbers = np.fromiter(chained(each.numbers for each in many), "<f8", total)
    with np.errstate(over="ignore", invalid="ignore"):
        beyond = np.copysign(np.inf, numbers)
        short = np.where(abs(numbers) > LARGEST_FLOAT32, beyond, numbers).astype("<f4")
    widths = _WIDER.searchsorted(steps, side="right")
    runs = np.arange(len(many)).repeat(counts)
    found: list[list[bytes]] = [[] for _ in many]
    for width in np.unique(widths).tolist():  # within a run steps grow, and so do their widths
        which = np.flatnonzero(widths == width)
        pattern = _pattern(tag, width)
        block = _block(pattern, times[which], steps[which], short[which])
        ends = np.bincount(runs[which], minlength=len(many)).cumsum() * len(pattern.record)
        for parts, (begin, end) in zip(found, pairwise([0, *ends.tolist()]), strict=True):
            parts.append(block[begin:end])
    return [b"".join(parts) for parts in found]


def _block(pattern: _Pattern, times: Columns, steps: Columns, numbers: Columns) -> bytes:
    """The records of steps that take as many bytes each."""
    many = len(steps)
    rows = np.empty((many, len(pattern.record)), dtype=np.uint8)
    rows[:] = pattern.record
    rows[:, _AT : _AT + 8] = times.view(np.uint8).reshape(many, 8)
    width = len(pattern.moving) - 12
    for byte in range(width):
        more = 0x80 if byte + 1 < width else 0
        rows[:, _STEP + byte] = steps >> 7 * byte & 0x7F | more
    rows[:, -8:-4] = numbers.view(np.uint8).reshape(many, 4)
    added = pattern.shares.take(rows[:, pattern.moving] + pattern.offsets)
    crcs = masked(np.bitwise_xor.reduce(added, axis=1) ^ pattern.crc)
    rows[:, -4:] = crcs.astype("<u4").view(np.uint8).reshape(many, 4)
    return rows.tobytes()
