"""The turns of a pool's thread: it looks, then cancels, tells and orders what follows.

Each call of the platform may fail for itself: nothing that concerns one allocation stops what
concerns another. A turn asks no further after a few failures, so that the next look is not late.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, NamedTuple

from dispatcher.errors import DispatcherError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Bounds,
)
from dispatcher.platforms.allocations.cancelling import Cancelling
from dispatcher.platforms.allocations.decide import decide
from dispatcher.platforms.allocations.probing import Probing
from dispatcher.platforms.allocations.process import AllocationProcess
from dispatcher.platforms.reasons import plain_reason
from trial_runtime.failpoints import failpoint
from trial_runtime.retry import growing_pause

#: Pauses after a question that the scheduler did not answer (seconds). Where somebody has to change
#: something first, asking often helps nobody.
FIRST_PAUSE_S, LONGEST_PAUSE_S = 1.0, 15.0
HOPELESS_PAUSE_S, LONGEST_HOPELESS_PAUSE_S = 60.0, 300.0

#: Bounds on the seconds between two looks, whatever a platform says.
SHORTEST_LOOK_S, LONGEST_LOOK_S = 0.1, 3600.0

#: While somebody waits for an end, the scheduler is asked at least this often (seconds), and after
#: a question without an answer at least this often.
END_LOOK_S, END_PAUSE_S = 1.0, 2.0

#: After so many failures a turn asks no further: each may have taken a timeout.
MOST_FAILURES = 3

#: A call that has not returned for so long (seconds) is a reason why others wait.
HANGS_S = 60.0

_log = logging.getLogger("bequeath.backends.allocations")


class _Fault(NamedTuple):
    """Why something failed. ``hopeless``: somebody has to change something first. ``certain``:
    nothing was done."""

    text: str
    hopeless: bool = False
    certain: bool = False


class Turns:
    """The turns of one service's pool. Thread: the pool's, but for :meth:`hangs`.

    Args:
        make: makes the allocator; called in a turn, again after it failed.
        label: the beginning of the names of all allocations of the service.
        bounds: how many there are to be.
        processes: of its workers, in the order of the file.
        lock: of the processes; no call of the platform is made with it.
        leads: whether this head still leads.
        clock: monotonic seconds.
        probing: looks a place over before the first order; None: nobody does.
    """

    def __init__(
        self,
        make: Callable[[], Allocator],
        label: str,
        bounds: Bounds,
        processes: Sequence[AllocationProcess],
        lock: threading.Condition,
        *,
        leads: Callable[[], bool],
        clock: Callable[[], float],
        probing: Probing | None = None,
    ) -> None:
        self._probing = probing
        self._make = make
        self._label = label
        self._bounds = bounds
        self._processes = processes
        self._lock = lock
        self._leads = leads
        self._clock = clock
        self._allocator: Allocator | None = None
        self._listed: dict[str, Allocation] = {}  # as listed last
        self._next_look = float("-inf")
        self._every_s = SHORTEST_LOOK_S  # as its allocator wants it
        self._most = 1  # orders that it takes in one request
        self._silence = ""  # why the last look failed
        self._silences = 0  # looks in a row that failed
        self._failures = 0  # in this turn
        self._ending = False
        self._ours, self._strays = Cancelling(), Cancelling()
        self._stray_names: list[str] = []
        self._asks: tuple[str, float] | None = None  # the call under way, and since when
        self._unsaved: dict[str, str] = {}  # why the newest of a worker is not on disk
        self._traced = ""  # the exception whose traceback was logged last

    def turn(self) -> float:
        """Look if it is time, and do what follows; the moment of the next turn (monotonic)."""
        self._failures = 0
        with self._lock:
            ending = any(each.is_ending for each in self._processes)
        if ending and not self._ending:
            self._next_look = self._clock()  # somebody waits now
            self._ours.hurry()
            self._strays.hurry()
        self._ending = ending
        if self._clock() >= self._next_look:
            self._look()
        orders = self._choose() if self._is_probed() else []
        self._cancel()
        self._tell()
        while orders:
            together, orders = orders[: self._most], orders[self._most :]
            self._submit(together)
        self._save()
        if ending and not self._silence:
            self._look_within(END_LOOK_S)
        with self._lock:
            ends = [each.forced_at for each in self._processes]
        return min([self._next_look, *(moment for moment in ends if moment is not None)])

    def close(self) -> None:
        """Have nothing left, or say what is, and release the allocator."""
        failed = [name for name in self._stray_names if self._strays.trouble(name)]
        with self._lock:
            ends = any(each.ends for each in self._processes)
        if ends and self._leads():
            self._strays.hurry()
            self._failures = 0
            self._cancel_of(self._strays, dict.fromkeys(failed, 0.0))
        for name in failed:
            if trouble := self._strays.trouble(name):
                _log.warning("%s is left at its scheduler: %s", name, trouble)
        if self._allocator is None:
            return
        if self._probing is not None and self._leads():
            close = partial(self._probing.close, self._allocator, self._listed)
            self._end_with("cancel", close)
        if ends and not self._stays_something() and self._leads():
            self._end_with("clear", self._allocator.clear)
        self._end_with("close", self._allocator.close)

    def _stays_something(self) -> bool:
        """Whether an allocation of the service may still be there, or is left for the next head."""
        strays = any(self._strays.trouble(name) for name in self._stray_names)
        with self._lock:
            return strays or any(not each.ends or each.name for each in self._processes)

    def _end_with(self, what: str, call: Callable[[], None]) -> None:
        fault = self._ask(what, call)
        if fault is not None:
            _log.warning("%s: %s", self._label, fault.text)

    def hangs(self) -> str:
        """Say which call of the platform has not returned for long; empty if none."""
        asks = self._asks
        if asks is None or self._clock() - asks[1] < HANGS_S:
            return ""
        return f"{asks[0]}() of its platform has not returned"

    # -- looking -------------------------------------------------------------------------------

    def _look(self) -> None:
        fault = None
        if self._allocator is None:
            fault = self._ask("allocator", self._connect)
        if fault is None:
            fault = self._ask("look", self._list)
        if fault is not None:
            self._look_failed(fault.text, hopeless=fault.hopeless)
            return
        self._silence, self._silences = "", 0
        self._next_look = self._clock() + self._every_s
        with self._lock:
            for process in self._processes:
                process.scheduler_answers(self._listed.get(process.name or ""))
            owned = {process.name for process in self._processes}
        owned |= set() if self._probing is None else self._probing.names
        self._stray_names = [name for name in self._listed if self._is_stray(name, owned)]

    def _connect(self) -> None:
        self._allocator = self._make()

    def _list(self) -> None:
        assert self._allocator is not None
        self._listed = {each.name: each for each in self._allocator.look()}
        every_s = min(self._allocator.look_every_s, LONGEST_LOOK_S)
        self._every_s = max(SHORTEST_LOOK_S, every_s)
        self._most = max(1, int(self._allocator.most_at_once))

    def _is_stray(self, name: str, owned: set[str | None]) -> bool:
        """Whether an allocation of this service belongs to no worker: to one that the file does not
        have any more, or it was given up while nobody could say whether it had ended."""
        lives = self._listed[name].state is not AllocationState.ENDED
        return lives and name.startswith(f"{self._label}-") and name not in owned

    def _look_failed(self, text: str, *, hopeless: bool) -> None:
        """Let some time pass after a question without an answer. Where somebody has to change
        something first, those are lost for whom an allocation would be asked for."""
        if text != self._silence:
            _log.warning("%s: %s", self._label, text)
        self._silence = text
        self._silences += 1
        first, longest = FIRST_PAUSE_S, LONGEST_PAUSE_S
        if hopeless and not self._ending:
            first, longest = HOPELESS_PAUSE_S, LONGEST_HOPELESS_PAUSE_S
        longest = min(longest, END_PAUSE_S) if self._ending else longest
        self._next_look = self._clock() + growing_pause(self._silences, first, longest)
        with self._lock:
            seats = [process.seat() for process in self._processes]
            needed = decide(self._bounds, seats, self._demand(), self._clock()).submit
            for process in self._processes:
                process.scheduler_fails(text, hopeless=hopeless and process.place in needed)

    def _look_within(self, seconds: float) -> None:
        self._next_look = min(self._next_look, self._clock() + seconds)

    # -- the probe -------------------------------------------------------------------------------

    def _is_probed(self) -> bool:
        """Whether orders may be given: a place was looked over, and nothing is wrong with it."""
        probing = self._probing
        if probing is None or probing.passed:
            return True
        with self._lock:
            first = next((x.agent for x in self._processes if x.agent and x.seat().wanted), None)
            if any(each.was_ordered_ever for each in self._processes):
                probing.leave_out()  # it was a head before
        if probing.passed or first is None or self._allocator is None or self._silence:
            return probing.passed
        if not self._may_ask():
            return False
        fault = self._ask("submit", probing.step, self._allocator, first, self._listed)
        text = probing.trouble if fault is None else fault.text
        with self._lock:
            for process in self._processes:
                process.held_back = probing.waits
                if text:
                    process.scheduler_fails(text, hopeless=fault is None or fault.hopeless)
        if probing.is_under_way:
            self._look_within(END_LOOK_S)
        return probing.passed

    # -- what follows ----------------------------------------------------------------------------

    def _demand(self) -> int:
        return max((process.queued for process in self._processes), default=0)

    def _choose(self) -> list[tuple[AllocationProcess, AllocationOrder]]:
        """The orders that are due. None while nobody knows what is there."""
        with self._lock:
            now = self._clock()
            seats = [process.seat() for process in self._processes]
            choice = decide(self._bounds, seats, self._demand(), now)
            by_worker = {process.place: process for process in self._processes}
            for worker in choice.release:
                by_worker[worker].release()
            if self._silence:
                return []
            return [(by_worker[w], by_worker[w].order(self._listed)) for w in choice.submit]

    def _cancel(self) -> None:
        """Cancel what is to end: ours, and what has no owner any more."""
        with self._lock:
            now = self._clock()
            graces = {each.name: each.grace_to_cancel(now) for each in self._processes}
        ours = {name: grace_s for name, grace_s in graces.items() if name and grace_s is not None}
        self._save()  # a head that dies now has left which ends it wanted
        self._cancel_of(self._ours, ours)
        self._cancel_of(self._strays, dict.fromkeys(self._stray_names, 0.0))
        with self._lock:
            for process in self._processes:
                process.cancel_trouble = self._ours.trouble(process.name)

    def _cancel_of(self, cancelling: Cancelling, wanted: dict[str, float]) -> None:
        if self._allocator is None:
            return
        for grace_s, names in cancelling.due(wanted, self._clock()):
            if not self._silence:
                self._look_within(END_LOOK_S)
            if not self._may_ask():
                return
            fault = self._ask("cancel", self._allocator.cancel, names, grace_s)
            if fault is None:
                cancelling.done(names, self._clock())
            elif cancelling.failed(names, fault.text, self._clock()):
                _log.warning("%s: %s", ", ".join(names[:3]), fault.text)

    def _tell(self) -> None:
        """Hand the address of this head to allocations of the head before."""
        for process in self._processes:
            with self._lock:
                name, config = process.name, process.config_to_tell()
            if name is None or config is None or self._allocator is None:
                continue
            if not self._may_ask():
                return
            fault = self._ask("tell", self._allocator.tell, name, config)
            with self._lock:
                if fault is None:
                    process.was_told()
                    continue
                news = process.was_not_told(fault.text, hopeless=fault.hopeless)
            if news:
                _log.warning("%s: %s", name, fault.text)

    def _submit(self, orders: Sequence[tuple[AllocationProcess, AllocationOrder]]) -> None:
        """Give some orders, in one request if there are several, once all that are given are on
        disk."""
        assert self._allocator is not None
        saved: list[tuple[AllocationProcess, AllocationOrder]] = []
        for process, order in orders:
            fault = _saved(process)
            if fault is None:
                saved.append((process, order))
            else:
                self._answered(process, order, fault)
        if not saved or not self._may_ask():
            return
        failpoint("allocations.order.recorded")
        with self._lock:
            due = [(process, order) for process, order in saved if process.tries()]
        if len(due) == 1:
            fault = self._ask("submit", self._allocator.submit, due[0][1])
        elif due:
            together = [order for _, order in due]
            fault = self._ask("submit_many", self._allocator.submit_many, together)
        failpoint("allocations.order.taken")
        for process, order in due:
            self._answered(process, order, fault)

    def _answered(
        self, process: AllocationProcess, order: AllocationOrder, fault: _Fault | None
    ) -> None:
        if fault is None:
            _log.info("%s: submitted %s", process.place, order.name)
        with self._lock:
            if fault is None:
                process.was_ordered()
            elif process.was_refused(fault.text, hopeless=fault.hopeless, certain=fault.certain):
                _log.warning("%s: %s", process.place, fault.text)

    def _save(self) -> None:
        for process in self._processes:
            fault = _saved(process)
            text = "" if fault is None else fault.text
            if text and text != self._unsaved.get(process.place):
                _log.error("%s: %s", process.place, text)
            self._unsaved[process.place] = text

    # -- calls of the platform -------------------------------------------------------------------

    def _may_ask(self) -> bool:
        return self._failures < MOST_FAILURES and self._leads()

    def _ask(self, what: str, call: Callable[..., Any], *arguments: object) -> _Fault | None:
        """Call the platform; why that failed, if it did."""
        self._asks = (what, self._clock())
        try:
            call(*arguments)
        except DispatcherError as error:
            hopeless = not isinstance(error, PassingBackendError)
            certain = isinstance(error, PermanentBackendError)
            fault = _Fault(_text(error), hopeless=hopeless, certain=certain)
        except OSError as error:
            where = f"{error.filename}: " if error.filename else ""
            reason = f"{where}{error.strerror or error}"
            fault = _failed(what, reason)
        except BaseException as error:  # noqa: BLE001 - somebody else's code, which harms itself
            # only: also where it would end its program (sys.exit) or task, which is our thread.
            reason = f"{type(error).__name__}: {error}"
            if reason != self._traced:
                _log.exception("%s: %s()", self._label, what)
            self._traced = reason
            fault = _failed(what, reason)
        else:
            return None
        finally:
            self._asks = None
        self._failures += 1
        return fault


def _saved(process: AllocationProcess) -> _Fault | None:
    """Save what is known of its allocation; why that failed, if it did."""
    try:
        process.save()
    except OSError as error:
        where = f" in {error.filename}" if error.filename else ""
        reason = error.strerror or error
        return _Fault(plain_reason(f"cannot note its allocation{where}: {reason}"), certain=True)
    return None


def _failed(what: str, reason: str) -> _Fault:
    return _Fault(plain_reason(f"{what}() of its platform failed: {reason}"), hopeless=True)


def _text(error: DispatcherError) -> str:
    where = f"{error.where}: " if error.where else ""
    hint = f"; {error.hint}" if error.hint else ""
    return plain_reason(f"{where}{error.message}{hint}")
