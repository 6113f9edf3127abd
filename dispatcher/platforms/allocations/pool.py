"""The allocations of one service of an experiment: one thread asks its scheduler for them."""

from __future__ import annotations

import logging
import threading
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from pathlib import Path

from dispatcher.errors import BackendError, BequeathError, PassingBackendError
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Bounds,
)
from dispatcher.platforms.allocations.decide import decide
from dispatcher.platforms.allocations.held import CANCEL_AGAIN_S
from dispatcher.platforms.allocations.process import AllocationProcess, Load, always_enough
from trial_runtime.retry import growing_pause

#: Pauses after a question that the scheduler did not answer (seconds). Where somebody has to change
#: something first, asking often helps nobody.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
HOPELESS_PAUSE_S, LONGEST_HOPELESS_PAUSE_S = 60.0, 300.0

#: While somebody waits for an end, the scheduler is asked at least this often (seconds).
END_LOOK_S = 1.0

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
    """

    def __init__(
        self,
        make: Callable[[], Allocator],
        label: str,
        bounds: Bounds,
        *,
        leads: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.lock = threading.Condition()
        self.bounds = bounds
        self._make = make
        self._label = label
        self._leads = leads
        self._clock = clock
        self._processes: list[AllocationProcess] = []
        self._news = False
        self._stopped = False  # the thread, or it will never start
        self._thread = threading.Thread(target=self._work, name=f"allocations {label}", daemon=True)
        # Of the thread alone:
        self._allocator: Allocator | None = None
        self._next_look = float("-inf")
        self._failures = 0
        self._strays: dict[str, float] = {}  # → when they are cancelled again

    def process(
        self, worker: str, home: Path, *, slots: int = 1, load: Callable[[], Load] = always_enough
    ) -> AllocationProcess:
        """Add a worker; in the order of the file, before any is wanted.

        Args:
            worker: its name.
            home: its folder below the experiment's, on this machine.
            slots: trials that it runs at once.
            load: says how much there is to do; called in the engine's thread.
        """
        made = AllocationProcess(
            self, worker, home, self._label, slots=slots, load=load, clock=self._clock
        )
        self._processes.append(made)
        return made

    def close(self) -> None:
        """Nothing is left to close: its thread has ended with the last of its workers."""

    # -- for the processes, in the engine's thread ---------------------------------------------

    def wake(self) -> None:
        """See :class:`dispatcher.platforms.allocations.process.Pool`."""
        self._news = True
        if self._thread.ident is None and not self._stopped:
            if all(process.is_over for process in self._processes):
                self._stopped = True  # nothing was ever wanted, nor left by a head before
            else:
                self._thread.start()
        self.lock.notify_all()

    def wait_for(self, process: AllocationProcess, until: float) -> None:
        """See :class:`dispatcher.platforms.allocations.process.Pool`."""
        give_up = until + CLOSE_S
        with self.lock:
            while not (self._stopped or process.is_over):
                left_s = give_up - self._clock()
                if left_s <= 0:
                    _log.warning("%s: its allocation has not ended; left behind", process.place)
                    return
                self.lock.wait(left_s)
            last = all(each.is_over for each in self._processes)
        if last and self._thread.is_alive():
            self._thread.join(max(0.0, give_up - self._clock()))

    # -- the thread ------------------------------------------------------------------------------

    def _work(self) -> None:
        try:
            while self._goes_on():
                try:
                    self._turn()
                except BequeathError as error:
                    self._failed(error)
                except Exception as error:  # noqa: BLE001 - the top of a thread
                    _log.exception("%s: %s", self._label, error)
                    self._failed(BackendError(f"{type(error).__name__}: {error}"))
        finally:
            self._close()
            with self.lock:
                self._stopped = True
                self.lock.notify_all()

    def _goes_on(self) -> bool:
        with self.lock:
            over = all(process.is_over for process in self._processes)
        return not over and self._leads()

    def _close(self) -> None:
        if self._allocator is None:
            return
        try:
            self._allocator.close()
        except Exception as error:  # noqa: BLE001 - the end of a thread
            _log.exception("%s: %s", self._label, error)

    def _turn(self) -> None:
        """Look if it is time, do what follows, and wait until there is something to do."""
        if self._allocator is None:
            self._allocator = self._make()
        allocator = self._allocator
        if self._clock() >= self._next_look:
            listed = allocator.look()
            self._next_look = self._clock() + allocator.look_every_s
            orders, strays = self._take(listed)
            self._failures = 0
        else:
            orders, strays = self._take(None)
        self._cancel(allocator, strays)
        self._tell(allocator)
        for process, order in orders:
            self._submit(allocator, process, order)
        self._save()
        with self.lock:
            ending = any(each.is_ending for each in self._processes)
            if ending:
                self._next_look = min(self._next_look, self._clock() + END_LOOK_S)
            if not self._news:
                self.lock.wait(max(0.0, self._next_look - self._clock()))
            self._news = False

    def _take(
        self, listed: Sequence[Allocation] | None
    ) -> tuple[list[tuple[AllocationProcess, AllocationOrder]], list[str]]:
        """Take in what the scheduler lists, if it was asked; the orders that follow, and what has
        no owner any more."""
        strays: list[str] = []
        with self.lock:
            now = self._clock()
            if listed is not None:
                by_name = {each.name: each for each in listed}
                owned = {process.name for process in self._processes}
                for process in self._processes:
                    process.scheduler_answers(by_name.get(process.name or ""))
                self.lock.notify_all()  # whoever waits for an end
                strays = self._strays_of(by_name, owned, now)
            seats = [process.seat() for process in self._processes]
            demand = max((process.queued for process in self._processes), default=0)
            choice = decide(self.bounds, seats, demand, now)
            by_worker = {process.place: process for process in self._processes}
            for worker in choice.release:
                by_worker[worker].release()
            return [(by_worker[w], by_worker[w].order()) for w in choice.submit], strays

    def _strays_of(
        self, by_name: dict[str, Allocation], owned: set[str | None], now: float
    ) -> list[str]:
        """Allocations of this service that no worker owns: of one that the file does not have any
        more, or that was given up while nobody could say whether it had ended."""
        theirs = [
            name
            for name, each in by_name.items()
            if name.startswith(f"{self._label}-")
            and name not in owned
            and each.state is not AllocationState.ENDED
        ]
        due = [name for name in theirs if now >= self._strays.get(name, float("-inf"))]
        self._strays = {name: self._strays.get(name, now) for name in theirs}
        self._strays |= dict.fromkeys(due, now + CANCEL_AGAIN_S)
        return due

    def _cancel(self, allocator: Allocator, strays: list[str]) -> None:
        with self.lock:
            now = self._clock()
            by_grace: dict[float, list[str]] = defaultdict(list)
            for process in self._processes:
                name, grace_s = process.name, process.grace_to_cancel(now)
                if name is not None and grace_s is not None:
                    by_grace[grace_s].append(name)
        if strays:
            by_grace[0.0] += strays
        for grace_s, names in by_grace.items():
            allocator.cancel(names, grace_s)
            self._next_look = min(self._next_look, self._clock() + END_LOOK_S)

    def _tell(self, allocator: Allocator) -> None:
        for process in self._processes:
            with self.lock:
                name, config = process.name, process.config_to_tell()
            if name is not None and config is not None:
                allocator.tell(name, config)

    def _submit(
        self, allocator: Allocator, process: AllocationProcess, order: AllocationOrder
    ) -> None:
        try:
            process.save()
            allocator.submit(order)
        except OSError as error:
            self._refused(process, f"cannot note its allocation: {error.strerror}", hopeless=False)
        except BequeathError as error:
            hopeless = not isinstance(error, PassingBackendError)
            self._refused(process, _text(error), hopeless=hopeless)
        else:
            _log.info("%s: submitted %s", process.place, order.name)
            with self.lock:
                process.was_ordered()

    def _refused(self, process: AllocationProcess, text: str, *, hopeless: bool) -> None:
        _log.warning("%s: %s", process.place, text)
        with self.lock:
            process.was_refused(text, hopeless=hopeless)

    def _save(self) -> None:
        for process in self._processes:
            try:
                process.save()
            except OSError as error:
                _log.error("%s: cannot note its allocation: %s", process.place, error.strerror)

    def _failed(self, error: BequeathError) -> None:
        """Let some time pass after a question without an answer."""
        hopeless = not isinstance(error, PassingBackendError)
        _log.warning("%s: %s", self._label, _text(error))
        self._failures += 1
        first, longest = FIRST_PAUSE_S, LONGEST_PAUSE_S
        if hopeless:
            first, longest = HOPELESS_PAUSE_S, LONGEST_HOPELESS_PAUSE_S
        until = self._clock() + growing_pause(self._failures, first, longest)
        with self.lock:
            for process in self._processes:
                process.scheduler_fails(_text(error), hopeless=hopeless)
            ending = any(process.is_ending for process in self._processes)
            while (left_s := until - self._clock()) > 0 and self._leads():
                self.lock.wait(left_s)
                now_ending = any(process.is_ending for process in self._processes)
                if now_ending and not ending:
                    return  # somebody waits now: another attempt at once
                if all(process.is_over for process in self._processes):
                    return


def _text(error: BequeathError) -> str:
    where = f"{error.where}: " if error.where else ""
    return f"{where}{error.message}" + (f"; {error.hint}" if error.hint else "")
