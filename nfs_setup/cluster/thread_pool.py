"""Several hosts at once: a bounded number of threads, and an end that can be asked for."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Sequence
from typing import Any, Generic, TypeVar

_J = TypeVar("_J")

_INTERRUPT = object()


class ThreadPool(Generic[_J]):
    """Works jobs off on threads of its own; callbacks run in the caller's thread.

    Args:
        at_once: how many jobs may be under way.
        patience_s: how long those under way are awaited after :meth:`interrupt`.
        on_waiting: called when those are awaited.
    """

    def __init__(
        self, at_once: int, patience_s: float, on_waiting: Callable[[], None] = lambda: None
    ) -> None:
        self._at_once = at_once
        self._patience_s = patience_s
        self._on_waiting = on_waiting
        self._events: queue.SimpleQueue[Any] = queue.SimpleQueue()
        #: Why no more jobs are begun.
        self.interrupted = False

    def interrupt(self) -> None:
        """Begin no more jobs; the second time, await no more either. Safe in signal handlers."""
        self.interrupted = True
        self._events.put((_INTERRUPT, None, None))

    def work_off(
        self,
        jobs: Sequence[_J],
        work: Callable[[_J], Any],
        *,
        begun: Callable[[_J], None],
        ended: Callable[[_J, Any], None],
    ) -> None:
        """Work jobs off. Blocks until all have ended, or :meth:`interrupt` says not to.

        Jobs for which ``ended`` was not called were not begun, or are under way still.

        Args:
            jobs: begun in this order.
            work: does one job, in a thread of the pool.
            begun: called when a job begins.
            ended: called with a job and what ``work`` returned, or the exception it raised.
        """
        todo: queue.SimpleQueue[_J] = queue.SimpleQueue()
        for job in jobs:
            todo.put(job)
        number = min(self._at_once, len(jobs))
        for index in range(number):
            # Daemons: a host that does not answer must not keep this process from ending.
            threading.Thread(
                target=self._worker, args=(todo, work), name=f"cluster-{index}", daemon=True
            ).start()
        deadline = None
        while number:
            try:
                kind, job, value = self._events.get(
                    timeout=None if deadline is None else max(0.0, deadline - time.monotonic())
                )
            except queue.Empty:
                return
            if kind is _INTERRUPT:
                if deadline is not None:
                    return
                deadline = time.monotonic() + self._patience_s
                self._on_waiting()
            elif kind == "gone":
                number -= 1
            elif kind == "begun":
                begun(job)
            else:
                ended(job, value)

    def _worker(self, todo: queue.SimpleQueue[_J], work: Callable[[_J], Any]) -> None:
        while not self.interrupted:
            try:
                job = todo.get_nowait()
            except queue.Empty:
                break
            self._events.put(("begun", job, None))
            try:
                value = work(job)
            except BaseException as error:  # noqa: BLE001 - the top of a thread: it becomes a value
                value = error
            self._events.put(("ended", job, value))
        self._events.put(("gone", None, None))
