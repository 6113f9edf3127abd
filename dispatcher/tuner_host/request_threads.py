"""Runs each request in a thread, in the order of their ids; idle threads are used again.

The threads start one another: each, just before it calls the author's code, gives the next
request to an idle thread or to a new one. So request *n* is on its way before *n + 1* is
begun, no thread is spent on starting others, and ten thousand starts do not delay the I/O thread.
"""

from __future__ import annotations

import threading
import time
from _thread import allocate_lock
from collections import deque
from collections.abc import Callable

from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.run_token import RunToken
from trial_runtime.retry import growing_pause

#: Idle threads kept for later requests; further ones end.
KEPT_IDLE = 64

#: The pauses before another try when the system refuses a thread: the first, and the longest.
BACK_OFF_S = 0.5
BACK_OFF_MAX_S = 15.0


class RequestThread(threading.Thread):
    """Runs requests one after another, with the platform's default stack."""

    def __init__(self, pool: RequestThreads) -> None:
        super().__init__(name="tuner-req-new", daemon=True)
        self._pool = pool
        self._turn = allocate_lock()
        self._turn.acquire()
        self._request: Request | None = None

    def give(self, request: Request) -> None:
        """Hand over a request; called for idle workers only."""
        self._request = request
        self._turn.release()

    def run(self) -> None:
        while True:
            self._turn.acquire()
            request, self._request = self._request, None
            if request is None:
                return
            self.name = f"tuner-req-{request.trial}"
            self._pool.carry_out(request)
            del request
            if not self._pool.rest(self):
                return


class RequestThreads:
    """Runs ``run(request)`` for each opened request; ``run`` handles every exception itself.

    Args:
        run: carries out a request, in its thread.
        run_token: asked before a request enters.
        say: takes a text when the system begins to refuse threads, and when it gives some again.
        clock: monotonic seconds.
    """

    def __init__(
        self,
        run: Callable[[Request], None],
        run_token: RunToken,
        say: Callable[[str], None],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._run = run
        self._run_token = run_token
        self._say = say
        self._clock = clock
        self._lock = threading.Lock()  # held for list operations only
        self._waiting: deque[Request] = deque()
        self._idle: list[RequestThread] = []
        self._starting = False  # a thread is about to start the next request
        self._alive = 0
        self._refusals = 0  # in a row, while the system refuses threads
        self._try_at = 0.0

    def open(self, request: Request) -> None:
        """Queue a request; it starts at once unless others are still being started."""
        with self._lock:
            self._waiting.append(request)
        self.kick()

    def kick(self) -> None:
        """Start the waiting requests, if no thread is doing so. Called after a pause, too."""
        with self._lock:
            if self._starting or not self._waiting:
                return
            if self._refusals and not self._idle and self._clock() < self._try_at:
                return
            self._starting = True
        self._start_next()

    def withdraw(self, request: Request) -> bool:
        """Take a request back that was not started; false if it was."""
        with self._lock:
            try:
                self._waiting.remove(request)
            except ValueError:
                return False
            return True

    def crowded(self) -> bool:
        """Whether requests are being started one after another."""
        return bool(self._waiting) and not self._refusals

    def overdue(self) -> float | None:
        """Try again if the system refused a thread; seconds until the next try, or None."""
        if not self._refusals or not self._waiting:
            return None
        left = self._try_at - self._clock()
        if left > 0:
            return left
        self.kick()
        return self._pause_s() if self._refusals else None

    # ---- the workers' side ---------------------------------------------------------------

    def carry_out(self, request: Request) -> None:
        """Start the next request, then run this one."""
        self._start_next()
        self._run(request)

    def rest(self, worker: RequestThread) -> bool:
        """Keep the worker for later, or let it end (false)."""
        with self._lock:
            keep = len(self._idle) < KEPT_IDLE or bool(self._waiting)
            if keep:
                self._idle.append(worker)
            else:
                self._alive -= 1
        if self._waiting:
            self.kick()
        return keep

    def _start_next(self) -> None:
        with self._lock:
            if not self._waiting or not self._run_token.may_enter(self._waiting[0]):
                self._starting = False
                return
            request = self._waiting.popleft()
            worker = self._idle.pop() if self._idle else None
        if worker is None:
            worker = self._new_worker()
        if worker is None:
            self._run_token.leave(request)
            with self._lock:
                self._waiting.appendleft(request)
                self._starting = False
                rested = bool(self._idle)
            if rested:  # a thread has become idle meanwhile, and left the start to this one
                self.kick()
            return
        worker.give(request)

    def _new_worker(self) -> RequestThread | None:
        worker = RequestThread(self)
        try:
            worker.start()
        except RuntimeError as error:
            self._refused(error)
            return None
        with self._lock:
            self._alive += 1
        if self._refusals:
            self._refusals = 0
            self._say("the system gives threads again; waiting requests are being started")
        return worker

    def _refused(self, error: RuntimeError) -> None:
        if not self._refusals:
            self._say(
                f"the system refuses to start another thread for a request ({error}); "
                f"{self._alive} are there, requests that wait for one: {len(self._waiting) + 1}, "
                "tried again and again. Raise the limit (ulimit -u, kernel.threads-max), or lower "
                "lookahead."
            )
        self._refusals += 1
        self._try_at = self._clock() + self._pause_s()

    def _pause_s(self) -> float:
        return growing_pause(self._refusals, BACK_OFF_S, BACK_OFF_MAX_S)
