"""Threads that a tuner starts by itself: whether there are any, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from dispatcher.tuner_host.tracebacks import describe

#: Ours, whose tops catch all that may happen.
_OURS = "tuner-"

#: So many are told; a tuner that starts one for each request fails in all of them alike.
MOST_NOTED = 3


def note_own_threads(note: Callable[[str], None]) -> None:
    """Have every thread of the author's that ends by an exception noted, the first few."""
    noted = 0
    before = threading.excepthook

    def ended(args: threading.ExceptHookArgs) -> None:
        nonlocal noted
        name = args.thread.name if args.thread is not None else ""
        if args.exc_value is None or name.startswith(_OURS) or noted >= MOST_NOTED:
            before(args)
            return
        noted += 1
        text = describe(args.exc_value)
        last = text.rpartition("\n")[2]
        note(f"a thread that the tuner started by itself ({name}) ended by {last}\n{text}")

    threading.excepthook = ended


def has_own_threads(bystanders: Collection[threading.Thread] = ()) -> bool:
    """Whether threads are here that the tuner has started by itself. What they are at cannot be
    seen: one that stands still may wait for an answer from elsewhere, or for its time.

    Args:
        bystanders: threads that were here before the tuner.
    """
    here = threading.current_thread()
    return any(
        thread is not here and thread not in bystanders and not thread.name.startswith(_OURS)
        for thread in threading.enumerate()
    )
