"""For how long a peer has been silent: what leases are judged by.

A process that was stopped, swapped out or starved for a minute has heard nothing for a minute,
whatever its peers said: their words lie unread in a socket. So only time in which we listened
counts, and none that we slept through. The clock is monotonic: steps of the wall clock end no
lease.
"""

from __future__ import annotations

import time
from collections.abc import Callable


class Silence:
    """Seconds since a peer's last word, as far as we listened.

    Args:
        step_s: what counts at most between two calls of :meth:`look`, which should come
            twice as often.
        clock: monotonic seconds.
    """

    def __init__(self, step_s: float, clock: Callable[[], float] = time.monotonic) -> None:
        self._step_s = step_s
        self._clock = clock
        self._silent_s = 0.0
        self._looked = clock()

    def heard(self) -> None:
        """The peer has spoken."""
        self._silent_s = 0.0
        self._looked = self._clock()

    def look(self) -> float:
        """We have listened up to now; returns :attr:`seconds`."""
        now = self._clock()
        self._silent_s += min(now - self._looked, self._step_s)
        self._looked = now
        return self._silent_s

    @property
    def seconds(self) -> float:
        """How long the peer has been silent."""
        return self._silent_s + min(self._clock() - self._looked, self._step_s)
