"""Slow work on files (digests), beside the agent's loop."""

from __future__ import annotations

import os
import queue
import threading
from collections.abc import Callable
from typing import Any

#: Files are read faster than one thread digests them, and not much faster than four do.
MAX_THREADS = 4

_Job = tuple[Callable[[], Any], Callable[[Any, "Exception | None"], None]]


class Helper:
    """A few threads that do jobs; results come back to the loop through a pipe.

    Threads are started when jobs come, so most agents never have one. There may be several, since
    a job may wait for a parent's weights that a file system does not show yet.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[_Job | None] = queue.SimpleQueue()
        self._results: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.descriptor, self._wake = os.pipe()
        os.set_blocking(self.descriptor, False)
        self._threads: list[threading.Thread] = []
        self._under_way = 0

    def submit(self, job: Callable[[], Any], done: Callable[[Any, Exception | None], None]) -> None:
        """Do ``job`` beside the loop; ``done(result, error)`` is called in the loop."""
        self._under_way += 1
        if len(self._threads) < min(self._under_way, MAX_THREADS):
            name = f"agent-helper-{len(self._threads)}"
            thread = threading.Thread(target=self._run, name=name, daemon=True)
            self._threads.append(thread)
            thread.start()
        self._jobs.put((job, done))

    def deliver(self) -> None:
        """Make the calls that are due; the loop calls this when ``descriptor`` is readable."""
        try:
            os.read(self.descriptor, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                call = self._results.get_nowait()
            except queue.Empty:
                return
            self._under_way -= 1
            call()

    def _run(self) -> None:
        while (job := self._jobs.get()) is not None:
            work, done = job
            result: Any = None
            fault: Exception | None = None
            try:
                result = work()
            except Exception as error:  # noqa: BLE001 - top of a thread: handed to the loop
                fault = error
            self._results.put(lambda r=result, f=fault, d=done: d(r, f))  # type: ignore[misc]
            os.write(self._wake, b"\0")
