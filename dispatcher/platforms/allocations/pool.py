"""The allocations of one service of an experiment: one thread asks its scheduler for them."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

from dispatcher.platforms.allocations.allocation import Allocator, Bounds
from dispatcher.platforms.allocations.probe import ProbeNeeds
from dispatcher.platforms.allocations.probing import Probing
from dispatcher.platforms.allocations.process import AllocationProcess, Load, always_enough
from dispatcher.platforms.allocations.turns import LONGEST_PAUSE_S, Turns

#: What an end may take beyond its moment (seconds).
CLOSE_S = 5.0

_log = logging.getLogger("bequeath.backends.allocations")


class AllocationPool:
    """The processes of a service's workers, and the thread that serves them.

    Args:
        make: makes the allocator; called in the thread, again after it failed.
        label: the beginning of the names of all allocations of the service. Whatever has such a
            name and belongs to no worker is cancelled.
        bounds: how many there are to be.
        leads: whether this head still leads: one that does not changes nothing anywhere.
        clock: monotonic seconds.
        wall: the moment of now as the core counts it, in seconds since the epoch.
        probes: what a place is looked over for before the first trial; None: nothing.
    """

    def __init__(
        self,
        make: Callable[[], Allocator],
        label: str,
        bounds: Bounds,
        *,
        leads: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
        probes: ProbeNeeds | None = None,
    ) -> None:
        self.lock = threading.Condition()
        self.bounds = bounds
        self._label = label
        self._leads = leads
        self._clock = clock
        self._wall = wall
        self._processes: list[AllocationProcess] = []
        self._news = False
        self._stopped = False  # the thread, or it will never start
        self._closed = False
        self._thread = threading.Thread(target=self._work, name=f"allocations {label}", daemon=True)
        self._turns = Turns(
            make,
            label,
            bounds,
            self._processes,
            self.lock,
            leads=leads,
            clock=clock,
            probing=None if probes is None else Probing(label, probes, clock, bounds.limit_s),
        )

    def process(
        self,
        worker: str,
        home: Path,
        *,
        agents_home: Path | None = None,
        slots: int = 1,
        load: Callable[[], Load] = always_enough,
    ) -> AllocationProcess:
        """Add a worker; in the order of the file, before any is wanted.

        Args:
            worker: its name.
            home: its folder below the experiment's, on this machine.
            agents_home: the folder that its agents keep to; None: the same.
            slots: trials that it runs at once.
            load: says how much there is to do; called in the engine's thread.
        """
        made = AllocationProcess(
            self,
            worker,
            home,
            self._label,
            agents_home=agents_home,
            slots=slots,
            load=load,
            clock=self._clock,
            wall=self._wall,
        )
        self._processes.append(made)
        return made

    def close(self) -> None:
        """End the thread, if it has not with the last of its workers: what nobody waits for any
        more does not keep it from removing what has ended. Blocks a few seconds at most."""
        with self.lock:
            self._closed = self._news = True
            self.lock.notify_all()
        if self._thread.is_alive() and not self.hangs():
            self._thread.join(CLOSE_S)

    # -- for the processes, in the engine's thread ---------------------------------------------

    def wake(self) -> None:
        """See :class:`dispatcher.platforms.allocations.process.Pool`."""
        self._news = True
        if self._thread.ident is None and not self._stopped:
            if self._is_over:
                self._stopped = True  # nothing was ever wanted, nor left by a head before
            else:
                self._thread.start()
        self.lock.notify_all()

    def hangs(self) -> str:
        """See :class:`dispatcher.platforms.allocations.process.Pool`."""
        return self._turns.hangs()

    def wait_for(self, process: AllocationProcess, until: float) -> None:
        """See :class:`dispatcher.platforms.allocations.process.Pool`."""
        give_up = until + CLOSE_S
        with self.lock:
            while not (self._stopped or process.is_over):
                left_s = give_up - self._clock()
                if left_s <= 0:
                    why = process.cancel_trouble or process.trouble or "it lists it still"
                    text = "%s: its scheduler has not ended %s, which is left behind: %s"
                    _log.warning(text, process.place, process.name, why)
                    return
                self.lock.wait(left_s)
            last = self._is_over
        if last and self._thread.is_alive():
            self._thread.join(max(0.0, give_up - self._clock()))

    # -- the thread ------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while self._goes_on():
                try:
                    until = self._turns.turn()
                except Exception as error:  # noqa: BLE001 - the top of a thread
                    _log.exception("%s: %s", self._label, error)
                    until = self._clock() + LONGEST_PAUSE_S
                    with self.lock:
                        for process in self._processes:
                            process.scheduler_fails(f"{type(error).__name__}: {error}")
                with self.lock:
                    self.lock.notify_all()  # whoever waits for an end
                    if not (self._news or self._is_over):
                        self.lock.wait(max(0.0, until - self._clock()))
                    self._news = False
        finally:
            self._turns.close()
            with self.lock:
                self._stopped = True
                self.lock.notify_all()

    def _goes_on(self) -> bool:
        with self.lock:
            over = self._is_over
        return not (over or self._closed) and self._leads()

    @property
    def _is_over(self) -> bool:
        """Whether nothing more is to be done for any worker. With the lock held."""
        return all(process.is_over for process in self._processes)
