"""A backend that runs attempts by a script: nothing runs, time is counted in ticks.

A tuner is rehearsed over it, and tests of the head use it as well.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from dispatcher.core.actions import LaunchWorker, StartAttempt, StopAttempt, WorkerAction
from dispatcher.core.events import (
    AttemptEnded,
    AttemptStarted,
    Event,
    FinalReported,
    MetricReported,
    WeightsPublished,
    WorkerJoined,
    WorkerLost,
)
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Weights
from dispatcher.errors import ProtocolError


@dataclass(frozen=True, slots=True)
class Script:
    """The course of one attempt.

    ``ticks`` pass from its start to its end; one of ``metrics`` is reported at each of the
    first ticks; ``final`` (JSON text) and ``digest`` just before the end.
    """

    ticks: int = 1
    metrics: tuple[str, ...] = ()
    final: str | None = "1.0"
    digest: str | None = None
    reason: EndReason = EndReason.FINISHED
    exit_code: int | None = 0
    text: str = ""
    ignores_stop: bool = False


#: Ends at the next tick with a result.
SUCCEEDS = Script()
#: Exits with 1 and no result.
FAILS = Script(final=None, reason=EndReason.FAILED, exit_code=1, text="ValueError: told to")
#: Never starts.
REFUSED = Script(ticks=0, final=None, reason=EndReason.START_FAILED, exit_code=None, text="refused")


@dataclass(slots=True)
class _Running:
    order: StartAttempt
    script: Script
    age: int = 0
    seq: int = 0
    stopped: EndReason | None = None


@dataclass(slots=True)
class ScriptedBackend:
    """See :class:`dispatcher.ports.Backend`.

    ``script`` is asked once per attempt. Events are handed out by :meth:`check` (or
    :meth:`take`), in order, each at its tick; ``tick`` moves time on. What was performed is
    kept in ``performed``. Made silent, it goes on but nobody hears of it until it speaks
    again, as an agent does whose link is cut.
    """

    script: Callable[[StartAttempt], Script] = lambda _order: SUCCEEDS
    worker: WorkerId = WorkerId("local")  # noqa: RUF009 - a NewType is a plain str
    slots: int = 2
    performed: list[WorkerAction] = field(default_factory=list)
    acknowledged: int = 0
    silent: bool = False
    closed: bool = False
    _running: dict[tuple[int, int], _Running] = field(default_factory=dict)
    _seen: set[tuple[int, int]] = field(default_factory=set)
    _waiting: deque[Event] = field(default_factory=deque)
    _handed_out: int = 0
    _alive: bool = False

    # -- the port --------------------------------------------------------------------------

    def perform(self, action: WorkerAction) -> None:
        """Carry out an action; starts are idempotent by attempt."""
        self.performed.append(action)
        if isinstance(action, LaunchWorker):
            self._launch()
        elif isinstance(action, StartAttempt):
            self._start(action)
        elif isinstance(action, StopAttempt):
            running = self._running.get((action.trial, action.attempt))
            if running is not None:
                running.stopped = action.reason

    def flush(self) -> None:
        """Do nothing: nothing is buffered."""

    def receive(self, payload: bytes) -> list[Event]:
        """Refuse a frame: there is no wire.

        Raises:
            ProtocolError: always.
        """
        raise ProtocolError("a scripted backend has no wire")

    def acknowledge(self) -> None:
        """Note that all events handed out so far are committed."""
        self.acknowledged = self._handed_out

    def check(self) -> list[Event]:
        """Hand out the events since the last time."""
        return self.take()

    def close(self, *, leave_running: bool, deadline_s: float) -> None:
        """End everything, or leave it for the next head to find."""
        self.closed = True
        if not leave_running:
            self._running.clear()
            self._alive = False

    # -- what a test does ------------------------------------------------------------------

    def tick(self, times: int = 1) -> None:
        """Let time pass for all attempts, in the order of their starts."""
        for _ in range(times):
            for running in list(self._running.values()):
                self._advance(running)

    def take(self, limit: int | None = None) -> list[Event]:
        """Hand out events that wait, at most ``limit``; none while silent."""
        if self.silent:
            return []
        count = len(self._waiting) if limit is None else min(limit, len(self._waiting))
        self._handed_out += count
        return [self._waiting.popleft() for _ in range(count)]

    def say(self, event: Event) -> None:
        """Hand out this event next, true or not: a lie, a repetition, a late message."""
        self._waiting.append(event)

    def lose(self, reason: str = "told to") -> None:
        """Lose the agent with all it ran, and with the events that nobody has taken yet."""
        self._running.clear()
        self._waiting.clear()
        self._alive = False
        self._waiting.append(WorkerLost(self.worker, reason))

    @property
    def running(self) -> list[tuple[int, int]]:
        """The attempts that run, oldest first."""
        return list(self._running)

    # -- inside ----------------------------------------------------------------------------

    def _launch(self) -> None:
        self._alive = True
        waiting = {
            (event.trial, event.attempt)
            for event in self._waiting
            if isinstance(event, AttemptEnded | FinalReported | MetricReported | WeightsPublished)
        }
        holds = tuple((TrialId(t), a) for t, a in sorted({*self._running, *waiting}))
        self._waiting.appendleft(WorkerJoined(self.worker, self.slots, holds))

    def _start(self, order: StartAttempt) -> None:
        key = (order.trial, order.attempt)
        if key in self._seen or not self._alive:
            return
        self._seen.add(key)
        script = self.script(order)
        if script.reason is EndReason.START_FAILED:
            self._waiting.append(
                AttemptEnded(order.trial, order.attempt, script.reason, text=script.text)
            )
            return
        self._running[key] = _Running(order, script)
        self._waiting.append(AttemptStarted(order.trial, order.attempt, pid=1))
        if script.ticks == 0:
            self._finish(self._running[key])

    def _advance(self, running: _Running) -> None:
        running.age += 1
        script, order = running.script, running.order
        if running.stopped is not None and not script.ignores_stop:
            running.script = replace(script, reason=running.stopped, final=None, exit_code=None)
            self._finish(running)
            return
        if running.age <= len(script.metrics):
            running.seq += 1
            value = script.metrics[running.age - 1]
            self._waiting.append(MetricReported(order.trial, order.attempt, running.seq, value))
        if running.age >= script.ticks:
            self._finish(running)

    def _finish(self, running: _Running) -> None:
        script, order = running.script, running.order
        trial, attempt = order.trial, order.attempt
        if script.digest is not None:
            running.seq += 1
            weights = Weights(script.digest, "bequeath", 1)
            self._waiting.append(WeightsPublished(trial, attempt, running.seq, weights))
        if script.final is not None:
            running.seq += 1
            self._waiting.append(FinalReported(trial, attempt, running.seq, script.final))
        self._waiting.append(
            AttemptEnded(trial, attempt, script.reason, script.exit_code, text=script.text)
        )
        del self._running[(trial, attempt)]
