"""The newest allocation of a worker, as its record and its scheduler have it: no thread, no wish.

What the scheduler says of it is judged here; what follows from that is a :class:`Loss`, or nothing.
"""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.allocations.allocation import (
    TAKEN_BACK,
    Allocation,
    AllocationState,
    Gone,
    allocation_name,
)
from dispatcher.platforms.allocations.incarnation import (
    next_incarnation,
    read_incarnation,
    write_incarnation,
)
from trial_runtime.pauses import growing_pause

#: What was ordered may be missing from the scheduler's list for so long (seconds): lists lag.
UNSEEN_S = 60.0

#: An allocation that ends before it ran for so long (seconds) is followed by the next one after a
#: pause, one after that after a longer one.
SHORT_LIFE_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0

#: Where somebody has to change something first, asking often helps nobody (seconds).
HOPELESS_PAUSE_S = 60.0

#: An order to cancel is repeated after this time (seconds), if nothing came of it.
CANCEL_AGAIN_S = 10.0

#: A wall time that moves by less than this (seconds) has not moved: it is computed anew each time.
END_MOVES_S = 60.0

_HOW = {
    Gone.FINISHED: "its agent has left",
    Gone.PREEMPTED: "its allocation was preempted",
    Gone.EVICTED: "its allocation was evicted",
    Gone.NODE_LOST: "the node of its allocation is lost",
    Gone.OUT_OF_MEMORY: "its allocation ran out of memory",
    Gone.WALL_TIME: "its allocation has reached its wall time",
    Gone.CANCELLED: "somebody has cancelled its allocation",
    Gone.FAILED: "its allocation has failed",
    Gone.NEVER: "no place for it can ever be had",
    None: "its allocation has ended",
}

#: Reasons for a wait while the scheduler has not given its own.
SUBMITTED, UNLISTED = "it was submitted", "its scheduler does not list it yet"
PREPARED = "its place is being prepared"
OUR_REASONS = (SUBMITTED, UNLISTED, PREPARED)

_COMING = (AllocationState.WAITING, AllocationState.STARTING)


class Held:
    """The newest incarnation of one worker.

    *Condemned* is one that is to end: its agent is not believed any more, and no other one is
    ordered before it is gone, or its agent must have ended by itself for want of a head.

    Args:
        worker: its name.
        home: the worker's folder below the experiment's, on this machine.
        label: the beginning of the names of all allocations of the service.
        limit_s: a longer wait in the queue is one for ever (seconds).

    Attributes:
        state: as last known; None: the scheduler has not listed it.
        heard: whether its agent has introduced itself.
        reason: why it waits, in the scheduler's words.
        waiting_since: since when it waits, or nothing is had (monotonic).
        ends_at: when its place is taken back (seconds since the epoch); None: not known.
        not_before: when the next one may be ordered (monotonic).
    """

    def __init__(self, worker: str, home: Path, label: str, limit_s: float, now: float) -> None:
        self._worker = worker
        self._home = home
        self._label = label
        self._limit_s = limit_s
        self._newest = read_incarnation(home)
        self._is_saved = True
        self._unseen_until = float("-inf")
        self._fence_until = float("inf")
        self._ran_since: float | None = None
        self._cancel_at: float | None = None  # the next order to cancel it
        self._grace_s = 0.0
        self._short_lives = 0
        self.state: AllocationState | None = None
        self.heard = False
        self.condemned = False
        self.reason = ""
        self.waiting_since = now
        self.ends_at: float | None = None
        self.not_before = float("-inf")

    # -- what it is ------------------------------------------------------------------------------

    @property
    def is_there(self) -> bool:
        """Whether the scheduler has it, or may have it."""
        return self._newest is not None and self._newest.stage != "gone"

    @property
    def name(self) -> str | None:
        """The name of its allocation at the scheduler; None if there is none."""
        if self._newest is None or not self.is_there:
            return None
        return allocation_name(self._label, self._worker, self._newest.number)

    @property
    def ticket(self) -> str:
        """The secret of its agent; empty if there is none."""
        return "" if self._newest is None else self._newest.ticket

    @property
    def number(self) -> int | None:
        """The number of the incarnation, if its agent runs, or should by now, and is believed."""
        runs = self.heard or self.state is AllocationState.RUNNING
        if self._newest is None or not runs or self.condemned:
            return None
        return self._newest.number

    @property
    def needs_order(self) -> bool:
        """Whether none is there, or nobody knows if it was ordered and the scheduler lacks it."""
        if self._newest is None or self._newest.stage == "gone":
            return True
        return self._newest.stage == "new" and self.state is None

    def expects(self, ticket: str, now: float) -> bool | None:
        """Whether an agent with this ticket is its own; None where none was ever ordered."""
        newest = self._newest
        if newest is None:
            return None
        if self.condemned or newest.stage == "gone" or ticket != newest.ticket:
            return False
        self.heard = True
        self._ran_since = now if self._ran_since is None else self._ran_since
        return True

    def grace_to_cancel(self, now: float) -> float | None:
        """The grace with which it is to be cancelled now; None if it is not."""
        if self._cancel_at is None or now < self._cancel_at:
            return None
        self._cancel_at = now + CANCEL_AGAIN_S
        return self._grace_s

    # -- what is done with it --------------------------------------------------------------------

    def begin(self, now: float, wall: float) -> tuple[str, str]:
        """Begin the next incarnation, which must be saved before it is ordered; returns its name
        and its ticket."""
        newest = replace(next_incarnation(self._newest), at=wall)
        self._newest, self._is_saved = newest, False
        self.state, self.heard, self._ran_since, self.ends_at = None, False, None, None
        self.reason, self.waiting_since = "", now
        return allocation_name(self._label, self._worker, newest.number), newest.ticket

    def ordered(self, now: float) -> None:
        """Note that the scheduler has taken the order."""
        self._unseen_until = now + UNSEEN_S
        self._note("ordered")

    def refused(self, now: float, *, hopeless: bool) -> None:
        """Let time pass before the order is repeated: the scheduler has not taken it."""
        self._short_lives += 1
        self._pause(now, hopeless=hopeless)

    def condemn(self, grace_s: float, fence_until: float = float("inf")) -> None:
        """Have it end.

        Args:
            grace_s: until it is ended by force.
            fence_until: when its agent must have ended by itself, for want of a head.
        """
        self.condemned = True
        self._grace_s = grace_s
        self._fence_until = min(self._fence_until, fence_until)
        self._cancel_at = float("-inf")

    def _pause(self, now: float, *, hopeless: bool) -> None:
        first = HOPELESS_PAUSE_S if hopeless else FIRST_PAUSE_S
        self.not_before = now + growing_pause(self._short_lives, first, LONGEST_PAUSE_S)

    # -- what the scheduler says -----------------------------------------------------------------

    def seen(self, allocation: Allocation | None, now: float, wall: float) -> Loss | None:
        """Take in what the scheduler says; the loss that it comes to, if it is one.

        Args:
            allocation: as listed; None: it is not listed.
            now: monotonic seconds.
            wall: seconds since the epoch.
        """
        newest = self._newest
        if newest is None or newest.stage == "gone":
            return None
        if allocation is None:
            return None if newest.stage == "new" else self._missing(wall - newest.at, now)
        if newest.stage == "new":  # a head died between its order and its note of it
            self._note("ordered")
        if allocation.state is AllocationState.ENDED:
            return self._ended(allocation, now)
        if self.condemned:
            if now >= self._fence_until:
                self._gone(now)  # goes on being cancelled, as what nobody wants
            return None
        if allocation.state in _COMING:
            return self._comes(allocation, now)
        if allocation.state is AllocationState.RUNNING:
            self._runs(allocation, now, wall)
        return None

    def _missing(self, age_s: float, now: float) -> Loss | None:
        """Judge one that is not listed: lists lag behind orders, and forget what has ended."""
        lags = now < self._unseen_until or 0 <= age_s < UNSEEN_S
        if self.state is None and lags and not self.condemned:
            self.reason = self.reason or UNLISTED
            return None
        loss = Loss("its scheduler does not know its allocation any more")
        return self._gone(now, loss)

    def _ended(self, allocation: Allocation, now: float) -> Loss | None:
        gone = allocation.gone
        beside = f": {allocation.reason}" if allocation.reason else ""
        hopeless, planned = gone is Gone.NEVER, gone in TAKEN_BACK
        return self._gone(now, Loss(f"{_HOW[gone]}{beside}", hopeless, planned=planned))

    def _comes(self, allocation: Allocation, now: float) -> Loss | None:
        if self.state is AllocationState.RUNNING:
            beside = f": {allocation.reason}" if allocation.reason else ""
            self.condemn(0.0)  # it would begin anew under the same ticket
            return Loss(f"its place was taken back{beside}", planned=True)
        self.state = allocation.state
        self.reason = allocation.reason
        if self.state is AllocationState.STARTING:
            self.reason = self.reason or PREPARED
            return None
        self.waiting_since = min(self.waiting_since, now - allocation.waiting_s)
        if self.heard or now - self.waiting_since <= self._limit_s:
            return None
        self.condemn(0.0)
        why = self.reason or "its scheduler gives no reason"
        return Loss(f"it has waited in its queue for {self._limit_s:.0f} s: {why}", hopeless=True)

    def _runs(self, allocation: Allocation, now: float, wall: float) -> None:
        self.state = AllocationState.RUNNING
        self._ran_since = now if self._ran_since is None else self._ran_since
        if allocation.ends_in_s is not None:
            ends_at = wall + allocation.ends_in_s
            if self.ends_at is None or abs(ends_at - self.ends_at) > END_MOVES_S:
                self.ends_at = ends_at

    def _gone(self, now: float, loss: Loss | None = None) -> Loss | None:
        """Make room for the next one. The loss of one that was to end is none."""
        ours = self.condemned
        ran_s = 0.0 if self._ran_since is None else now - self._ran_since
        self._short_lives = 0 if ours or ran_s >= SHORT_LIFE_S else self._short_lives + 1
        if self._short_lives:
            self._pause(now, hopeless=loss is not None and loss.hopeless)
        self.condemned, self._cancel_at, self._fence_until = False, None, float("inf")
        self.state, self.heard, self.ends_at = None, False, None
        self.waiting_since = now
        self._note("gone")
        return None if ours else loss

    def _note(self, stage: Literal["ordered", "gone"]) -> None:
        """Note how far it is. What is not written costs the next head a question more."""
        assert self._newest is not None
        self._newest, self._is_saved = replace(self._newest, stage=stage), False

    def save(self) -> None:
        """Write down how far it is, if that is news. Without any lock, since disks may be slow; in
        the one thread that changes it. Raises ``OSError``."""
        if not self._is_saved and self._newest is not None:
            write_incarnation(self._home, self._newest)
            self._is_saved = True
