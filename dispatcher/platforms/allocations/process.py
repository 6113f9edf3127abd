"""The process of an agent that runs in an allocation: what the head wants, and what was seen of it.

The engine's thread puts wishes down and picks up what became of them; the thread of the pool
(:mod:`dispatcher.platforms.allocations.turns`) talks with the scheduler. Both hold the lock of the
pool. A worker has one allocation at a time, its newest incarnation. What is seen of it is judged by
the table in :mod:`dispatcher.platforms.allocations.stages`; beside that there are wishes:

========  =============================  ==========================================================
wanted    the newest incarnation         then
========  =============================  ==========================================================
no        is gone                        nothing
no        any other                      it is cancelled until it is gone
yes       is gone                        the next one is ordered, if it is needed, after a pause
yes       runs, or its agent was heard   the worker has a process; its silence is counted
yes       any other                      the worker waits, and says why
========  =============================  ==========================================================

A worker that is lost is not wanted until the engine asks again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Container
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from dispatcher.platforms.agents.process import Loss, Waiting
from dispatcher.platforms.allocations.allocation import Allocation, AllocationOrder, Bounds
from dispatcher.platforms.allocations.decide import Seat
from dispatcher.platforms.allocations.held import (
    FIRST_PAUSE_S,
    HOPELESS_PAUSE_S,
    LONGEST_PAUSE_S,
    SUBMITTED,
    UNSEEN_S,
    Held,
)
from dispatcher.platforms.allocations.order import order_of
from dispatcher.platforms.allocations.stages import Stage
from trial_runtime.agent.config import AgentConfig
from trial_runtime.retry import growing_pause

#: An agent whose newest message is no older than this (seconds) runs, whatever its scheduler says.
SPEAKS_S = 10.0


class Load(NamedTuple):
    """How much there is to do: ``queued`` trials, and whether anything runs on this worker.
    ``begun``: attempts in the place that it has. ``spent``: why none may begin there any more;
    empty if one may. ``going``: whether its scheduler has asked its agent to go."""

    queued: int
    busy: bool
    begun: int = 0
    spent: str = ""
    going: bool = False


def always_enough() -> Load:
    """The load of a head that has not said how much there is to do: all workers are needed."""
    return Load(1 << 30, True)


class Pool(Protocol):
    """The pool of a service, as far as its processes use it. Thread: the engine's."""

    lock: threading.Condition
    bounds: Bounds

    def wake(self) -> None:
        """Look at what was put down; called with the lock held."""
        ...

    def hangs(self) -> str:
        """Say which call of the platform has not returned for long; empty if none."""
        ...

    def wait_for(self, process: AllocationProcess, until: float) -> None:
        """Block until nothing more is to be done for a process, or this moment is there."""
        ...


class AllocationProcess:
    """See :class:`dispatcher.platforms.agents.process.AgentProcess`.

    Args:
        pool: of its service.
        worker: its name.
        home: the worker's folder below the experiment's, on this machine.
        label: the beginning of the names of all allocations of the service.
        agents_home: the folder that its agents keep to; None: the same.
        slots: trials that it runs at once.
        load: says how much there is to do. Called in the engine's thread.
        clock: monotonic seconds.
        wall: the moment of now as the core counts it, in seconds since the epoch.
    """

    outdated = False  # an allocation starts with the code that is there then

    def __init__(
        self,
        pool: Pool,
        worker: str,
        home: Path,
        label: str,
        *,
        agents_home: Path | None = None,
        slots: int = 1,
        load: Callable[[], Load] = always_enough,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.place = worker
        self.cancel_trouble = ""  # why its allocation could not be cancelled
        self.held_back = ""  # why nothing is ordered for it yet
        self._silence = ""  # of the scheduler: why it cannot be asked
        self._blamed = ""  # the silence for which it was lost
        self._refusal = ""  # why the last order was not taken
        self._not_told = ""  # why its allocation does not know the address of this head
        self._pool = pool
        self._home = home if agents_home is None else agents_home
        self._slots = slots
        self._load = load
        self._clock = clock
        self._wall = wall
        self._held = Held(worker, home, label, pool.bounds.limit_s, clock())
        self._wanted: AgentConfig | None = None
        self._untold: AgentConfig | None = None  # for an allocation that was there before us
        self._tell_failures = 0
        self._tell_at = float("-inf")
        self._looked = False  # whether the scheduler was asked since this head began
        self._loss: Loss | None = None
        self._queued, self._silent_s = 0, float("inf")
        self._idle_since: float | None = None
        self._released = False
        self._head_grace_s = float("inf")
        self._ask = False
        self._forced = False
        self._end_by: float | None = None
        self._left = False

    # -- the engine's thread -----------------------------------------------------------------

    @property
    def pid(self) -> int | None:
        """The number of the incarnation whose agent runs, or should by now."""
        return self._held.number if self._wanted is not None else None

    @property
    def trouble(self) -> str:
        """Why there is none, as far as the scheduler is the reason."""
        return self._pool.hangs() or self._silence or self._refusal or self._not_told

    @property
    def ends_at(self) -> float | None:
        """The wall time of its allocation."""
        return self._held.ends_at

    def waiting(self) -> Waiting | None:
        """See :meth:`dispatcher.platforms.agents.process.AgentProcess.waiting`."""
        with self._pool.lock:
            if self._wanted is None or self.pid is not None:
                return None
            if not self._looked and (self._held.is_there or not self.trouble):
                return None  # the agent of the head before may run there, and is heard soon
            now = self._clock()
            return Waiting(self._reason(now), max(0.0, now - self._held.waiting_since))

    def _reason(self, now: float) -> str:
        """Why it waits; empty if nobody asks for a place."""
        held = self._held
        if held.is_condemned:
            again = f"; {self.cancel_trouble}" if self.cancel_trouble else ""
            return f"its last allocation has not ended yet{again}"
        if held.is_there:
            trouble = self._pool.hangs() or self._silence or self._refusal
            return trouble or held.reason or SUBMITTED
        if now < held.not_before:
            return self.trouble or held.why_later
        return self._pool.hangs() or self._silence or self.held_back

    def ensure(self, config: AgentConfig) -> None:
        """Have an agent there from now on, whenever the scheduler gives it a place."""
        queued = self._load().queued
        with self._pool.lock:
            self._queued = queued
            self._wanted = config
            self._head_grace_s = config.head_grace_s
            if self._held.is_there:
                self._untold = config
            self._pool.wake()

    def look(self, silent_s: float) -> Loss | None:
        """See :meth:`AgentProcess.look`: the pool's thread finds out."""
        load = self._load()
        with self._pool.lock:
            self._queued, self._silent_s = load.queued, silent_s
            if load.queued or load.busy:
                self._idle_since, self._released = None, False
            elif self._idle_since is None:
                self._idle_since = self._clock()
            loss, self._loss = self._loss, None
            spent = load.spent and not (load.going and self._held.renewed)  # it comes again
            if loss is None and spent and not load.busy and self.pid is not None:
                if not load.begun:
                    self._held.was_in_vain()
                return Loss(load.spent, planned=True, leaves=True)
            if loss is None and self._released:
                self._released = False
                if self.pid is not None:
                    return Loss("nothing was to run there", planned=True, leaves=True)
                if self._held.is_there:  # in the queue still: nobody has seen its agent
                    self._held.condemn(0.0, self._clock())
                    self._pool.wake()
        return loss

    def expects(self, pid: int, ticket: str = "") -> bool | None:
        """Whether the agent was started with the ticket of the newest incarnation."""
        with self._pool.lock:
            if self._wanted is None:
                return None
            return self._held.hears(ticket, self._clock())

    def give_up(self, grace_s: float = 0.0) -> None:
        """Have its allocation ended, and order no other one before it is gone."""
        with self._pool.lock:
            self._wanted = None
            if self._held.is_there:
                now = self._clock()
                fence_until = now + self._head_grace_s + UNSEEN_S
                self._held.condemn(0.0, now, fence_until, leaves_s=grace_s)
                self._pool.wake()

    def terminate(self) -> None:
        """Have it cancelled when :meth:`end` is called, with the time until then as its grace."""
        with self._pool.lock:
            self._ask = True

    def end(self, until: float) -> None:
        """Wait for the end of its allocation, and cancel it at this moment. What waits in the queue
        is cancelled at once."""
        with self._pool.lock:
            self._end_by = until
            self._pool.wake()
        self._pool.wait_for(self, until)

    def leave(self) -> None:
        """Let the allocation wait, or its agent run, for the next head."""
        with self._pool.lock:
            self._left = True
            self._pool.wake()
        self._pool.wait_for(self, self._clock())

    # -- the pool's thread, with the lock held ------------------------------------------------

    @property
    def name(self) -> str | None:
        """The name of the allocation that it has, or may have; None if it has none."""
        return self._held.name

    @property
    def ends(self) -> bool:
        """Whether its allocation is to end with this head."""
        return self._end_by is not None and not self._left

    @property
    def is_over(self) -> bool:
        """Whether this head has nothing more to do for it."""
        return self._left or (self._end_by is not None and not self._held.is_there)

    @property
    def is_ending(self) -> bool:
        """Whether its end is awaited."""
        return self.ends and not self.is_over

    @property
    def forced_at(self) -> float | None:
        """When its allocation is cancelled at last (monotonic); None: it is not, or was."""
        return self._end_by if self.is_ending and not self._forced else None

    @property
    def queued(self) -> int:
        """How many trials were queued when the engine looked last."""
        return self._queued

    def seat(self) -> Seat:
        """The worker, as far as it matters for how many allocations there are."""
        ends = self._left or self._end_by is not None
        held = not self._held.needs_order
        return Seat(
            self.place,
            self._slots,
            self._wanted is not None and not ends,
            held,
            held and not (self._held.heard or self._held.is_condemned),
            self._idle_since,
            self._held.not_before,
        )

    def release(self) -> None:
        """Give its allocation back when the engine looks next, if nothing is to run there then."""
        self._released = not self._held.is_condemned

    def config_to_tell(self) -> AgentConfig | None:
        """The configuration that an allocation of the head before has to get now."""
        if self._untold is None or not self._held.is_listed or self._clock() < self._tell_at:
            return None
        return order_of("", replace(self._untold, ticket=self._held.ticket), self._home).config

    def was_told(self) -> None:
        """Note that its allocation has got it."""
        self._untold, self._not_told, self._tell_failures = None, "", 0

    def was_not_told(self, text: str, *, hopeless: bool) -> bool:
        """Let time pass before its allocation is told again; whether the reason is news."""
        news, self._not_told = text != self._not_told, text
        self._tell_failures += 1
        first = HOPELESS_PAUSE_S if hopeless else FIRST_PAUSE_S
        self._tell_at = self._clock() + growing_pause(self._tell_failures, first, LONGEST_PAUSE_S)
        return news

    def grace_to_cancel(self, now: float) -> float | None:
        """How long its allocation may take to end; None if it is not to be cancelled."""
        held, end_by = self._held, self._end_by
        if self._left:
            return None
        if end_by is not None and held.is_there:
            if now >= end_by:
                self._forced = True
                held.condemn(0.0, now)
                held.sought()
            elif not held.is_condemned and (self._ask or self.pid is None):
                held.condemn(max(0.0, end_by - now), now)
        return None if self._end_by is None and now < held.leaves_until else held.grace_s

    def order(self, listed: Container[str] = ()) -> AllocationOrder:
        """The order of its next incarnation, which must be saved before it is given.

        ``listed``: names that the scheduler has, none of which is used anew.
        """
        assert self._wanted is not None
        name, ticket = self._held.begin(self._clock(), self._wall(), listed)
        if self._held.is_fresh:
            self.was_told()  # by its order
        return order_of(name, replace(self._wanted, ticket=ticket), self._home)

    @property
    def was_ordered_ever(self) -> bool:
        """Whether an allocation was ever ordered for it, by this head or one before."""
        return self._held.ticket != ""

    @property
    def agent(self) -> tuple[AgentConfig, Path] | None:
        """The configuration and the folder of the agent that is wanted here; None if none is."""
        return (self._wanted, self._home) if self._wanted is not None else None

    def save(self) -> None:
        """Write its newest incarnation down, without the lock. Raises ``OSError``."""
        if self._held.is_fresh:
            self._home.mkdir(mode=0o700, parents=True, exist_ok=True)
        self._held.save()

    def tries(self) -> bool:
        """Whether its order is to be given still, which happens now."""
        due = self.seat().wanted and self._held.stage is Stage.DRAFTED
        if due:
            self._held.tries()
        return due

    def was_ordered(self) -> None:
        """Note that the scheduler has taken the order."""
        self._refusal = ""
        self._held.taken(self._clock())

    def was_refused(self, text: str, *, hopeless: bool, certain: bool) -> bool:
        """Note that the scheduler has not taken the order; whether the reason is news.

        Args:
            text: why.
            hopeless: whether somebody has to change something first.
            certain: whether it has not taken it; else it may have it all the same.
        """
        news, self._refusal = text != self._refusal, text
        self._held.refused(self._clock(), hopeless=hopeless, certain=certain)
        if hopeless:
            self._lose(Loss(text, hopeless=True))
        return news

    def scheduler_fails(self, text: str, *, hopeless: bool = False) -> None:
        """Note that the scheduler cannot be asked. Where an agent may run its lease is what counts.

        ``hopeless``: somebody has to change something first, and an allocation is needed here: that
        is a loss, once for each text.
        """
        self._silence = text
        self._held.sought()
        if hopeless and text != self._blamed:
            self._blamed = text
            self._lose(Loss(text, hopeless=True))

    def scheduler_answers(self, allocation: Allocation | None) -> None:
        """Take in what the scheduler says of the newest incarnation; None: it does not list it."""
        self._silence, self._blamed, self._looked = "", "", True
        speaks = self._silent_s < SPEAKS_S
        loss = self._held.seen(allocation, self._clock(), self._wall(), speaks=speaks)
        if self._held.is_listed:
            self._refusal = ""  # it was taken all the same
        if loss is None:
            loss = self._held.overdue(self._clock(), self._refusal)
        if loss is not None:
            self._lose(loss)

    def _lose(self, loss: Loss) -> None:
        if self._wanted is not None:
            self._loss, self._wanted = loss, None
