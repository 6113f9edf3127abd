"""A check that is repeated beside the agent's loop, in a thread of its own.

One that hangs (a driver, a server) holds up nothing but itself: the loop sees how long it has
been under way, and no second one begins behind it.
"""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from typing import Generic, Optional, TypeVar

from trial_runtime.agent.base.watch import Watch

T = TypeVar("T")


class Looking(Generic[T]):
    """Calls ``look`` in a thread, which starts with the first call. Owned by the agent's loop.

    Args:
        watch: of the agent's loop.
        name: of the thread.
        look: the check; any exception of it goes to ``took``.
        took: called in the loop with the result of ``look``, or with its error.
    """

    def __init__(
        self,
        watch: Watch,
        name: str,
        look: Callable[[], T],
        took: Callable[[Optional[T], Optional[Exception]], None],
    ) -> None:
        self._watch = watch
        self._name = name
        self._look = look
        self._took = took
        self._asked: queue.SimpleQueue[bool] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[tuple[Optional[T], Optional[Exception]]] = (
            queue.SimpleQueue()
        )
        self._wake = -1
        self._began: Optional[float] = None

    @property
    def under_way_s(self) -> float:
        """The time since the current look began (seconds); 0 between looks."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def begin(self) -> bool:
        """Take a look, unless one is being taken."""
        if self._began is not None:
            return False
        if self._wake < 0:
            self._start()
        self._began = time.monotonic()
        self._asked.put(True)
        return True

    def _start(self) -> None:
        woken, self._wake = os.pipe()
        os.set_blocking(woken, False)
        self._watch.add(woken, lambda: self._deliver(woken))
        # A daemon: an agent ends also while a driver hangs.
        threading.Thread(target=self._run, name=self._name, daemon=True).start()

    def _run(self) -> None:
        while self._asked.get():
            try:
                self._results.put((self._look(), None))
            except Exception as error:  # noqa: BLE001 - top of a thread: handed to the loop
                self._results.put((None, error))
            os.write(self._wake, b"\0")

    def _deliver(self, woken: int) -> None:
        try:
            os.read(woken, 64)
        except BlockingIOError:
            pass
        while True:
            try:
                result, error = self._results.get_nowait()
            except queue.Empty:
                return
            self._began = None
            self._took(result, error)
