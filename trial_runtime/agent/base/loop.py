"""The times, descriptors and signals that the agent's one thread waits for.

Descriptors beside its ZeroMQ sockets are in one selector whose own descriptor is polled with the
sockets, so a turn of the loop costs the same with two trials and with two hundred.
"""

from __future__ import annotations

import heapq
import os
import selectors
import signal
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
    """Calls planned for a time (monotonic seconds), first planned first among equals."""

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


class Watch:
    """Calls back when a descriptor is readable (or at its end)."""

    def __init__(self) -> None:
        self._selector = selectors.DefaultSelector()
        self._signals: dict[int, Callable[[], None]] = {}
        self._signal_pipe = -1

    def fileno(self) -> int:
        """Readable when something is to be done."""
        return self._selector.fileno()

    def add(self, descriptor: int, call: Callable[[], None]) -> None:
        """Call whenever ``descriptor`` is readable."""
        self._selector.register(descriptor, selectors.EVENT_READ, call)

    def remove(self, descriptor: int) -> None:
        """Stop watching a descriptor; call it before the descriptor is closed."""
        try:
            self._selector.unregister(descriptor)
        except KeyError:
            pass

    def dispatch(self) -> None:
        """Make the calls that are due, each descriptor's at most once."""
        for key, _ in self._selector.select(0):
            # A call before this one may have removed it.
            if key.fd in self._selector.get_map():
                key.data()

    def on_signal(self, number: int, call: Callable[[], None]) -> None:
        """Call from the loop, not from a signal handler, when a signal has arrived."""
        if self._signal_pipe < 0:
            self._signal_pipe, write_end = os.pipe()
            os.set_blocking(self._signal_pipe, False)
            os.set_blocking(write_end, False)
            signal.set_wakeup_fd(write_end, warn_on_full_buffer=False)
            self.add(self._signal_pipe, self._signals_arrived)
        self._signals[number] = call
        signal.signal(number, lambda _number, _frame: None)

    def close(self) -> None:
        """Stop watching all descriptors and signals."""
        signal.set_wakeup_fd(-1)
        self._selector.close()

    def _signals_arrived(self) -> None:
        for number in set(os.read(self._signal_pipe, 256)):
            if number in self._signals:
                self._signals[number]()
