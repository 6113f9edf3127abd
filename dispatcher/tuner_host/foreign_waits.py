"""Notices requests that stand still in the author's code: in an Event, a queue, a sleep.

Such a request holds no slot, so the head must know. The kernel knows how long a thread has run:
one that got next to no processor time between two looks stands still, wherever it is. Without that
file (macOS) the position in the code is compared instead.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Protocol

from dispatcher.core.events import DeliveryStandsStill, ForeignWaitOver, ForeignWaitSeen
from dispatcher.core.ids import TrialId
from dispatcher.tuner_host.delivery import Delivery
from dispatcher.tuner_host.request import Request, Say
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.stacks import where

#: Between two looks at the same thread. A request that answers sooner is never looked at.
LOOK_S = 0.05

#: The same once all running requests are known to stand still.
LOOK_MAX_S = 1.0

#: A thread that ran for less than this share of the time stands still; one that waits for
#: the interpreter, woken every half millisecond to ask for it, runs for more.
STILL = 0.01

#: The same for the thread that delivers results, and the most it grows to for one that stands
#: still and moves by turns.
DELIVERY_LOOK_S = 1.0
DELIVERY_LOOK_MAX_S = 16.0

#: Threads looked at in one go, so that ten thousand blocked ones cost little.
AT_ONCE = 128


class ThreadOfOurs(Protocol):
    """Anything that runs in a thread: its ident, and the kernel's number of it."""

    thread: int
    native_thread: int


def ran_ns(one: ThreadOfOurs) -> int | None:
    """Processor time of a thread (ns), or a number that changes when it moves."""
    try:
        with open(f"/proc/self/task/{one.native_thread}/schedstat", "rb") as file:
            return int(file.read().split()[0])
    except (OSError, ValueError, IndexError):
        pass
    frame = sys._current_frames().get(one.thread)
    if frame is None:
        return None
    return hash((id(frame), frame.f_lasti)) & 0x7FFF_FFFF_FFFF_FFFF


class ForeignWaits:
    """Looks for requests that stand still; called by the I/O thread while any run.

    Args:
        run_token: knows the requests that run.
        clock: monotonic seconds.
        ran: processor time of a thread (ns).
    """

    def __init__(
        self,
        run_token: RunToken,
        clock: Callable[[], float] = time.monotonic,
        ran: Callable[[ThreadOfOurs], int | None] = ran_ns,
    ) -> None:
        self._run_token = run_token
        self._clock = clock
        self._processor_ns = ran
        self._next_look = 0.0
        self._pause_s = LOOK_S
        self._entries = 0
        self._offset = 0

    def look(self) -> float | None:
        """Report changes to the head; seconds until the next look, None if no request runs."""
        if not self._run_token.is_running():
            return None
        now = self._clock()
        if self._run_token.entries != self._entries:
            self._entries = self._run_token.entries
            self._pause_s = LOOK_S
            self._next_look = min(self._next_look, now + LOOK_S)
        if now < self._next_look:
            return self._next_look - now
        requests = self._run_token.running()
        fresh = [one for one in requests if not one.foreign][: 8 * AT_ONCE]
        known = [one for one in requests if one.foreign]
        start = self._offset if self._offset < len(known) else 0
        self._offset = start + AT_ONCE
        # With nothing new to find there is no hurry: an idle experiment is to cost nothing.
        self._pause_s = LOOK_S if fresh else min(2 * self._pause_s, LOOK_MAX_S)
        self._next_look = now + self._pause_s
        for request in fresh + known[start : self._offset]:
            if now - request.since >= LOOK_S and request.thread:
                self._look_at(request, now)
        return self._pause_s

    def _look_at(self, request: Request, now: float) -> None:
        ran = self._processor_ns(request)
        if ran is None:
            return
        before, elapsed_ns = request.ran_ns, (now - request.looked) * 1e9
        if before >= 0 and elapsed_ns < LOOK_S * 5e8:
            return
        request.ran_ns, request.looked = ran, now
        if before < 0:
            return
        still = ran - before < STILL * elapsed_ns
        if still and not request.foreign:
            request.foreign = True
            place = where(sys._current_frames().get(request.thread))
            request.say(ForeignWaitSeen(TrialId(request.trial), place))
        elif not still and request.foreign:
            request.foreign = False
            request.say(ForeignWaitOver(TrialId(request.trial)))


class StillDelivery:
    """Notices a delivery that neither returns nor computes, or that waits behind such a call in
    the same thread. Called by the I/O thread.

    It also reports that the delivery moves again. Each change makes the next look wait longer, so
    that a tuner that sleeps and computes by turns does not fill the journal.

    Args:
        delivery: knows the trial being delivered, and the thread.
        say: takes the events.
        place: the author's line at which the thread of an ident is.
        clock: monotonic seconds.
        ran: processor time of a thread (ns).
    """

    def __init__(
        self,
        delivery: Delivery,
        say: Say,
        place: Callable[[int], str],
        clock: Callable[[], float] = time.monotonic,
        ran: Callable[[ThreadOfOurs], int | None] = ran_ns,
    ) -> None:
        self._delivery = delivery
        self._say = say
        self._place = place
        self._clock = clock
        self._processor_ns = ran
        self._trial: int | None = None
        self._ran = 0
        self._looked = 0.0
        self._still = False
        self._pause_s = DELIVERY_LOOK_S

    def look(self) -> float | None:
        """Look once; seconds until the next look, None while nothing is delivered."""
        trial = self._delivery.next_due()
        if trial is None:
            self._trial = None
            return None
        now = self._clock()
        if self._trial != trial:
            self._trial, self._still, self._pause_s = trial, False, DELIVERY_LOOK_S
            self._ran, self._looked = self._processor_ns(self._delivery) or 0, now
            return self._pause_s
        if now - self._looked < self._pause_s:
            return self._pause_s - (now - self._looked)
        ran = self._processor_ns(self._delivery)
        if ran is None:
            return self._pause_s
        still = ran - self._ran < STILL * (now - self._looked) * 1e9
        self._ran, self._looked = ran, now
        if still != self._still:
            self._still = still
            if not still:
                self._pause_s = min(2 * self._pause_s, DELIVERY_LOOK_MAX_S)
            at = self._at() if still else ""
            self._say(DeliveryStandsStill(TrialId(trial), at, over=not still))
        return self._pause_s

    def _at(self) -> str:
        line = self._place(self._delivery.thread)
        return f"{self._delivery.place()}, at {line}" if line else self._delivery.place()
