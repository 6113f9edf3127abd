"""Serves the head with a tuner that is built: requests, deliveries, states, the assessor.

The I/O thread gives :class:`Serving` the head's messages, and looks after it; the main thread has
it repeat the past, and then delivers in it for ever.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

from dispatcher.core.actions import (
    AnswerWait,
    AskStacks,
    Assess,
    CancelRequest,
    Deliver,
    OpenGate,
    OpenRequest,
    TellImport,
    TellSearchSpace,
    TellVersion,
)
from dispatcher.core.events import RequestEnd, RequestFailed, StacksReported
from dispatcher.core.ids import TrialId
from dispatcher.errors import InternalError, TunerCodeError
from dispatcher.ports import AssessorInput
from dispatcher.tuner_host import load, restore
from dispatcher.tuner_host.assessing import Assessing
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.delivery import Delivery
from dispatcher.tuner_host.foreign_waits import ForeignWaits, StillDelivery, ThreadOfOurs
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.io_loop import GATHER_S, SECOND_HALF_S
from dispatcher.tuner_host.messages import ShownWanted
from dispatcher.tuner_host.outbox import Outbox
from dispatcher.tuner_host.proposals import ProposalRules
from dispatcher.tuner_host.request import Request, Say
from dispatcher.tuner_host.request_threads import RequestThreads
from dispatcher.tuner_host.requests import Requests
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.shown import MetricReplay, shown_in
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.snapshots import Snapshots
from dispatcher.tuner_host.stacks import place_of, stacks
from dispatcher.tuner_host.tracebacks import describe
from dispatcher.tuner_host.wind_down import WindDown
from trial_runtime.failpoints import failpoint

#: Between two looks at whether requests wait for callbacks in vain.
CALLBACK_LOOK_S = 0.2


class Serving:
    """Does what the head asks of a tuner, and of its assessor, which is built here if the
    experiment has one.

    Args:
        config: what the head wrote for this process.
        calls: the tuner.
        outbox: takes what is said to the head.
        say_in_crowd: takes an event that may wait a moment for others, as one of many.
        note: takes a text for the user.
        run_token: who runs in the author's code.
        gate: who waits.
        ending: hears of each request that is about to be answered.
        clock: monotonic seconds.
        ran: processor time of a thread (ns).

    Raises:
        TunerCodeError: the assessor cannot be built.
    """

    def __init__(
        self,
        config: TunerHostConfig,
        calls: TunerCalls,
        *,
        outbox: Outbox,
        say_in_crowd: Say,
        note: Callable[[str], None],
        run_token: RunToken,
        gate: Gate,
        ending: WindDown,
        clock: Callable[[], float],
        ran: Callable[[ThreadOfOurs], int | None],
    ) -> None:
        self._config, self._calls = config, calls
        self._outbox, self._say_in_crowd, self._note = outbox, say_in_crowd, note
        self._run_token, self._gate, self._ending = run_token, gate, ending
        self._serial = not config.multi_thread or calls.advisor is not None
        self._live: dict[int, Request] = {}  # from OpenRequest to just before its answer
        rules = ProposalRules.of(config, any_keys=calls.adapter.any_keys)
        later = partial(calls.adapter.later_answers, note)
        self._requests = Requests(
            calls, gate, run_token, rules, self._over, later=later, provoke=config.provoke
        )
        self._threads = RequestThreads(self._requests.run, run_token, note, clock)
        every, period_s = config.snapshot_every, config.snapshot_period_s
        snapshots = Snapshots(
            calls, run_token, every, period_s, after=self._threads.kick, note=note, clock=clock
        )
        generated, run = self._requests.generated, self._requests.run
        self._delivery = Delivery(calls, gate, outbox, snapshots, generated, run, note)
        self._foreign = ForeignWaits(run_token, clock, ran)
        self._still_delivery = StillDelivery(self._delivery, outbox.say, place_of, clock, ran)
        self._assessing = _assessing(config, calls, outbox.say, note)

    # ---- the main thread -----------------------------------------------------------------

    def repeat_past(self, past: restore.RestoreFile) -> None:
        """Bring the tuner to where it was under an earlier process.

        Raises:
            TunerCodeError: its code does not take it.
        """
        start = self._requests.run if self._serial else self._threads.open
        advisor, shown = self._calls.advisor, self._config.shown
        repeat = restore.Restore(
            self._requests,
            self._gate,
            start,
            self._note,
            self._config.replay_call_timeout_s,
            metrics=MetricReplay(shown_in(Path(shown)), self._tell_again)
            if advisor and shown
            else None,
        )
        try:
            repeat.carry_out(past)
        except InternalError:
            raise
        except BaseException as error:  # noqa: BLE001 - author's code, SystemExit included
            raise TunerCodeError(f"the tuner cannot be restored\n{describe(error)}") from None
        failpoint("host.restored")

    def _tell_again(self, one: AssessorInput) -> None:
        assert self._calls.advisor is not None
        try:
            self._calls.advisor.recall(one)
        except BaseException as error:  # noqa: BLE001 - author's code; its past goes on
            self._note(f"handle_report_metric_data({one.trial}) raised again:\n{describe(error)}")

    def serve(self) -> None:
        """Deliver; never returns."""
        if self._calls.advisor is not None:
            self._calls.advisor.end_again()
        self._delivery.serve()

    # ---- the I/O thread ------------------------------------------------------------------

    def obey(self, message: Any) -> None:
        """Carry out a message of the head. I/O thread only."""
        match message:
            case OpenRequest(trial=trial):
                self._open(trial)
            case CancelRequest(trial=trial):
                self._cancel(trial)
            case AnswerWait():
                self._gate.answer(message)
            case Deliver() | TellSearchSpace() | TellImport():
                self._delivery.put(message)
                if self._assessing is not None and isinstance(message, Deliver):
                    self._assessing.put(message)
            case Assess():
                if self._calls.advisor is not None:
                    self._delivery.put(message)
                if self._assessing is not None:
                    self._assessing.put(message)
            case TellVersion(store=store, number=number, trial=publisher):
                self._gate.tell_version(store, number, publisher)
            case OpenGate(trial=trial, verdict=verdict):
                self._gate.open(trial, verdict)
            case AskStacks(trials=trials):
                self._report_stacks(trials)
            case _:
                raise InternalError(f"the head sent {message!r}")

    def _open(self, trial: int) -> None:
        request = Request(trial, self._say)
        self._live[trial] = request
        self._gate.opened(trial)
        if self._serial:
            self._delivery.put(request)
        else:
            self._threads.open(request)

    def _cancel(self, trial: int) -> None:
        request = self._live.get(trial)
        if request is None or self._requests.give_up(trial):
            return  # answered already
        if not self._serial and self._threads.withdraw(request):
            del self._live[trial]
            self._outbox.say(RequestFailed(TrialId(trial), RequestEnd.CANCELLED))
        else:
            self._gate.cancel(request)
            self._requests.give_up(trial)  # if it waits for a callback since a moment ago

    def _report_stacks(self, trials: tuple[TrialId, ...]) -> None:
        threads = {}
        for trial in trials:
            request = self._live.get(trial)
            if request is not None:
                threads[int(trial)] = request.thread
            elif self._delivery.current == trial:
                threads[int(trial)] = self._delivery.thread
        texts = stacks(threads, self._gate, self._calls, self._delivery.current)
        self._outbox.say(StacksReported(texts))

    def look(self) -> float | None:
        """Look after requests and deliveries; seconds until the next look, None: none."""
        due = (
            self._threads.overdue(),
            self._callbacks_in_vain(),
            SECOND_HALF_S if self._delivery.busy() else None,
            self._foreign.look(),
            self._still_delivery.look(),
            GATHER_S if self._threads.crowded() else None,
        )
        return min((one for one in due if one is not None), default=None)

    def _callbacks_in_vain(self) -> float | None:
        """Answer requests that wait for a callback, once no trial is left whose end could make
        the tuner call it; seconds until the next look, None if no request waits."""
        callbacks = self._requests.callbacks
        waiting = callbacks.waiting() if callbacks is not None else []
        if not waiting:
            return None
        busy = self._requests.generated or self._delivery.busy() or set(self._live) - set(waiting)
        if not busy:
            self._requests.give_up()
        return CALLBACK_LOOK_S

    # ---- any thread ----------------------------------------------------------------------

    def _say(self, event: object) -> None:
        """Send an event of a request: at once, or gathered with others while there are many."""
        if self._run_token.crowded() or self._threads.crowded():
            self._say_in_crowd(event)
        else:
            self._outbox.say(event)

    def _over(self, request: Request) -> None:
        if self._live.get(request.trial) is request:
            del self._live[request.trial]
        self._ending.over(request)

    def on_exit(self) -> None:
        """Tell tuner and assessor of the end; in a thread of its own, see :class:`WindDown`."""
        try:
            self._calls.on_exit()
        finally:
            if self._assessing is not None:
                self._assessing.on_exit()


def _assessing(
    config: TunerHostConfig, calls: TunerCalls, say: Say, note: Callable[[str], None]
) -> Assessing | None:
    """The assessor's thread, if there is an assessor. Who is to be shown what an earlier process
    was shown asks for it first."""
    if config.shown and (config.assessor is not None or calls.advisor is not None):
        say(ShownWanted())
    if config.assessor is None:
        return None
    assessor = load.build_assessor(config.assessor, config.optimize_mode, calls.adapter)
    return Assessing(assessor, say, note, shown_in(Path(config.shown)) if config.shown else ())
