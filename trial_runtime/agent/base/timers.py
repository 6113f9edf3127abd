"""Calls planned for a time (monotonic seconds), in the agent's one thread."""

from __future__ import annotations

import heapq
from collections.abc import Callable
from itertools import count


class Timer:
    """One planned call; ``cancel`` makes it nothing."""

    __slots__ = ("call",)

    def __init__(self, call: Callable[[], None]) -> None:
        self.call: Callable[[], None] | None = call

    def cancel(self) -> None:
        """Do not call; harmless afterwards."""
        self.call = None


class Timers:
    """Planned calls in the order of their times, first planned first among equals."""

    def __init__(self) -> None:
        self._heap: list[tuple[float, int, Timer]] = []
        self._ties = count()

    def at(self, when: float, call: Callable[[], None]) -> Timer:
        """Plan a call for ``when`` (monotonic seconds)."""
        timer = Timer(call)
        heapq.heappush(self._heap, (when, next(self._ties), timer))
        return timer

    def next(self) -> float | None:
        """The time of the next call; None if none is planned."""
        heap = self._heap
        while heap and heap[0][2].call is None:
            heapq.heappop(heap)
        return heap[0][0] if heap else None

    def fire(self, now: float) -> None:
        """Make all calls that are due."""
        heap = self._heap
        while heap and (heap[0][0] <= now or heap[0][2].call is None):
            timer = heapq.heappop(heap)[2]
            call, timer.call = timer.call, None
            if call is not None:
                call()
