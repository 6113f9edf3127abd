"""The process of an agent that runs in an allocation: what the head wants, and what was seen of it.

The engine's thread puts wishes down and picks up what became of them; the thread of the pool
(:mod:`dispatcher.platforms.allocations.pool`) talks with the scheduler. Both hold the lock of the
pool. A worker has one allocation at a time, its newest incarnation:

===========  ==============================  ====================================================
wanted       the newest incarnation          then
===========  ==============================  ====================================================
no           is gone                         nothing
no           any other                       it is cancelled until it is gone
yes          is gone                         the next one is ordered, if it is needed, after a pause
yes          waits or is being prepared      the worker waits; beyond the limit it is lost for good
yes          runs, or its agent was heard    the worker has a process; its silence is counted
yes          ran, and waits again            its place was taken back: lost without blame
yes          was seen, and is not listed     lost
yes          has ended                       lost: without blame if its place was taken back
===========  ==============================  ====================================================

A worker that is lost is not wanted until the engine asks again.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple, Protocol

from msgspec.structs import replace

from dispatcher.platforms.agents.process import Loss, Waiting
from dispatcher.platforms.allocations.allocation import Allocation, AllocationOrder, Bounds
from dispatcher.platforms.allocations.decide import Seat
from dispatcher.platforms.allocations.held import SUBMITTED, UNSEEN_S, Held
from dispatcher.platforms.allocations.order import order_of
from trial_runtime.agent.config import AgentConfig


class Load(NamedTuple):
    """How much there is to do: ``queued`` trials, and whether anything runs on this worker."""

    queued: int
    busy: bool


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

    def wait_for(self, process: AllocationProcess, until: float) -> None:
        """Block until nothing more is to be done for a process, or this moment is there."""
        ...


class AllocationProcess:
    """See :class:`dispatcher.platforms.agents.AgentProcess`.

    Args:
        pool: of its service.
        worker: its name.
        home: the worker's folder below the experiment's, on this machine.
        label: the beginning of the names of all allocations of the service.
        slots: trials that it runs at once.
        load: says how much there is to do. Called in the engine's thread.
        clock: monotonic seconds.
        wall: seconds since the epoch.
    """

    outdated = False  # an allocation starts with the code that is there then

    def __init__(
        self,
        pool: Pool,
        worker: str,
        home: Path,
        label: str,
        *,
        slots: int = 1,
        load: Callable[[], Load] = always_enough,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.place = worker
        self._silence = ""  # of the scheduler: why it cannot be asked
        self._refusal = ""  # why the last order was not taken
        self._pool = pool
        self._home = home
        self._slots = slots
        self._load = load
        self._clock = clock
        self._wall = wall
        self._held = Held(worker, home, label, pool.bounds.limit_s, clock())
        self._wanted: AgentConfig | None = None
        self._untold: AgentConfig | None = None  # for an allocation that was there before us
        self._looked = False  # whether the scheduler was asked since this head began
        self._loss: Loss | None = None
        self._queued = 0
        self._idle_since: float | None = None
        self._released = False
        self._head_grace_s = float("inf")
        self._given_up = False
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
        return self._silence or self._refusal

    @property
    def ends_at(self) -> float | None:
        """The wall time of its allocation."""
        return self._held.ends_at

    def waiting(self) -> Waiting | None:
        """See :meth:`dispatcher.platforms.agents.AgentProcess.waiting`."""
        with self._pool.lock:
            if self._wanted is None or self.pid is not None:
                return None
            held, now = self._held, self._clock()
            if not self._looked and (held.is_there or not self._silence):
                return None  # the agent of the head before may run there, and is heard soon
            if held.condemned:
                reason = "its last allocation has not ended yet"
            elif held.is_there:
                reason = self.trouble or held.reason or SUBMITTED
            elif now < held.not_before:
                reason = "the one before ended soon: the next is asked for later"
            else:
                reason = self._silence
            return Waiting(reason, max(0.0, now - held.waiting_since))

    def ensure(self, config: AgentConfig) -> None:
        """Have an agent there from now on, whenever the scheduler gives it a place."""
        queued = self._load().queued
        with self._pool.lock:
            self._queued = queued
            self._wanted, self._given_up = config, False
            self._head_grace_s = config.head_grace_s
            if not self._held.needs_order:
                self._untold = config
            self._pool.wake()

    def look(self, silent_s: float) -> Loss | None:
        """See :meth:`AgentProcess.look`: the pool's thread finds out."""
        load = self._load()
        with self._pool.lock:
            self._queued = load.queued
            if load.queued or load.busy:
                self._idle_since, self._released = None, False
            elif self._idle_since is None:
                self._idle_since = self._clock()
            loss, self._loss = self._loss, None
            if loss is None and self._released:
                self._released = False
                if self.pid is not None:
                    return Loss("nothing was to run there", planned=True)
                if self._held.is_there:  # in the queue still: nobody has seen its agent
                    self._held.condemn(0.0)
                    self._pool.wake()
        return loss

    def expects(self, pid: int, ticket: str = "") -> bool | None:
        """Whether the agent was started with the ticket of the newest incarnation."""
        with self._pool.lock:
            if self._wanted is None:
                return None
            return self._held.expects(ticket, self._clock())

    def give_up(self, grace_s: float = 0.0) -> None:
        """Have its allocation ended, and order no other one before it is gone."""
        with self._pool.lock:
            self._wanted, self._given_up = None, True
            if self._held.is_there:
                leaves_at = self._clock() + self._head_grace_s + UNSEEN_S
                self._held.condemn(grace_s, leaves_at)
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
    def is_over(self) -> bool:
        """Whether this head has nothing more to do for it."""
        return self._left or (self._end_by is not None and not self._held.is_there)

    @property
    def is_ending(self) -> bool:
        """Whether its end is awaited."""
        return self._end_by is not None and not self.is_over

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
            self._wanted is not None and self._looked and not ends,
            held,
            held and not (self._held.heard or self._held.condemned),
            self._idle_since,
            self._held.not_before,
        )

    def release(self) -> None:
        """Give its allocation back when the engine looks next, if nothing is to run there then."""
        self._released = not self._held.condemned

    def config_to_tell(self) -> AgentConfig | None:
        """The configuration that an allocation of the head before has to get, once."""
        if self._untold is None or self._held.state is None or self._held.condemned:
            return None
        config, self._untold = self._untold, None
        return order_of("", replace(config, ticket=self._held.ticket), self._home).config

    def grace_to_cancel(self, now: float) -> float | None:
        """The grace with which its allocation is to be cancelled now; None if it is not."""
        held, end_by = self._held, self._end_by
        if self._left:
            return None
        if end_by is not None and held.is_there:
            if now >= end_by and not self._forced:
                self._forced = True
                held.condemn(0.0)
            elif not held.condemned and (self._ask or self.pid is None):
                held.condemn(max(0.0, end_by - now))
        if self._given_up and held.is_there and not held.condemned:
            held.condemn(0.0)  # ordered while it was given up
        return held.grace_to_cancel(now)

    def order(self) -> AllocationOrder:
        """The order of its next incarnation, which must be saved before it is given."""
        assert self._wanted is not None
        self._untold = None
        name, ticket = self._held.begin(self._clock(), self._wall())
        return order_of(name, replace(self._wanted, ticket=ticket), self._home)

    def save(self) -> None:
        """Write its newest incarnation down, without the lock. Raises ``OSError``."""
        self._held.save()

    def was_ordered(self) -> None:
        """Note that the scheduler has taken the order."""
        self._refusal = ""
        self._held.ordered(self._clock())

    def was_refused(self, text: str, *, hopeless: bool) -> None:
        """Note that the scheduler has not taken the order; it may have it all the same.

        ``hopeless``: somebody has to change something first.
        """
        self._refusal = text
        self._held.refused(self._clock(), hopeless=hopeless)
        if hopeless:
            self._lose(Loss(text, hopeless=True))

    def scheduler_fails(self, text: str, *, hopeless: bool) -> None:
        """Note that the scheduler cannot be asked. Where an agent may run its lease is what counts;
        where none can be had, and somebody has to change something first, that is a loss."""
        reported, self._silence = self._silence == text, text
        if hopeless and not reported and self._held.needs_order:
            self._lose(Loss(text, hopeless=True))

    def scheduler_answers(self, allocation: Allocation | None) -> None:
        """Take in what the scheduler says of the newest incarnation; None: it does not list it."""
        self._silence, self._looked = "", True
        loss = self._held.seen(allocation, self._clock(), self._wall())
        if loss is not None:
            self._lose(loss)

    def _lose(self, loss: Loss) -> None:
        if self._wanted is not None:
            self._loss, self._wanted = loss, None
