"""A backend that somebody else has written, kept from harming anyone but itself.

It is made and called in a thread of its own, so that the engine never waits for it. Any exception
of it, and any event that it may not report, sets it aside: its worker is lost with all it ran, and
when one is wanted there again another backend is made.
"""

from __future__ import annotations

import logging
import queue
import threading
import time
from collections.abc import Callable

from dispatcher import codec
from dispatcher.core.actions import LaunchWorker, StartAttempt, WorkerAction
from dispatcher.core.events import (
    OF_ATTEMPTS,
    AttemptEnded,
    Event,
    FinalReported,
    MetricReported,
    Origin,
    VersionOffered,
    WorkerHeard,
    WorkerJoined,
    WorkerLost,
    WorkerSuspect,
    reported_by,
)
from dispatcher.core.ids import WorkerId
from dispatcher.errors import DispatcherError, PermanentBackendError, ProtocolError
from dispatcher.platforms.reasons import plain_reason
from dispatcher.platforms.services.protocol import ServiceBackend
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.trials.bounds import metric_fault
from trial_runtime.refusals import Refusals
from trial_runtime.retry import growing_pause

#: Seconds between two looks of the thread at its backend.
LOOK_S = 0.25

#: Pauses before another backend is made in place of one that failed (seconds); one that lasted
#: longer than ``SHORT_LIFE_S`` counts as a first one.
FIRST_PAUSE_S, LONGEST_PAUSE_S, SHORT_LIFE_S = 1.0, 300.0, 60.0

#: What the end of a thread may take beyond the deadline of its backend (seconds).
CLOSE_S = 2.0

#: Errors after which trying again soon mends nothing.
_HOPELESS = (PermanentBackendError, ProtocolError)

#: A service has no shared stores.
_REPORTED = reported_by(Origin.WORKER) - {VersionOffered}

#: The bounds on metrics, where nobody sets others.
_USUAL = TrialSpec(".")

_log = logging.getLogger("bequeath.backends.threaded")


class _Incarnation:
    """A backend and its thread. Events are handed out one batch at a time: the next is asked
    for when that one is on disk, so that ``acknowledge`` covers exactly that batch."""

    def __init__(
        self,
        worker: WorkerId,
        make: Callable[[], ServiceBackend],
        pause_s: float,
        clock: Callable[[], float],
        trial: TrialSpec,
    ) -> None:
        self.worker = worker
        self._trial = trial
        self._refused = Refusals()
        self.failure: Exception | None = None
        self.began_at = clock()
        self.busy_since: float | None = None
        self.tasks: queue.SimpleQueue[Callable[[ServiceBackend], None]] = queue.SimpleQueue()
        self.batch: list[Event] = []  # for the engine; replaced, never changed
        self.over = threading.Event()  # nobody wants it any more
        self._closing = threading.Event()  # nobody waits for one that is not made yet
        self.known: set[tuple[int, int]] = set()  # attempts that it may speak of
        self.thread = threading.Thread(target=self._run, name=f"backend {worker}", daemon=True)
        self._make = make
        self.pause_s = pause_s
        self._clock = clock
        self._open = True  # no batch is on its way to the disk

    def _run(self) -> None:
        backend: ServiceBackend | None = None
        closing = self._closing.wait(self.pause_s)
        try:
            if not closing:
                self.busy_since = self._clock()
                backend = self._make()
            while backend is not None and not self.over.is_set():
                self._turn(backend)
            if backend is not None and not self._closing.is_set():
                # Given up while a call hung, or lost by its own report: what it ran may be
                # another one's by now, which has looked for it.
                self._end(backend, leave_running=True, deadline_s=0.0)
        except Exception as error:  # noqa: BLE001 - the top of a thread
            self.failure = error
            _log.warning("backend %s is set aside: %s", self.worker, text_of(error), exc_info=error)
            if backend is not None and not self.over.is_set():
                self._end(backend, leave_running=False, deadline_s=0.0)
        finally:
            self.busy_since = None

    def _turn(self, backend: ServiceBackend) -> None:
        self.busy_since = None
        try:
            task = self.tasks.get(timeout=LOOK_S)
        except queue.Empty:
            task = None
        self.busy_since = self._clock()
        while task is not None:
            task(backend)
            task = None if self.tasks.empty() else self.tasks.get()
        if self.over.is_set():
            return
        if not self._open:
            return
        reported = [self._judge(event) for event in backend.check()]
        events = [event for event in reported if self._fits(event)]
        if reported and not events:
            backend.acknowledge()  # or it reports them again for ever
        if events:
            self._open = False
            self.batch = events

    def acknowledge(self) -> None:
        """Note that the batch is on disk: the next one may follow."""

        def acknowledge(backend: ServiceBackend) -> None:
            backend.acknowledge()
            self._open = True

        self.tasks.put(acknowledge)

    def _judge(self, reported: Event) -> Event:
        """The event as the journal will have it. Raises ``ProtocolError`` for one that a backend
        may not report, or whose values no head could read there."""
        kind = type(reported)
        if kind not in _REPORTED:
            raise ProtocolError(f"it says {kind.__name__}")
        of = codec.journalled(reported)
        event: Event = of
        if kind in OF_ATTEMPTS:
            attempt = (of.trial, of.attempt)
            if attempt not in self.known:
                raise ProtocolError(f"it speaks of attempt {of.trial}.{of.attempt}")
            if isinstance(event, AttemptEnded):
                self.known.discard(attempt)
            return event
        if of.worker != self.worker:
            raise ProtocolError(f"it speaks of the worker {of.worker!r}")
        if isinstance(event, WorkerJoined):
            self.known = set(event.holds)
        return event

    def _fits(self, event: Event) -> bool:
        """Whether a metric is valid: a report of a trial is relayed by somebody else's code, and is
        no reason to lose all others."""
        if not isinstance(event, (MetricReported, FinalReported)):
            return True
        fault = metric_fault(event.value, self._trial.max_metric_bytes, any_value=self._trial.nni)
        if fault and self._refused.count("metric"):
            name = f"{event.trial}.{event.attempt}"
            _log.warning("backend %s: attempt %s reports %s", self.worker, name, fault)
        return not fault

    def _end(self, backend: ServiceBackend, *, leave_running: bool, deadline_s: float) -> None:
        try:
            backend.close(leave_running=leave_running, deadline_s=deadline_s)
        except Exception as error:  # noqa: BLE001 - somebody else's code, at the end of a thread
            _log.warning("backend %s did not close: %s", self.worker, error, exc_info=error)

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """Have it closed in its thread. Blocks at most ``deadline_s`` and a moment."""

        def end(backend: ServiceBackend) -> None:
            self.over.set()
            self._end(backend, leave_running=leave_running, deadline_s=deadline_s)

        self.tasks.put(end)
        self._closing.set()
        self.thread.join(deadline_s + CLOSE_S)
        self.over.set()
        if self.thread.is_alive():
            _log.warning("backend %s does not come back; left behind", self.worker)


class ThreadedBackend:
    """A :class:`dispatcher.ports.Backend`; no method of it waits but :meth:`close`.

    Args:
        worker: the one worker of that backend.
        make: makes the backend; called in the thread.
        suspect_s: seconds that one call may take until nothing more is placed there.
        lost_s: seconds that one call may take until the backend is given up.
        leads: whether this head still leads.
        trial: bounds on what trials report.
        clock: monotonic seconds.
    """

    judged = True

    def __init__(
        self,
        worker: WorkerId,
        make: Callable[[], ServiceBackend],
        *,
        trial: TrialSpec = _USUAL,
        suspect_s: float = 30.0,
        lost_s: float = 120.0,
        leads: Callable[[], bool] = lambda: True,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._worker = worker
        self._make = make
        self._trial = trial
        self._suspect_s = suspect_s
        self._lost_s = lost_s
        self._leads = leads
        self._clock = clock
        self._incarnation: _Incarnation | None = None
        self._given_up: list[_Incarnation] = []
        self._suspect = False
        self._handed_out = False  # a batch that is not acknowledged yet
        self._failures = 0  # in a row

    @property
    def pause_s(self) -> float:
        """Seconds from the wish for the backend that there is to its making; 0 if there is none."""
        return self._incarnation.pause_s if self._incarnation is not None else 0.0

    def perform(self, action: WorkerAction) -> None:
        """Queue an action for the thread."""
        if isinstance(action, LaunchWorker) and self._incarnation is None and self._leads():
            pause_s = 0.0
            if self._failures:
                pause_s = growing_pause(self._failures, FIRST_PAUSE_S, LONGEST_PAUSE_S)
            self._incarnation = _Incarnation(
                self._worker, self._make, pause_s, self._clock, self._trial
            )
            self._incarnation.thread.start()
        current = self._incarnation
        if current is None:
            return  # lost meanwhile; the core hears of it, if it has not yet
        if isinstance(action, StartAttempt):
            current.known.add((action.trial, action.attempt))

        def perform(backend: ServiceBackend) -> None:
            backend.perform(action)

        current.tasks.put(perform)

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def receive(self, payload: bytes) -> list[Event]:
        """Refuse a frame: it has no place on our ROUTER.

        Raises:
            ProtocolError: always.
        """
        raise ProtocolError(f"backend {self._worker} has no wire")

    def acknowledge(self) -> None:
        """Note that all events of :meth:`check` are on disk."""
        if self._incarnation is not None and self._handed_out:
            self._handed_out = False
            self._incarnation.acknowledge()

    def check(self) -> list[Event]:
        """Hand out the events of the backend; and see whether it still answers."""
        current = self._incarnation
        if current is None or not self._leads():
            return []
        events: list[Event] = []
        if current.batch and not self._handed_out:
            events, current.batch = current.batch, []
            self._handed_out = True
            if any(isinstance(event, WorkerLost) for event in events):
                self._let_go(current)  # by its own report
            return events
        if not current.thread.is_alive():
            failure = current.failure or RuntimeError("its thread has ended")
            return [self._lose(text_of(failure), isinstance(failure, _HOPELESS))]
        since = current.busy_since
        busy_s = 0.0 if since is None else self._clock() - since
        if busy_s > self._lost_s:
            return [self._lose(f"a call has not come back for {busy_s:.0f} s")]
        if busy_s > self._suspect_s and not self._suspect:
            self._suspect = True
            events.append(WorkerSuspect(self._worker, busy_s))
        elif self._suspect and busy_s <= self._suspect_s:
            self._suspect = False
            events.append(WorkerHeard(self._worker))
        return events

    def part(self, *, leave_running: bool, deadline_s: float) -> None:
        """Do nothing: :meth:`close` says goodbye, in the backend's thread."""

    def statistics(self) -> None:
        """Nothing of ours runs there that could count."""

    def waiting(self) -> str | None:
        """Why there is no backend, in a sentence; None if there is one."""
        failed = self._incarnation is None and self._failures
        return f"the backend of {self._worker} has failed" if failed else None

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """End it and what it runs, or leave that. Blocks at most so long and a moment."""
        current, self._incarnation = self._incarnation, None
        if current is not None:
            current.close(leave_running=leave_running, deadline_s=deadline_s)

    def _lose(self, reason: str, hopeless: bool = False) -> WorkerLost:
        if self._incarnation is not None:
            self._let_go(self._incarnation)
        return WorkerLost(self._worker, reason, hopeless)

    def _let_go(self, current: _Incarnation) -> None:
        current.over.set()
        short = self._clock() - current.began_at < SHORT_LIFE_S
        self._failures = self._failures + 1 if short else 1
        self._incarnation = None
        self._suspect = self._handed_out = False


def text_of(error: Exception) -> str:
    """An error in a sentence."""
    if isinstance(error, DispatcherError):
        text = f"{error.message}; {error.hint}" if error.hint else error.message
        return plain_reason(text)
    return plain_reason(f"{type(error).__name__}: {error}")
