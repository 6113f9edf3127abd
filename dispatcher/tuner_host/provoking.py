"""Makes races happen: a request's thread yields between the author's lines.

For rehearsals only. Requests are short, and two of them seldom overlap by themselves; here each
sleeps for a moment before some of its lines, so that they do.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from types import FrameType
from typing import Any

from dispatcher.tuner_host.tracebacks import is_ours

#: Share of lines before which a thread yields, for how long (seconds), and how often at most in
#: one request: the sum stays far below the time that would count as a wait.
_SHARE = 0.25
_PAUSE_S = 0.0002
_MOST = 24


def provoked(run: Callable[[], Any], seed: int) -> Any:
    """Call ``run`` in this thread, yielding now and then; return its value."""
    dice = random.Random(seed)  # noqa: S311 - the same lines each time
    left = _MOST

    def trace(frame: FrameType, event: str, _: Any) -> Any:
        nonlocal left
        name = frame.f_code.co_filename
        if left <= 0 or is_ours(name) or not _is_authors(name):
            return None
        if event == "line" and dice.random() < _SHARE:
            left -= 1
            time.sleep(_PAUSE_S)
        return trace

    before = sys.gettrace()
    sys.settrace(trace)
    try:
        return run()
    finally:
        sys.settrace(before)


def _is_authors(filename: str) -> bool:
    library = "site-packages" in filename or "/lib/python" in filename
    return not library and not filename.startswith("<")
