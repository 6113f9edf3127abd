"""The newest allocation of a worker, as its record and its scheduler have it: no thread, no wish.

What is seen of it is judged by the table in :mod:`dispatcher.platforms.allocations.stages`; what
follows from that is a :class:`Loss`, or nothing.
"""

from __future__ import annotations

import math
from collections.abc import Container
from pathlib import Path
from typing import Literal

from msgspec.structs import replace

from dispatcher.core.model import EndReason
from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.allocations.allocation import (
    TAKEN_BACK,
    Allocation,
    Gone,
    allocation_name,
)
from dispatcher.platforms.allocations.incarnation import (
    Incarnation,
    next_incarnation,
    read_incarnation,
    write_incarnation,
)
from dispatcher.platforms.allocations.stages import CONDEMNED, HOW, UPSHOTS, Stage, Upshot, sight_of
from dispatcher.platforms.reasons import plain_reason
from trial_runtime.failpoints import failpoint
from trial_runtime.retry import growing_pause

#: What was ordered may be missing from the scheduler's list for so long (seconds): lists lag.
UNSEEN_S = 60.0

#: An allocation that ends before it ran for so long (seconds) is followed by the next one after a
#: pause, one after that after a longer one.
SHORT_LIFE_S = 60.0
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 300.0

#: Where somebody has to change something first, asking often helps nobody (seconds).
HOPELESS_PAUSE_S = 60.0

#: A wall time that moves by less than this (seconds) has not moved: it is computed anew each time.
END_MOVES_S = 60.0

#: Longest reason of a scheduler that is passed on (characters).
LONGEST_REASON = 500

#: Reasons to order the next one later.
ENDED_SOON = "the one before ended soon: the next is asked for later"
IN_VAIN = "the place before ended too soon for any trial: the next is asked for later"

#: Reasons for a wait while the scheduler has not given its own.
SUBMITTED, UNLISTED = "it was submitted", "its scheduler does not list it yet"
PREPARED = "its place is being prepared"
UNKNOWN = "its scheduler lists it in a state that its platform does not know"
MOVED = "its scheduler has taken its place back, and is to lend it another one"
OUR_REASONS = (SUBMITTED, UNLISTED, PREPARED, UNKNOWN, MOVED)

_STAGES = {
    "new": Stage.DRAFTED,
    "ordered": Stage.ORDERED,
    "gone": Stage.GONE,
    "condemned": Stage.LEAVING,
    "swept": Stage.LEAVING,
}


class Held:
    """The newest incarnation of one worker.

    Args:
        worker: its name.
        home: the worker's folder below the experiment's, on this machine.
        label: the beginning of the names of all allocations of the service.
        limit_s: a longer wait in the queue is one for ever (seconds).

    Attributes:
        stage: how far it is.
        heard: whether its agent has introduced itself.
        renewed: whether its scheduler lends it another place by itself, as it said last.
        reason: why it waits, in the scheduler's words.
        waiting_since: since when it waits, or nothing is had (monotonic).
        ends_at: when its place is taken back (seconds since the epoch); None: not known.
        not_before: when the next one may be ordered (monotonic).
        why_later: why it is not ordered before that.
        leaves_until: until when one that is to end may leave by itself (monotonic).
    """

    def __init__(self, worker: str, home: Path, label: str, limit_s: float, now: float) -> None:
        self._worker = worker
        self._home = home
        self._label = label
        self._limit_s = limit_s
        self._newest = self._saved = read_incarnation(home)
        self.stage = Stage.GONE if self._newest is None else _STAGES[self._newest.stage]
        self._attempts = int(self.stage is Stage.DRAFTED)  # to order this one, by anybody
        self._lags_until = float("-inf")
        self._fence_until = float("inf")
        self._grace_s = 0.0  # of one that is to end
        self._sought = self._in_vain = (
            False  # whether the scheduler was asked for it since it is to end
        )
        self._ran_since: float | None = None
        self._short_lives = 0
        self.heard = self.renewed = False
        self.reason = self.why_later = ""
        self.waiting_since = now
        self.ends_at: float | None = None
        self.not_before = self.leaves_until = float("-inf")

    # -- what it is ------------------------------------------------------------------------------

    @property
    def is_there(self) -> bool:
        """Whether the scheduler has it, may have it, or is about to get its order."""
        return self.stage is not Stage.GONE

    @property
    def is_listed(self) -> bool:
        """Whether the scheduler has listed it, and it is not to end."""
        return self.stage in (Stage.LISTED, Stage.RUNNING)

    @property
    def is_condemned(self) -> bool:
        """Whether it is to end."""
        return self.stage in (Stage.RECALLED, Stage.LEAVING)

    @property
    def needs_order(self) -> bool:
        """Whether none is there, or nobody knows if it was ordered and the scheduler lacks it."""
        return self.stage in (Stage.GONE, Stage.DRAFTED)

    @property
    def is_fresh(self) -> bool:
        """Whether nobody has ever tried to order it."""
        return self.stage is Stage.DRAFTED and self._attempts == 0

    @property
    def name(self) -> str | None:
        """The name of its allocation at the scheduler; None if there is none."""
        if self._newest is None or not self.is_there:
            return None
        return self._name_of(self._newest)

    @property
    def ticket(self) -> str:
        """The secret of its agent; empty if there is none."""
        return "" if self._newest is None else self._newest.ticket

    @property
    def number(self) -> int | None:
        """The number of the incarnation, if its agent runs, or should by now, and is believed."""
        runs = self.stage is Stage.RUNNING or (self.heard and not self.is_condemned)
        return None if self._newest is None or not runs else self._newest.number

    @property
    def grace_s(self) -> float | None:
        """How long it may take to end, from its first cancellation on; None: it is not to be
        cancelled. One that was never listed is looked for first: the list is asked anyway, and one
        that was listed and is so no more is gone for certain."""
        due = self.stage is Stage.LEAVING or (self.stage is Stage.RECALLED and self._sought)
        return self._grace_s if due else None

    def hears(self, ticket: str, now: float) -> bool | None:
        """Whether an agent with this ticket is its own; None where none was ever ordered."""
        if self._newest is None:
            return None
        if not self.is_there or self.is_condemned or ticket != self._newest.ticket:
            return False
        if self.stage is Stage.DRAFTED:  # it runs, so somebody has ordered it
            self._ordered(now)
        self.heard = True
        self._ran_since = now if self._ran_since is None else self._ran_since
        return True

    # -- what is done with it --------------------------------------------------------------------

    def begin(self, now: float, wall: float, listed: Container[str] = ()) -> tuple[str, str]:
        """Begin the next incarnation, which must be saved before it is ordered.

        Args:
            now: monotonic seconds.
            wall: seconds since the epoch.
            listed: names that the scheduler has, none of which is used anew: the record of one
                that is to be cancelled may be lost.

        Returns:
            Its name and its ticket.
        """
        newest = next_incarnation(self._newest)
        if self.stage is Stage.GONE:
            self._attempts, self.waiting_since = 0, now
            while self._name_of(newest) in listed:
                newest = replace(newest, number=newest.number + 1)
        self._newest = replace(newest, at=wall)
        self.stage, self._ran_since, self.reason = Stage.DRAFTED, None, ""
        return self._name_of(newest), newest.ticket

    def _name_of(self, incarnation: Incarnation) -> str:
        return allocation_name(self._label, self._worker, incarnation.number)

    def tries(self) -> None:
        """Note that the scheduler gets the order now."""
        self._attempts += 1

    def taken(self, now: float) -> None:
        """Note that the scheduler has taken the order."""
        if self.stage is Stage.DRAFTED:
            self._ordered(now)
        self._lags_until = now + UNSEEN_S

    def refused(self, now: float, *, hopeless: bool, certain: bool) -> None:
        """Let time pass before the order is repeated.

        Args:
            now: monotonic seconds.
            hopeless: whether somebody has to change something first.
            certain: whether the scheduler has not taken it; else it may have it all the same.
        """
        self._lags_until = now + UNSEEN_S
        self._short_lives += 1
        self._pause(now, hopeless=hopeless)
        if certain and self._attempts == 1 and self.stage in (Stage.DRAFTED, Stage.RECALLED):
            self._free(now)

    def condemn(
        self,
        grace_s: float,
        now: float,
        fence_until: float = float("inf"),
        *,
        leaves_s: float = 0.0,
    ) -> None:
        """Have it end.

        Args:
            grace_s: until it is ended by force.
            now: monotonic seconds.
            fence_until: when its agent must have ended by itself, for want of a head.
            leaves_s: how long its agent, which was asked to leave, has before it is cancelled.
        """
        if self.is_fresh:
            self._free(now)
            return
        self.leaves_until = now + leaves_s
        self.stage = CONDEMNED[self.stage]
        if self.stage is Stage.LEAVING:
            self._note("condemned")
        self._grace_s = grace_s
        self._fence_until = min(self._fence_until, fence_until)

    def was_in_vain(self) -> None:
        """Note that nothing ever ran there, since its place ends too soon: the next one is ordered
        after a pause, and the one after that after a longer one."""
        self._in_vain = True

    def sought(self) -> None:
        """Note that its scheduler cannot say whether it has it: it is cancelled all the same."""
        self._sought = self.is_condemned

    def _ordered(self, now: float) -> None:
        self.stage, self.waiting_since = Stage.ORDERED, now
        self._lags_until = now + UNSEEN_S
        self._note("ordered")

    def _pause(self, now: float, *, hopeless: bool, why: str = ENDED_SOON) -> None:
        self.why_later = why
        first = HOPELESS_PAUSE_S if hopeless else FIRST_PAUSE_S
        self.not_before = now + growing_pause(self._short_lives, first, LONGEST_PAUSE_S)

    # -- what the scheduler says -----------------------------------------------------------------

    def seen(
        self, allocation: Allocation | None, now: float, wall: float, *, speaks: bool = False
    ) -> Loss | None:
        """Take in what the scheduler says; the loss that it comes to, if it is one.

        Args:
            allocation: as listed; None: it is not listed.
            now: monotonic seconds.
            wall: seconds since the epoch.
            speaks: whether its agent was heard a moment ago.
        """
        self._sought = self.is_condemned
        sight = sight_of(allocation, lags=self._lags(now, wall))
        upshot = UPSHOTS[self.stage][sight]
        if allocation is None:
            # A scheduler that was restarted may have forgotten what runs: the agent knows better.
            stays = upshot is Upshot.VANISH and self.heard and speaks
            return None if stays else self._unlisted(upshot, now)
        if self.stage is Stage.DRAFTED:  # a head died between its order and its note of it
            self._note("ordered")
        if upshot is Upshot.TAKE_BACK:
            if allocation.renewed:  # its next agent may speak before its scheduler does
                return None if self.heard and speaks else self._moves(allocation, now)
            self.condemn(0.0, now)
            return Loss(_beside("its place was taken back", allocation), planned=True)
        if upshot is Upshot.END:
            return self._ended(allocation, now)
        if upshot is Upshot.WAIT:
            self._waits(allocation, now)
        elif upshot is Upshot.RUN:
            self._runs(allocation, now, wall)
        elif upshot in (Upshot.LIST, Upshot.PREPARE):
            self.stage = Stage.LISTED
            usual = PREPARED if upshot is Upshot.PREPARE else UNKNOWN
            self.reason = _reason(allocation) or usual
        elif upshot in (Upshot.APPEAR, Upshot.FENCE):
            self.stage = Stage.LEAVING
            self._note("condemned")
            if now >= self._fence_until:
                self._free(now)  # goes on being cancelled, as what nobody wants
        elif upshot is Upshot.FREE:
            self._free(now)
        return None

    def _lags(self, now: float, wall: float) -> bool:
        """Whether the order is so recent that the list may lack it."""
        age_s = math.inf if self._newest is None else wall - self._newest.at
        return now < self._lags_until or 0 <= age_s < UNSEEN_S

    def _unlisted(self, upshot: Upshot, now: float) -> Loss | None:
        if upshot is Upshot.LAG:
            self.reason = self.reason or UNLISTED
        elif upshot is Upshot.VANISH:
            self._ends(now, None)
            return Loss("its scheduler does not know its allocation any more")
        elif upshot is Upshot.FREE:
            self._free(now)
        return None

    def _ended(self, allocation: Allocation, now: float) -> Loss:
        gone = allocation.gone
        self._ends(now, gone)
        text = _beside(HOW.get(gone, HOW[None]), allocation)
        ends_as = EndReason.OUT_OF_MEMORY if gone is Gone.OUT_OF_MEMORY else None
        return Loss(text, gone is Gone.NEVER, planned=gone in TAKEN_BACK, ends_as=ends_as)

    def _moves(self, allocation: Allocation, now: float) -> Loss:
        """It waits for its next place under the same ticket, by its scheduler's own will."""
        self.stage, self.heard, self.ends_at, self._ran_since = Stage.LISTED, False, None, None
        self.reason, self.waiting_since = _reason(allocation) or MOVED, now
        return Loss(_beside("its place was taken back", allocation), planned=True, returns=True)

    def _waits(self, allocation: Allocation, now: float) -> None:
        self.stage = Stage.LISTED
        self.reason = _reason(allocation)
        self.waiting_since = min(self.waiting_since, now - allocation.waiting_s)

    def overdue(self, now: float, refusal: str = "") -> Loss | None:
        """Give up a wait that is longer than the limit, whatever it is for: for its order to be
        taken, in the queue, or for the place to be prepared.

        Args:
            now: monotonic seconds.
            refusal: why its order was not taken last.
        """
        waits = self.stage in (Stage.DRAFTED, Stage.ORDERED, Stage.LISTED) and not self.heard
        if not waits or now - self.waiting_since <= self._limit_s:
            return None
        self.condemn(0.0, now)
        why = refusal or self.reason or "its scheduler gives no reason"
        return Loss(f"it has waited for its place for {self._limit_s:.0f} s: {why}", hopeless=True)

    def _runs(self, allocation: Allocation, now: float, wall: float) -> None:
        self.stage, self.renewed = Stage.RUNNING, allocation.renewed
        self._ran_since = now if self._ran_since is None else self._ran_since
        if allocation.ends_in_s is not None and math.isfinite(allocation.ends_in_s):
            ends_at = wall + allocation.ends_in_s
            if self.ends_at is None or abs(ends_at - self.ends_at) > END_MOVES_S:
                self.ends_at = ends_at

    def _ends(self, now: float, gone: Gone | None) -> None:
        """It has ended without our doing: the next one comes after a pause, if its life was short,
        and after a long one if somebody has to change something first, or did not want it."""
        ran_s = 0.0 if self._ran_since is None else now - self._ran_since
        slowly = gone in (Gone.NEVER, Gone.CANCELLED)
        self._short_lives = 0 if ran_s >= SHORT_LIFE_S and not slowly else self._short_lives + 1
        if self._short_lives:
            why = f"{HOW[gone]}: the next one is asked for later" if slowly else ENDED_SOON
            self._pause(now, hopeless=slowly, why=why)
        self._free(now)

    def _free(self, now: float) -> None:
        """Make room for the next one. What we have ended ourselves had no short life, but for one
        in which nothing could run."""
        if self.stage is Stage.LEAVING:
            self._short_lives = self._short_lives + 1 if self._in_vain else 0
            if self._in_vain:
                self._pause(now, hopeless=False, why=IN_VAIN)
        self.stage, self.heard, self.ends_at, self._in_vain = Stage.GONE, False, None, False
        self._fence_until, self._lags_until, self.waiting_since = float("inf"), float("-inf"), now
        self._note("gone")

    def _note(self, stage: Literal["ordered", "condemned", "gone"]) -> None:
        """Note how far it is. What is not written costs the next head a question more."""
        assert self._newest is not None
        self._newest = replace(self._newest, stage=stage)

    def save(self) -> None:
        """Write down how far it is, if that is news. Without any lock, since disks may be slow; in
        one thread only. Raises ``OSError``."""
        newest = self._newest
        if newest is not None and newest != self._saved:
            write_incarnation(self._home, newest)
            self._saved = newest
            if newest.stage == "ordered":
                failpoint("allocations.order.noted")


def _reason(allocation: Allocation) -> str:
    return plain_reason(allocation.reason[:LONGEST_REASON])


def _beside(text: str, allocation: Allocation) -> str:
    return f"{text}: {reason}" if (reason := _reason(allocation)) else text
