"""For code of tests that runs in processes of its own: wait for the test, not for time to pass.

Trials and tuners of tests import it by its full name. It needs nothing but the standard library.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable

#: Seconds after which nobody is there any more who could let a process go on.
LIMIT_S = 600.0


def until(what: str | Callable[[], object]) -> None:
    """Wait until a file is there, or until a condition holds: the test sees to it."""
    give_up = time.monotonic() + LIMIT_S
    while not (os.path.exists(what) if isinstance(what, str) else what()):
        if time.monotonic() > give_up:
            raise SystemExit(f"nobody came to let this process go on: {what}")
        pace(0.01)


def for_ever() -> None:
    """Go on until somebody ends this process."""
    pace(LIMIT_S)


def pace(seconds: float = 0.02) -> None:
    """Take some time, so that what a test looks at is not over before it looks."""
    time.sleep(seconds)
