"""Writes what a study has put off, a moment after nothing followed."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from dispatcher.errors import DispatcherError
from dispatcher.study.turn import StudyTurn

#: Seconds after which what was put off is written, if nothing else has written it.
FLUSH_S = 0.02

#: Seconds until that is tried again if it could not be written.
AGAIN_S = 1.0


class Flusher:
    """Calls ``write`` within :data:`FLUSH_S` of :meth:`soon`, in a thread of its own, unless
    it was :meth:`written` before.

    The thread is there from the first call on. It holds ``lock`` while it writes, and leaves it
    alone while a quick loop writes itself: two threads that compute get in each other's way. Once
    it could not write, :meth:`soon` writes itself, so that its caller learns why.
    """

    def __init__(self, lock: StudyTurn, write: Callable[[], None]) -> None:
        self._lock = lock
        self._write = write
        self._failed = False
        self._since: float | None = None  # what is put off waits from here on; None: nothing is
        self._wanted = threading.Event()
        self._over = threading.Event()
        self._thread: threading.Thread | None = None

    def soon(self) -> None:
        """Have it written soon. Cheap, and as often as one likes. The caller holds the lock.

        Raises what ``write`` raises if it was in vain before.
        """
        if self._failed:
            self._write()
            self._failed = False
        if self._since is None:
            self._since = time.monotonic()
        if self._thread is None:
            self._thread = threading.Thread(target=self._run, name="study-flusher", daemon=True)
            self._thread.start()
        if not self._wanted.is_set():
            self._wanted.set()

    def written(self) -> None:
        """Note that the caller, who holds the lock, has written all there is."""
        self._since = None

    def close(self) -> None:
        """End the thread. The caller may hold the lock, and writes what is left itself."""
        self._over.set()
        self._wanted.set()

    def _run(self) -> None:
        pause = FLUSH_S
        while not self._over.is_set():
            self._wanted.wait()
            if self._over.wait(pause):
                return
            self._wanted.clear()
            since, pause = self._since, FLUSH_S
            if since is None:
                continue
            left = since + FLUSH_S - time.monotonic()
            if left > 0:
                pause = left
                self._wanted.set()
                continue
            with self._lock:
                if not self._over.is_set():
                    self._flush()
            pause = AGAIN_S if self._failed else FLUSH_S

    def _flush(self) -> None:
        try:
            self._write()
            self._failed = False
            self._since = None
        except DispatcherError:
            self._failed = True
            self._wanted.set()
