"""Threads that a tuner starts by itself: how they end is told, where Python would only print it."""

from __future__ import annotations

import threading
from collections.abc import Callable

from dispatcher.tuner_host.tracebacks import describe

#: Ours, whose tops catch all that may happen.
_OURS = "tuner-"

#: So many are told; a tuner that starts one for each request fails in all of them alike.
TOLD = 3


def tell_of_own_threads(note: Callable[[str], None]) -> None:
    """Have every thread of the author's that ends by an exception noted, the first few."""
    told = 0
    before = threading.excepthook

    def ended(args: threading.ExceptHookArgs) -> None:
        nonlocal told
        name = args.thread.name if args.thread is not None else ""
        if args.exc_value is None or name.startswith(_OURS) or told >= TOLD:
            before(args)
            return
        told += 1
        text = describe(args.exc_value)
        last = text.rpartition("\n")[2]
        note(f"a thread that the tuner started by itself ({name}) ended by {last}\n{text}")

    threading.excepthook = ended
