"""Lets released requests run author's code one after another, and pauses them for snapshots.

A gate may release ten thousand threads at once. Many runnable threads starve everything else
of the interpreter (6–10 s for 10,000, measured), so they go one after another: each passes the
token on when its request returns, blocks again or raises. One that does neither within
``HOLD_S`` (it sleeps, or computes) loses the token to the next and simply goes on.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable
from typing import Protocol

from dispatcher.tuner_host.request import Request

#: How long a request may keep others from being woken.
HOLD_S = 0.005


class Waking(Protocol):
    """A wait that is over, with its request."""

    request: Request

    def wake(self) -> bool:
        """Let its thread go; false if it has gone by itself (timeout)."""
        ...


class RunToken:
    """Counts the request threads in author's code and passes the token on.

    The lock is held for a few steps at a time, never while author's code runs or a thread
    waits; it is a lock and no queue since each of many threads passes the token itself,
    without a hop through another.
    """

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._lock = threading.Lock()
        self._ready: deque[Waking] = deque()
        self._holder: Waking | None = None
        self._held_since = 0.0
        self._running: dict[Request, None] = {}
        self._paused = False
        self.entries = 0  # how often a request began, or began again, to run author's code
        self._open = threading.Event()  # set unless paused
        self._open.set()

    # ---- request threads -----------------------------------------------------------------

    def may_enter(self, request: Request) -> bool:
        """Count a new request in; false while paused (ask again after :meth:`resume`)."""
        with self._lock:
            if self._paused:
                return False
            self._count_in(request)
            return True

    def block(self, request: Request) -> None:
        """Count out a request that is about to wait, and pass the token on if it holds it."""
        with self._lock:
            self._running.pop(request, None)
            self._pass_on(request)

    def go_on(self, request: Request) -> None:
        """Count a request in whose wait ended by itself, without the token. Blocks while paused."""
        while True:
            self._open.wait()
            with self._lock:
                if not self._paused:
                    self._count_in(request)
                    return

    def leave(self, request: Request) -> None:
        """Count out a request that returned or raised, once its answer was sent."""
        self.block(request)

    # ---- the gate ------------------------------------------------------------------------

    def let_go(self, waits: list[Waking]) -> None:
        """Put finished waits in line."""
        with self._lock:
            self._ready.extend(waits)
            if self._holder is None:
                self._next()

    # ---- the I/O thread ------------------------------------------------------------------

    def overdue(self) -> float | None:
        """Pass the token on if it was held too long; seconds until then, None if none waits."""
        with self._lock:
            if self._holder is None or not self._ready:
                return None
            left = self._held_since + HOLD_S - self._clock()
            if left > 0:
                return left
            self._next()
            return HOLD_S if self._ready else None

    def crowded(self) -> bool:
        """Whether released requests wait for the token."""
        return bool(self._ready)

    def running(self) -> list[Request]:
        """The requests in author's code, oldest entry first."""
        with self._lock:
            return list(self._running)

    def is_running(self) -> bool:
        """Whether any request is in author's code."""
        return bool(self._running)

    # ---- snapshots -----------------------------------------------------------------------

    def try_pause(self) -> bool:
        """If no request is in author's code, let none in until :meth:`resume`."""
        with self._lock:
            if self._running or self._paused:
                return False
            self._paused = True
            self._open.clear()
            return True

    def resume(self) -> None:
        """End a pause."""
        with self._lock:
            self._paused = False
            self._open.set()
            if self._holder is None:
                self._next()

    # ---- with the lock held --------------------------------------------------------------

    def _count_in(self, request: Request) -> None:
        request.since = self._clock()
        request.ran_ns = -1
        self.entries += 1
        self._running[request] = None

    def _pass_on(self, request: Request) -> None:
        if self._holder is not None and request.turn is self._holder:
            self._holder = None
            self._next()

    def _next(self) -> None:
        self._holder = None
        while self._ready and not self._paused:
            waiting = self._ready.popleft()
            if waiting.wake():
                self._holder = waiting
                self._held_since = self._clock()
                self._count_in(waiting.request)
                return
