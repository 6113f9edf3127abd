"""The turn of one thread in a study: of the process that leads it, and never broken off midway."""

from __future__ import annotations

import os
import signal
import threading
from typing import Any

from dispatcher.errors import UserError


class StudyTurn:
    """A lock that a thread holds while it asks, tells or writes. It may be taken again within.

    Ctrl-C that comes meanwhile is raised when it ends: raised in the middle it would leave a record
    that is neither as before nor as after. A second one is raised at once.
    A fork is refused, and waits for nobody: the thread that had the turn is not in it.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        self._process = os.getpid()
        self._depth = 0  # of the thread that has it
        self._before: Any = None  # the handler of Ctrl-C that stands back; the main thread's
        self._interrupts = 0  # that came meanwhile

    @property
    def is_here(self) -> bool:
        """Whether this process is the one that made it, and no fork of that."""
        return os.getpid() == self._process

    def __enter__(self) -> None:
        if not self.is_here:
            raise UserError(
                f"this study is led by process {self._process}, and this is process {os.getpid()}",
                hint="ask and tell in the process that opened it; let others only compute",
            )
        first = self._stand_back()
        try:
            self._lock.acquire()
        except BaseException:  # Ctrl-C twice, while another thread has it
            if first:
                self._stand_up()
            raise
        self._depth += 1

    def __exit__(self, *_: object) -> None:
        self._depth -= 1
        over = not self._depth
        self._lock.release()
        if over and threading.current_thread() is threading.main_thread():
            self._stand_up()

    def _stand_back(self) -> bool:
        """Put off Ctrl-C; false if another thread asks, or it is put off already."""
        if self._before is not None or threading.current_thread() is not threading.main_thread():
            return False
        before = signal.getsignal(signal.SIGINT)
        if not callable(before):
            return False
        self._before, self._interrupts = before, 0
        signal.signal(signal.SIGINT, self._put_off)
        return True

    def _stand_up(self) -> None:
        """Give the handler its place back, and what has come meanwhile."""
        before = self._before
        if before is None:
            return
        signal.signal(signal.SIGINT, before)
        self._before = None
        if self._interrupts:
            signal.raise_signal(signal.SIGINT)

    def _put_off(self, number: int, frame: Any) -> None:
        self._interrupts += 1
        if self._interrupts > 1:
            self._before(number, frame)
