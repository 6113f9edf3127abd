"""Single bits that flip on a disk, by a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator


def flips(good: bytes, count: int, seed: int) -> Iterator[tuple[int, bytes]]:
    """Copies with one bit changed each, and where (the byte)."""
    dice = random.Random(seed)
    for _ in range(count):
        bit = dice.randrange(len(good) * 8)
        bad = bytearray(good)
        bad[bit // 8] ^= 1 << bit % 8
        yield bit // 8, bytes(bad)
