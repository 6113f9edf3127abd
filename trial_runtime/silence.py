"""The silence of a peer, by which leases are judged.

A process that was stopped, swapped out or starved for a minute has read nothing for a minute,
whatever its peers sent: their messages lie unread in a socket. So only time in which this process
listened counts, and none that it slept through. The clock is monotonic: steps of the wall clock end
no lease.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Silence:
    """Seconds since a peer's last message, as far as this process listened.

    Args:
        step_s: the most that counts between two calls of :meth:`look`, which should come
            twice as often.
        clock: monotonic seconds.
    """

    def __init__(self, step_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._step_s = step_s
        self._clock = clock
        self._silent_s = 0.0
        self._looked = clock()

    def heard(self) -> None:
        """Note that the peer has sent something."""
        self._silent_s = 0.0
        self._looked = self._clock()

    def look(self) -> float:
        """Note that this process has listened up to now; returns :attr:`seconds`."""
        now = self._clock()
        self._silent_s += min(now - self._looked, self._step_s)
        self._looked = now
        return self._silent_s

    @property
    def seconds(self) -> float:
        """The peer's silence up to now."""
        return self._silent_s + min(self._clock() - self._looked, self._step_s)
