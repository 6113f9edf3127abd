"""How long the fuzz tests go on: a bounded share of ``make test``, or what ``make fuzz`` asks."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

#: Tests that share the seconds that somebody asked for.
SHARERS = 3
SECONDS = float(os.environ.get("FUZZ_SECONDS", "0")) / SHARERS
FIRST_SEED = int(os.environ.get("FUZZ_FIRST_SEED", "0"))


def seeds(usual: int) -> Iterator[int]:
    """``usual`` seeds, or as many as fit into the seconds that were asked for."""
    until = time.monotonic() + SECONDS
    number = 0
    while number < usual or time.monotonic() < until:
        yield FIRST_SEED + number
        number += 1
