"""A few threads that fetch from many workers: made when there is work, ended when there is none.

Nobody holds up all others. Work takes turns: what has gone on for a while makes room when more is
waiting. What has failed before takes half of the threads at most. And one that shows no progress
any more does not count, up to a bound.
"""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

#: Threads at work at a time, how many of them for what has failed before, and how many more there
#: may be in place of some that hang.
MOST, MOST_DOUBTFUL, MOST_HANGING = 8, 4, 24

#: Seconds of a turn while others wait; without progress until a thread counts as hanging, which is
#: more than a login takes; and without work until a thread ends.
TURN_S, HANGS_S, IDLE_S = 30.0, 60.0, 5.0

_log = logging.getLogger("bequeath.files")


@dataclass(eq=False)
class Turn:
    """One turn of a piece of work."""

    threads: TransferThreads
    doubtful: bool
    began: float
    progress_at: float

    def goes_on(self) -> bool:
        """Note that there was progress; whether the work may go on. Thread: that of the work."""
        self.progress_at = now = time.monotonic()
        if now >= self.threads.until:
            return False
        return now - self.began < TURN_S or not self.threads.others_wait(self.doubtful)


Work = Callable[[Turn], None]


class TransferThreads:
    """See above.

    Args:
        name: of the threads, before a number.
    """

    def __init__(self, name: str) -> None:
        self.until = float("inf")  #: the moment at which all turns are over
        self._name = name
        self._changed = threading.Condition()
        self._sure: deque[Work] = deque()
        self._doubtful: deque[Work] = deque()
        self._turns: set[Turn] = set()
        self._threads: set[threading.Thread] = set()
        self._made = 0
        self._closed = False

    def put(self, work: Work, *, doubtful: bool = False) -> None:
        """Have a piece of work done. Any thread.

        Args:
            work: gets its turn; an exception of it is logged.
            doubtful: whether it has failed before, and may be slow.
        """
        with self._changed:
            (self._doubtful if doubtful else self._sure).append(work)
            self._changed.notify_all()
        self.relieve()

    def relieve(self) -> None:
        """Make a thread if work waits for one; once in a while also where nothing is put, since
        that a thread hangs is seen by whoever looks."""
        with self._changed:
            idle = len(self._threads) - len(self._turns)
            if self._waiting() > idle and len(self._threads) < self._allowed():
                self._made += 1
                thread = threading.Thread(
                    target=self._run, name=f"{self._name} {self._made}", daemon=True
                )
                thread.start()  # it waits until we let go of the lock
                self._threads.add(thread)

    def others_wait(self, doubtful: bool) -> bool:
        """Whether the end of a turn would let other work begin. Any thread."""
        return bool(self._sure or (doubtful and self._doubtful))

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until no work waits or is under way; whether that is so."""
        with self._changed:
            return self._changed.wait_for(
                lambda: not (self._sure or self._doubtful or self._turns), timeout_s
            )

    def close(self, until: float) -> None:
        """Have the threads end when all is done. Does not wait.

        Args:
            until: the moment of the monotonic clock at which turns end where they are.
        """
        with self._changed:
            self.until = until
            self._closed = True
            self._changed.notify_all()

    def join(self, timeout_s: float) -> None:
        """Wait for the end of the threads, after :meth:`close`."""
        until = time.monotonic() + timeout_s
        for thread in list(self._threads):
            thread.join(max(0.0, until - time.monotonic()))

    def _allowed(self) -> int:
        """As many threads as there may be now."""
        since = time.monotonic() - HANGS_S
        hanging = sum(turn.progress_at < since for turn in list(self._turns))
        return MOST + min(hanging, MOST_HANGING)

    def _waiting(self) -> int:
        """As much work as could begin now."""
        return len(self._sure) + min(len(self._doubtful), self._room_for_doubtful())

    def _room_for_doubtful(self) -> int:
        return MOST_DOUBTFUL - sum(turn.doubtful for turn in self._turns)

    def _next_up(self) -> deque[Work] | None:
        """The queue from which the next work comes; None if none may begin."""
        if self._sure:
            return self._sure
        return self._doubtful if self._doubtful and self._room_for_doubtful() > 0 else None

    def _run(self) -> None:
        while (taken := self._take()) is not None:
            work, turn = taken
            try:
                work(turn)
            except Exception:  # noqa: BLE001 - the top of a thread
                _log.exception("a transfer has failed")
            finally:
                with self._changed:
                    self._turns.discard(turn)
                    self._changed.notify_all()

    def _take(self) -> tuple[Work, Turn] | None:
        """The next work, and its turn; None for a thread that is needed no more."""
        with self._changed:
            if len(self._threads) <= self._allowed():
                self._changed.wait_for(lambda: self._next_up() is not None or self._closed, IDLE_S)
                queue = self._next_up()
                if queue is not None:
                    now = time.monotonic()
                    turn = Turn(self, queue is self._doubtful, now, now)
                    self._turns.add(turn)
                    return queue.popleft(), turn
            self._threads.discard(threading.current_thread())
            return None
