"""A bound on how often one service is asked: bursts have brought such services down."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable


class TokenBucket:
    """Lets so many requests through at once, and so many in a second after them. Threads: any.

    Args:
        burst: how many go at once.
        per_s: how many come back in a second.
        clock: monotonic seconds.
        sleep: lets time pass (seconds).
    """

    def __init__(
        self,
        burst: float = 20.0,
        per_s: float = 5.0,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._burst, self._per_s = burst, per_s
        self._clock, self._sleep = clock, sleep
        self._lock = threading.Lock()
        self._left, self._at = burst, clock()

    def take(self) -> None:
        """Take a token, and wait for it where there is none: as long as those before us do."""
        with self._lock:
            now = self._clock()
            self._left = min(self._burst, self._left + (now - self._at) * self._per_s)
            self._at = now
            self._left -= 1.0
            pause_s = max(0.0, -self._left / self._per_s)
        if pause_s:
            self._sleep(pause_s)
