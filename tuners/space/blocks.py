"""One change of a list of blocks, as evolution and PBT make it.

Of the changes that are possible, and of the places where one is, each is as likely as any other, as
in Elsken et al. (2018), section 4: one block more, one less, one that is changed itself, or two
neighbours that are swapped.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import TYPE_CHECKING, Any

from tuners.space.model import BlockList

if TYPE_CHECKING:
    import numpy as np


def changed(
    dimension: BlockList,
    old: list[Any],
    rng: np.random.Generator,
    fresh: Callable[[], Any],
    other: Callable[[Any], Any],
) -> list[Any]:
    """Returns a copy of a list of blocks with one change; the list itself where none is possible.

    Args:
        dimension: what the list may be.
        old: blocks of it; not changed.
        rng: the only source of randomness.
        fresh: draws a block.
        other: returns a changed copy of a block.
    """

    def insert(blocks: list[Any]) -> None:
        if len(blocks) < dimension.high:
            blocks.insert(int(rng.integers(len(blocks) + 1)), fresh())

    def remove(blocks: list[Any]) -> None:
        if len(blocks) > dimension.low:
            del blocks[int(rng.integers(len(blocks)))]

    def change(blocks: list[Any]) -> None:
        if blocks:
            at = int(rng.integers(len(blocks)))
            blocks[at] = other(blocks[at])

    def swap(blocks: list[Any]) -> None:
        unlike = [at for at, (one, next_) in enumerate(pairwise(blocks)) if one != next_]
        if unlike:
            at = unlike[int(rng.integers(len(unlike)))]
            blocks[at], blocks[at + 1] = blocks[at + 1], blocks[at]

    changes = (insert, remove, change, swap)
    for number in rng.permutation(len(changes)):
        blocks = list(old)
        changes[number](blocks)
        if blocks != old:
            return blocks
    return old
