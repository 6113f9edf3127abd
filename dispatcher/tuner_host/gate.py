"""Implements ``wait_for``: tickets of blocked requests, and the gates of trials that ended.

The head knows the whole graph and answers at once where it can: unknown parents, cycles, parents
that ended before this process began. A pending wait ends here, without a round trip, when this
process has delivered the parent's end; the head draws the same conclusion from the same rule
(:func:`dispatcher.core.waits.resolve`) when it hears of the delivery. For that both must see waits
and ends in one order: a wait is entered and reported, and an end is reported and its gate opened,
each in one step under the same lock.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from typing import TypeVar

from dispatcher.core.actions import AnswerWait
from dispatcher.core.events import VersionsHeld, WaitGivenUp, WaitStarted
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Verdict
from dispatcher.core.waits import resolve
from dispatcher.tuner_host.request import Request, Say
from dispatcher.tuner_host.run_token import RunToken, Waking
from dispatcher.tuner_host.wait import PendingWait, is_trial, outcome, parent_failed
from tuners.errors import (
    SelfWait,
    UnknownParent,
    VersionTimeout,
    WaitCancelled,
    WaitNotAllowed,
    WaitTimeout,
    awaited_version,
)

#: A wait with a shorter timeout for parents unknown to this process still gives the head so many
#: seconds to answer that they ended.
ANSWER_S = 1.0

#: Waits that are ended first when a gate opens; twice as many each time afterwards.
FIRST_LET_GO = 8

_OK = Verdict()

K = TypeVar("K")


class Gate:
    """Blocks and releases the callers of ``Tuner.wait_for``; installed as ``_bequeath_gate``.

    Args:
        run_token: counts the blocked requests out of author's code, and lets them run again.
        refusal: the reason why no wait is allowed at all (``multiThread: false``); empty if one is.
        make_way: called, with no lock held, by a thread that has released the first of many waits.
    """

    def __init__(
        self, run_token: RunToken, *, refusal: str = "", make_way: Callable[[], None] = lambda: None
    ) -> None:
        self._run_token = run_token
        self._make_way = make_way
        self._refusal = refusal
        # Held for a few dictionary operations, never while author's code runs or waits.
        self._lock = threading.Lock()
        self._verdicts: dict[int, Verdict] = {}
        self._requested: set[int] = set()  # asked of this process, not ended yet
        self._waits: dict[int, PendingWait] = {}  # by the waiting request
        self._waiters: dict[int, dict[int, None]] = {}  # parent → waiting requests
        self.newest: dict[str, int] = {}  # newest known version of each shared store
        self._of_store: dict[str, dict[int, None]] = {}  # store → requests that wait for a version
        self._here = threading.local()
        self._closing = ""

    # ---- the author's thread -------------------------------------------------------------

    def wait(self, parents: tuple[int, ...], mode: str, timeout: float | None) -> list[int]:
        """Block until the parents can bequeath; return those that can.

        Raises what ``Tuner.wait_for`` raises.

        Args:
            parents: trials to wait for.
            mode: ``all`` or ``any``.
            timeout: seconds; None waits for ever.
        """
        request = self._waiting_request(parents)
        wait = self._enter(request, parents, mode, timeout)
        if isinstance(wait, list):
            return wait
        answer = self._stand(wait, timeout)
        if answer is None:
            raise WaitTimeout(parents, timeout or 0.0)
        return answer

    def wait_for_version(
        self, store: str, number: int, by: int | None, timeout: float | None
    ) -> int:
        """Block until a shared store has a version; return the number of one to pin.

        Raises what ``Tuner.wait_for_version`` raises.

        Args:
            store: name of the store.
            number: the version to wait for, or a newer one; 0 for any of trial ``by``.
            by: the trial that is to publish it; None for any.
            timeout: seconds; None waits for ever.
        """
        parents = () if by is None else (by,)
        request = self._waiting_request(parents)
        wait = self._enter_version(request, store, number, parents)
        if isinstance(wait, int):
            return wait
        answer = self._stand(wait, timeout)
        if answer is None:
            raise VersionTimeout(store, number, by, timeout or 0.0)
        return answer[0]

    def hold(self, store: str, numbers: tuple[int, ...]) -> None:
        """Report which versions the tuner holds.

        Call it in the thread of a request: its opening keeps the version that was the newest then
        until the head hears of this.
        """
        self._request_here("hold").say(VersionsHeld(store, numbers))

    def _waiting_request(self, parents: tuple[int, ...]) -> Request:
        if self._refusal:
            raise WaitNotAllowed(
                self._refusal, "Set multiThread: true, or raise NoMoreTrialError to be asked later."
            )
        request = self._request_here("wait_for")
        if request.trial in parents:
            raise SelfWait(request.trial)
        for parent in parents:
            if not is_trial(parent):
                raise UnknownParent(parent)
        return request

    def _request_here(self, called: str) -> Request:
        request: Request | None = getattr(self._here, "request", None)
        if request is None:
            raise WaitNotAllowed(
                f"thread {threading.current_thread().name!r} runs no generate_parameters",
                f"Call {called} in generate_parameters, in the thread in which it was called.",
            )
        return request

    def _stand(self, wait: PendingWait, timeout: float | None) -> list[int] | None:
        """Block; None if the timeout passed."""
        self._run_token.block(wait.request)
        if not wait.ticket.acquire(timeout=self._patience(wait, timeout)):
            self._give_up(wait)
        wait.request.turn = wait
        if isinstance(wait.answer, BaseException):
            raise wait.answer
        return wait.answer

    def enter(self, request: Request) -> None:
        """Note that this thread runs that request from now on."""
        self._here.request = request

    def leave(self, request: Request) -> None:
        """Note that the request in this thread is answered."""
        self._here.request = None
        with self._lock:
            wait = self._waits.get(request.trial)
            # After the answer the same trial may be asked for again: the wait by now may be that
            # of another request of its number.
            if wait is not None and wait.request is request:
                self._forget(wait)

    # ---- the I/O thread and the delivery thread ------------------------------------------

    def opened(self, trial: int) -> None:
        """Note that a request was opened: its trial has not ended."""
        with self._lock:
            self._requested.add(trial)

    def open(
        self, trial: int, verdict: Verdict, events: Iterable[object] = (), say: Say | None = None
    ) -> None:
        """Report ``events``, then release the waits for ``trial``.

        Args:
            trial: the trial that ended.
            verdict: whether it can bequeath, and why not.
            events: reported in one step with the opening, before it.
            say: takes them; needed if there are any.
        """
        with self._lock:
            for event in events:
                assert say is not None
                say(event)
            self._requested.discard(trial)
            self._verdicts[trial] = _OK if verdict.ok else verdict
            waits = [self._waits[waiter] for waiter in self._waiters.pop(trial, ())]
        # The first of thousands are released before the last one has its answer. No new wait for
        # this trial can begin: its verdict is there.
        done, share = 0, FIRST_LET_GO
        while done < len(waits):
            if done == FIRST_LET_GO:
                self._make_way()
            self._let_go(waits[done : done + share])
            done, share = done + share, 2 * share

    def _let_go(self, waits: Iterable[PendingWait]) -> None:
        """Answer the waits that are not over, as far as the verdicts decide them."""
        ready: list[Waking] = []
        with self._lock:
            for wait in waits:
                if self._waits.get(wait.request.trial) is not wait:
                    continue
                answer = self._resolve(wait.parents, wait.mode)
                if answer is not None:
                    self._finish(wait, answer, ready)
                else:
                    self._ask_again(wait)
        self._run_token.let_go(ready)

    def tell_version(self, store: str, number: int, by: int | None) -> None:
        """Note a newer version of a shared store, and release the waits for it.

        Args:
            store: name of the store.
            number: the version.
            by: the trial that published it; None if that was before this process began.
        """
        with self._lock:
            self.newest[store] = number
            ready: list[Waking] = []
            for waiter in list(self._of_store.get(store, ())):
                wait = self._waits[waiter]
                due = number >= wait.version if wait.version else by in wait.parents
                if due:
                    self._finish(wait, [number], ready)
        self._run_token.let_go(ready)

    def answer(self, action: AnswerWait) -> None:
        """Release a wait with the head's answer; nothing happens if the wait is over already."""
        ready: list[Waking] = []
        with self._lock:
            wait = self._waits.get(action.trial)
            if wait is not None and wait.number == action.ticket:
                self._finish(wait, outcome(wait, action), ready)
        self._run_token.let_go(ready)

    def cancel(self, request: Request, reason: str = "this request was cancelled") -> None:
        """Let the request's wait, and each later one, raise ``WaitCancelled``."""
        ready: list[Waking] = []
        with self._lock:
            request.cancelled = True
            wait = self._waits.get(request.trial)
            if wait is not None and wait.request is request:
                request.say(WaitGivenUp(TrialId(request.trial), wait.number))
                self._finish(wait, WaitCancelled(reason), ready)
        self._run_token.let_go(ready)

    def close(self, reason: str) -> None:
        """Let all waits, and each later one, raise ``WaitCancelled``: the process ends."""
        ready: list[Waking] = []
        with self._lock:
            self._closing = reason
            for wait in list(self._waits.values()):
                self._finish(wait, WaitCancelled(reason), ready)
        self._run_token.let_go(ready)

    def blocked(self) -> set[int]:
        """The requests that wait."""
        with self._lock:
            return set(self._waits)

    def waiting(self, trial: int) -> str:
        """Name what request ``trial`` waits for; empty if it does not wait."""
        wait = self._waits.get(trial)
        if wait is None:
            return ""
        if wait.mode == "version":
            return awaited_version(wait.store, wait.version, *wait.parents)
        return ", ".join(map(str, wait.parents[:8]))

    def waits_by_the_clock(self, trial: int) -> bool:
        """Whether the wait of request ``trial`` has a time limit, after which it is over."""
        wait = self._waits.get(trial)
        return wait is not None and wait.timed

    # ---- with the lock held --------------------------------------------------------------

    def _enter(
        self, request: Request, parents: tuple[int, ...], mode: str, timeout: float | None
    ) -> list[int] | PendingWait:
        with self._lock:
            if request.cancelled or self._closing:
                raise WaitCancelled(self._closing or "this request was cancelled")
            known = self._resolve(parents, mode)
            if known is not None:
                self._say_answered(request, parents, mode)
                if isinstance(known, BaseException):
                    raise known
                return known
            if timeout == 0 and self._knows_all(parents):
                raise WaitTimeout(parents, 0.0)
            request.tickets += 1
            wait = PendingWait(request, request.tickets, parents, mode)
            self._waits[request.trial] = wait
            for parent in parents:
                if parent not in self._verdicts:
                    self._waiters.setdefault(parent, {})[request.trial] = None
            request.foreign = False
            self._say_started(wait)
            return wait

    def _enter_version(
        self, request: Request, store: str, number: int, parents: tuple[int, ...]
    ) -> int | PendingWait:
        with self._lock:
            if request.cancelled or self._closing:
                raise WaitCancelled(self._closing or "this request was cancelled")
            if number and self.newest.get(store, 0) >= number:
                return self.newest[store]
            request.tickets += 1
            wait = PendingWait(request, request.tickets, parents, "version", store, number)
            self._waits[request.trial] = wait
            self._of_store.setdefault(store, {})[request.trial] = None
            request.foreign = False
            self._say_started(wait)
            return wait

    def _say_answered(self, request: Request, parents: tuple[int, ...], mode: str) -> None:
        """Report a wait that was answered at once, the first time for each parent.

        The head must know of it: the parents' weights must stay until this request has proposed
        its trial.
        """
        if request.awaited.issuperset(parents):
            return
        request.awaited.update(parents)
        request.tickets += 1
        request.foreign = False
        of = tuple(TrialId(parent) for parent in parents)
        request.say(WaitStarted(TrialId(request.trial), request.tickets, of, mode, answered=True))

    def _say_started(self, wait: PendingWait) -> None:
        wait.request.awaited.update(wait.parents)
        parents = tuple(TrialId(parent) for parent in wait.parents)
        trial = TrialId(wait.request.trial)
        wait.request.say(
            WaitStarted(trial, wait.number, parents, wait.mode, wait.store, wait.version)
        )

    def _ask_again(self, wait: PendingWait) -> None:
        """Ask the head if a parent may have ended under an earlier process, which only it knows."""
        if self._knows_all(wait.parents):
            return
        wait.request.tickets += 1
        wait.number = wait.request.tickets
        self._say_started(wait)

    def _resolve(self, parents: tuple[int, ...], mode: str) -> list[int] | BaseException | None:
        verdicts = self._verdicts
        result = resolve(parents, mode, verdicts.get)  # type: ignore[arg-type]
        if result.kind == "pending":
            return None
        if result.kind == "granted":
            return [p for p in parents if (verdict := verdicts.get(p)) is not None and verdict.ok]
        assert result.parent is not None
        assert result.verdict is not None
        return parent_failed(result.parent, result.verdict.reason, result.verdict.chain)

    def _finish(
        self, wait: PendingWait, answer: list[int] | BaseException, ready: list[Waking]
    ) -> None:
        wait.answer = answer
        self._forget(wait)
        ready.append(wait)

    def _forget(self, wait: PendingWait) -> None:
        trial = wait.request.trial
        if self._waits.get(trial) is not wait:
            return
        del self._waits[trial]
        for parent in wait.parents:
            _strike(self._waiters, parent, trial)
        if wait.store:
            _strike(self._of_store, wait.store, trial)

    def _knows_all(self, parents: tuple[int, ...]) -> bool:
        """Whether each of them has ended, or has not, for all that this process knows."""
        return all(parent in self._requested or parent in self._verdicts for parent in parents)

    # ---- waits that end by themselves ----------------------------------------------------

    def _patience(self, wait: PendingWait, timeout: float | None) -> float:
        if timeout is None:
            return -1.0
        wait.timed = True
        # Only the head knows which trials have published under an earlier process.
        known = self._knows_all(wait.parents) and not (wait.store and wait.parents)
        return min(timeout if known else max(timeout, ANSWER_S), threading.TIMEOUT_MAX)

    def _give_up(self, wait: PendingWait) -> None:
        if not wait.gone.acquire(blocking=False):
            wait.ticket.acquire()  # woken in this very moment
            return
        with self._lock:
            if wait.answer is None:
                if wait.mode != "version":  # a gate that is just opening may not have come to it
                    wait.answer = self._resolve(wait.parents, wait.mode)
                if wait.answer is None:
                    wait.request.say(WaitGivenUp(TrialId(wait.request.trial), wait.number))
                self._forget(wait)
        self._run_token.go_on(wait.request)


def _strike(waiters: dict[K, dict[int, None]], key: K, trial: int) -> None:
    others = waiters.get(key)
    if others is not None:
        others.pop(trial, None)
        if not others:
            del waiters[key]
