"""The garbage collector of a head's own process.

A head keeps hundreds of thousands of records that live as long as it does and form no cycles.
CPython's collector walks all of them again and again: pauses of 30 to 90 ms with a thousand
waiting requests, in which no child is let go.
"""

from __future__ import annotations

import gc
from typing import Final

#: Objects made beyond those freed before the young are looked at, and how many such looks lie
#: between those at the older ones. The defaults are 700, 10 and 10.
THRESHOLDS: Final = (20_000, 20, 50)


def walk_less() -> None:
    """Make the collector run less often. Only in processes that are ours from beginning to end: a
    notebook's collector is its own."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*THRESHOLDS)
