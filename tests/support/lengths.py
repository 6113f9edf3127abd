"""How much of what could go on for ever is done: at each landing, or with ``EXTENDED=1``."""

from __future__ import annotations

import os

#: Whether all is done that the tests can do (``make test EXTENDED=1``).
EXTENDED = os.environ.get("BEQUEATH_TESTS") == "all"


def some_of(number: int) -> int:
    """Return how many of so many examples are tried: all of them, or a third and at least one."""
    return number if EXTENDED else max(1, number // 3)
