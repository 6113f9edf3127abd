"""Ends the process on the head's order, within a time limit, by ``os._exit``.

Any number of threads may be stuck in author's code; nothing here waits for them.
"""

from __future__ import annotations

import os
import sys
import threading
import time
import traceback
from collections.abc import Callable

from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.request import Request

#: Exit codes: the tuner cannot be built; a fault of ours.
EXIT_BROKEN = 66
EXIT_INTERNAL = 70

#: Share of the deadline that waits cancelled by us get to wind up before ``_on_exit``.
WIND_UP = 0.2

_REASON = "the experiment is stopping"


class WindDown:
    """Cancels our waits, lets their requests tidy up, calls ``on_exit``, ends the process."""

    def __init__(self, gate: Gate) -> None:
        self._gate = gate
        self._exit_at: float | None = None
        self._winding_up: set[int] | None = None
        self._wound_up = threading.Event()

    def begin(self, deadline_s: float, on_exit: Callable[[], None]) -> None:
        """Begin the end, in a thread of its own. I/O thread only; a second call does nothing."""
        if self._exit_at is not None:
            return
        self._exit_at = time.monotonic() + deadline_s
        closing = threading.Thread(
            target=self._close, args=(deadline_s, on_exit), name="tuner-exit", daemon=True
        )
        try:
            closing.start()
        except RuntimeError:  # no thread is left: the author's have used them up
            exit_process()

    def due(self) -> float | None:
        """Seconds until the deadline, None if there is none; at the deadline exits."""
        if self._exit_at is None:
            return None
        left = self._exit_at - time.monotonic()
        if left <= 0:
            exit_process()
        return left

    def over(self, request: Request) -> None:
        """Note that a request is about to give its answer. Any thread."""
        if self._winding_up is not None:
            self._winding_up.discard(request.trial)
            if not self._winding_up:
                self._wound_up.set()

    def _close(self, deadline_s: float, on_exit: Callable[[], None]) -> None:
        try:
            blocked = self._gate.blocked()
            if blocked:
                self._winding_up = blocked
            self._gate.close(_REASON)
            if blocked:
                self._wound_up.wait(WIND_UP * deadline_s)
            on_exit()
        except BaseException:  # noqa: BLE001 - top of the thread; author's code
            traceback.print_exc()
        finally:
            exit_process()


def log(text: str) -> None:
    """Write a line to the tuner's log, even if the author has replaced ``sys.stderr``."""
    print(text, file=sys.__stderr__, flush=True)


def exit_process() -> None:
    """End now, once all output is flushed."""
    for stream in (sys.__stdout__, sys.__stderr__):
        try:
            if stream is not None:
                stream.flush()
        except (OSError, ValueError):
            continue
    os._exit(0)
