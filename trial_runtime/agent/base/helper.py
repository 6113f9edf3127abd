"""Work in threads beside the agent's loop; what comes of it is handed to the loop."""

from __future__ import annotations

import os
import queue
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, Optional, TypeVar

from trial_runtime.agent.base.loop import Watch

#: Files are read faster than one thread digests them, and not much faster than four do.
MAX_THREADS = 4

T = TypeVar("T")


class _Handed:
    """Calls that threads hand to the loop; ``descriptor`` is readable when there are some."""

    def __init__(self) -> None:
        self._calls: queue.SimpleQueue[Callable[[], None]] = queue.SimpleQueue()
        self.descriptor, self._wake = os.pipe()
        os.set_blocking(self.descriptor, False)

    def hand_over(self, call: Callable[[], None]) -> None:
        """Have the loop make a call. From any thread."""
        self._calls.put(call)
        os.write(self._wake, b"\0")

    def deliver(self) -> None:
        """Make the calls that are due, in the loop."""
        try:
            os.read(self.descriptor, 4096)
        except BlockingIOError:
            pass
        while True:
            try:
                call = self._calls.get_nowait()
            except queue.Empty:
                return
            call()


def _outcome(work: Callable[[], T]) -> tuple[Optional[T], Optional[Exception]]:
    try:
        return work(), None
    except Exception as error:  # noqa: BLE001 - top of a thread: handed to the loop
        return None, error


class Helper:
    """A few threads that do slow jobs, such as digesting files.

    Threads are started when jobs come, so most agents never have one. There may be several, since
    a job may wait for a parent's weights that a file system does not show yet.
    """

    def __init__(self) -> None:
        self._jobs: queue.SimpleQueue[
            tuple[Callable[[], Any], Callable[[Any, Exception | None], None]]
        ] = queue.SimpleQueue()
        self._results = _Handed()
        self._threads: list[threading.Thread] = []
        self._under_way = 0

    @property
    def descriptor(self) -> int:
        """Readable when the loop is to call :meth:`deliver`."""
        return self._results.descriptor

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
        """Make the calls that are due."""
        self._results.deliver()

    def _run(self) -> None:
        while True:
            job, done = self._jobs.get()
            self._results.hand_over(partial(self._finished, done, *_outcome(job)))

    def _finished(
        self, done: Callable[[Any, Exception | None], None], result: Any, error: Exception | None
    ) -> None:
        self._under_way -= 1
        done(result, error)


class Looking(Generic[T]):
    """A check that is repeated in a thread, which starts with the first. Owned by the agent's loop.

    One that hangs (a driver, a server) holds up nothing but itself: the loop sees how long it has
    been under way, and no second one begins behind it.

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
        self._asked: queue.SimpleQueue[None] = queue.SimpleQueue()
        self._results: Optional[_Handed] = None  # None: there is no thread yet
        self._began: Optional[float] = None

    @property
    def under_way_s(self) -> float:
        """The time since the current look began (seconds); 0 between looks."""
        return 0.0 if self._began is None else time.monotonic() - self._began

    def begin(self) -> bool:
        """Take a look, unless one is being taken."""
        if self._began is not None:
            return False
        if self._results is None:
            self._results = results = _Handed()
            self._watch.add(results.descriptor, results.deliver)
            # A daemon: an agent ends also while a driver hangs.
            run = partial(self._run, results)
            threading.Thread(target=run, name=self._name, daemon=True).start()
        self._began = time.monotonic()
        self._asked.put(None)
        return True

    def _run(self, results: _Handed) -> None:
        while True:
            self._asked.get()
            results.hand_over(partial(self._finished, *_outcome(self._look)))

    def _finished(self, result: Optional[T], error: Optional[Exception]) -> None:
        self._began = None
        self._took(result, error)
