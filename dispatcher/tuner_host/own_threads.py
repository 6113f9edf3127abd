"""Looks after threads that a tuner starts by itself: whether there are any, and how they end."""

from __future__ import annotations

import threading
from collections.abc import Callable, Collection

from dispatcher.tuner_host.tracebacks import describe

#: Our own threads, whose outermost functions catch every exception.
_OURS = "tuner-"

#: Most failed threads that are noted; a tuner that starts one for each request fails in all alike.
MOST_NOTED = 3


def note_own_threads(note: Callable[[str], None]) -> None:
    """Note the first few of the author's threads that end by an exception."""
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
    """Whether the tuner has started threads by itself that still run.

    Their purpose cannot be seen: one that stands still may wait for a reply from another machine,
    or for its time.

    Args:
        bystanders: threads that were here before the tuner.
    """
    here = threading.current_thread()
    return any(
        thread is not here and thread not in bystanders and not thread.name.startswith(_OURS)
        for thread in threading.enumerate()
    )
