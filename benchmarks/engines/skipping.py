"""A clock that runs as time does while somebody works, and leaps when nobody does.

A head of trials of ten minutes mostly waits. With this clock below it, :func:`time.monotonic` and
:func:`time.time` are put forward by whoever knows that nothing happens before a moment: what the
head does at each moment, and how long that takes, stays as it is.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

_monotonic, _time = time.monotonic, time.time


class SkippingClock:
    """See above. Threads that wait on it are known by :meth:`waiter`."""

    def __init__(self) -> None:
        self._skipped = 0.0
        self._deadlines: dict[int, float] = {}  # of threads that wait, by number
        self._conditions: dict[int, threading.Condition] = {}
        self._threads: set[int] = set()  # that wait by this clock when they do not work

    def monotonic(self) -> float:
        """Return the moment of now, in place of :func:`time.monotonic`."""
        return _monotonic() + self._skipped

    def wall(self) -> float:
        """Return the moment of now, in place of :func:`time.time`."""
        return _time() + self._skipped

    def install(self) -> None:
        """Replace the clocks of this process. Before what keeps one of them is imported."""
        time.monotonic = self.monotonic
        time.time = self.wall

    def waiter(self, condition: threading.Condition) -> Callable[[float | None], bool]:
        """Return what to have in place of a condition's own ``wait``: its time-outs are moments of
        this clock."""
        own_wait = condition.wait

        def wait(timeout: float | None = None) -> bool:
            me = threading.get_ident()
            self._threads.add(me)
            until = float("inf") if timeout is None else self.monotonic() + timeout
            self._conditions[me] = condition
            self._deadlines[me] = until
            try:
                return own_wait(None if timeout is None else 600.0)
            finally:
                self._deadlines.pop(me, None)

        return wait

    def works(self) -> bool:
        """Whether a thread that waits by this clock does something else now."""
        return any(thread not in self._deadlines for thread in self._threads)

    def limit(self, until: float) -> float:
        """The moment up to which nobody has asked to be waked."""
        return min([until, *list(self._deadlines.values())])

    def skip_to(self, moment: float) -> None:
        """Put the clock forward, and wake who waits for a moment that is over."""
        self._skipped += max(0.0, moment - self.monotonic())
        now = self.monotonic()
        for thread, until in list(self._deadlines.items()):
            if until <= now:
                condition = self._conditions[thread]
                with condition:
                    if self._deadlines.pop(thread, None) is not None:
                        condition.notify_all()


CLOCK = SkippingClock()
