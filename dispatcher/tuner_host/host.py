"""Joins the parts of the tuner host's process, and says which thread does what.

- The main thread builds the tuner, restores it, then delivers results for ever.
- ``tuner-io`` talks to the head, and looks after the run token, foreign waits and the deadline.
- ``tuner-req-<id>`` runs the request of that number.
- ``tuner-assessor`` looks at intermediate results, if there is an assessor.
- ``tuner-exit`` calls ``_on_exit`` when the head ends the experiment.
"""

from __future__ import annotations

import json
import os
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import zmq

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
from dispatcher.core.events import (
    RequestEnd,
    RequestFailed,
    StacksReported,
    TrialStopRequested,
    TunerHostReady,
)
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.errors import BequeathError, InternalError, TunerCodeError
from dispatcher.ports import AssessorInput
from dispatcher.tuner_host import load, parent_pipe, restore
from dispatcher.tuner_host.adapter import HostServices
from dispatcher.tuner_host.assessing import Assessing
from dispatcher.tuner_host.config import TunerHostConfig
from dispatcher.tuner_host.delivery import Delivery
from dispatcher.tuner_host.foreign_waits import (
    ForeignWaits,
    StillDelivery,
    ThreadOfOurs,
    ran_ns,
)
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.io_loop import GATHER_S, SECOND_HALF_S, IoLoop
from dispatcher.tuner_host.messages import Hello, Note, ShownWanted, Shutdown, TunerBroken
from dispatcher.tuner_host.outbox import Outbox
from dispatcher.tuner_host.own_threads import note_own_threads
from dispatcher.tuner_host.proposals import ProposalRules
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.request_threads import RequestThreads
from dispatcher.tuner_host.requests import Requests
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.shown import MetricReplay, shown_in
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.snapshots import Snapshots
from dispatcher.tuner_host.stacks import place_of, stacks
from dispatcher.tuner_host.tracebacks import describe
from dispatcher.tuner_host.wind_down import EXIT_BROKEN, EXIT_INTERNAL, WindDown, log
from trial_runtime.endpoint import connect
from trial_runtime.failpoints import failpoint

SERIAL = "multiThread is false: all tuner calls run one after another in one thread"

#: Between two looks at whether requests wait for callbacks in vain.
CALLBACK_LOOK_S = 0.2


class Host:
    """Joins the parts of the process.

    Args:
        config: what the head wrote for this process.
        clock: monotonic seconds.
        ran: processor time of a thread (ns).

    Attributes:
        outbox: what is said to the head.
        run_token: who runs in the author's code.
        gate: who waits.
        ready: whether the tuner is built, and is where it was.
    """

    def __init__(
        self,
        config: TunerHostConfig,
        *,
        clock: Callable[[], float] = time.monotonic,
        ran: Callable[[ThreadOfOurs], int | None] = ran_ns,
    ) -> None:
        self._config = config
        self._clock, self._processor_ns = clock, ran
        self.outbox = Outbox()
        self.run_token = RunToken(clock)
        self.gate = Gate(
            self.run_token,
            refusal="" if config.multi_thread else SERIAL,
            make_way=lambda: self._io.make_way(),
        )
        self._foreign = ForeignWaits(self.run_token, clock, ran)
        self._live: dict[int, Request] = {}  # from OpenRequest to just before its answer
        self._early: deque[Any] = deque()  # the head's messages of before the tuner was built
        self._ending = WindDown(self.gate)
        self.ready = False
        self._serial = not config.multi_thread
        self._look_at = 0.0
        self._assessing: Assessing | None = None
        self._context: zmq.Context[zmq.Socket[bytes]] = zmq.Context()
        self._io = IoLoop(
            connect(self._context, config.endpoint),
            self.outbox,
            take=self.take,
            due=self._due,
            head_pipe=config.head_pipe,
            orphaned=lambda: os._exit(0),
        )

    # ---- the main thread -----------------------------------------------------------------

    def run(self) -> None:
        """Build the tuner and serve the head; never returns."""
        note_own_threads(self._note)
        self.outbox.say(Hello(os.getpid()))
        io_thread = threading.Thread(target=self._talk, name="tuner-io", daemon=True)
        io_thread.start()
        try:
            self._set_up()
        except BequeathError as error:
            self._broken(str(error), io_thread)
        self.serve()

    def _set_up(self) -> None:
        config = self._config
        calls = load.build(config, HostServices(self._note, self._stop_early))
        load.install_gate(calls.tuner, self.gate, config.seed, self.gate.newest)
        self.assemble(calls)
        shown = bool(config.shown) and (config.assessor is not None or calls.advisor is not None)
        if shown:
            self.outbox.say(ShownWanted())
        if config.assessor is not None:
            mode = config.optimize_mode
            assessor = load.build_assessor(config.assessor, mode, calls.adapter)
            past = shown_in(Path(config.shown)) if shown else ()
            self._assessing = Assessing(assessor, self.outbox.say, self._note, past)
        load.check_search_space(calls.tuner, json.loads(config.search_space))
        try:
            calls.update_search_space(json.loads(config.search_space))
        except BaseException as error:  # noqa: BLE001 - author's code, SystemExit included
            text = f"the tuner does not take the search space\n{describe(error)}"
            raise TunerCodeError(text) from None
        if config.restore and Path(config.restore).exists():
            self.repeat_past(restore.read(Path(config.restore)))

    def serve(self) -> None:
        """Let the head know that the tuner is there, and deliver; never returns."""
        self.ready = True
        self.outbox.say(TunerHostReady())
        if self._calls.advisor is not None:
            self._calls.advisor.end_again()
        self._delivery.serve()

    def assemble(self, calls: TunerCalls) -> None:
        """Make the parts that need the tuner."""
        config = self._config
        rules = ProposalRules(
            config.weights_root,
            config.save_key,
            config.restore_key,
            config.weights_read_roots,
            config.max_parameters_bytes,
            config.needs_key,
            config.needs,
            any_keys=calls.adapter.any_keys,
        )
        self._calls = calls
        later = partial(calls.adapter.later_answers, self._note)
        self._requests = Requests(
            calls, self.gate, self.run_token, rules, self._over, later=later, provoke=config.provoke
        )
        if calls.advisor is not None:
            self._serial = True
        self._threads = RequestThreads(self._requests.run, self.run_token, self._note, self._clock)
        self._snapshots = Snapshots(
            calls,
            self.run_token,
            config.snapshot_every,
            config.snapshot_period_s,
            after=self._threads.kick,
            note=self._note,
            clock=self._clock,
        )
        self._delivery = Delivery(
            calls,
            self.gate,
            self.outbox,
            self._snapshots,
            self._requests.generated,
            self._requests.run,
            self._note,
        )
        self._still_delivery = StillDelivery(
            self._delivery, self.outbox.say, place_of, self._clock, self._processor_ns
        )

    def repeat_past(self, past: restore.RestoreFile) -> None:
        """Bring the tuner to where it was under an earlier process.

        Raises:
            TunerCodeError: its code does not take it.
        """
        start = self._requests.run if self._serial else self._threads.open
        advisor, shown = self._calls.advisor, self._config.shown
        repeat = restore.Restore(
            self._requests,
            self.gate,
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

    def _broken(self, reason: str, io_thread: threading.Thread) -> None:
        if self._config.failure_file:
            Path(self._config.failure_file).write_text(reason, "utf-8", "backslashreplace")
        log(reason)
        self.outbox.say(TunerBroken(reason))
        self._io.stop()
        io_thread.join(2.0)
        os._exit(EXIT_BROKEN)

    # ---- any thread ----------------------------------------------------------------------

    def _note(self, text: str) -> None:
        log(f"bequeath: {text}")
        self.outbox.say(Note(text))

    def _say(self, event: object) -> None:
        """Send an event of a request: at once, or gathered with others while there are many."""
        if self.run_token.crowded() or self._threads.crowded():
            self._io.say_in_crowd(event)
        else:
            self.outbox.say(event)

    def _stop_early(self, trial: int) -> None:
        """End a trial for an advisor; while its past is repeated ``end_again`` does it later."""
        if self.ready:
            self.outbox.say(TrialStopRequested(TrialId(trial), EndReason.STOPPED_EARLY))

    def _over(self, request: Request) -> None:
        if self._live.get(request.trial) is request:
            del self._live[request.trial]
        self._ending.over(request)

    # ---- the I/O thread ------------------------------------------------------------------

    def _talk(self) -> None:
        try:
            self._io.run()
            self._io.close()
            self._context.term()
        except BaseException:  # noqa: BLE001 - top of the thread: without it nothing goes on
            traceback.print_exc()
            os._exit(EXIT_INTERNAL)

    def _due(self) -> float | None:
        if parent_pipe.is_orphan():
            os._exit(0)
        if self._is_superseded():
            parent_pipe.end_group()
        due = (parent_pipe.LOOK_S, self._ending.due(), self.look())
        return min((one for one in due if one is not None), default=None)

    def look(self) -> float | None:
        """Look after requests, waits and deliveries; seconds until the next look, None: none."""
        due: list[float | None] = []
        if self.ready:
            while self._early:
                self._obey(self._early.popleft())
            due.append(self._threads.overdue())
            due.append(self._callbacks_in_vain())
            due.append(SECOND_HALF_S if self._delivery.busy() else None)
            due.append(self._foreign.look())
            due.append(self._still_delivery.look())
            due.append(GATHER_S if self._threads.crowded() else None)
        due.append(self.run_token.overdue())
        due.append(GATHER_S if self.run_token.crowded() else None)
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

    def _on_exit(self) -> None:
        """Tell tuner and assessor of the end; in a thread of its own, see :class:`WindDown`."""
        try:
            self._calls.on_exit()
        finally:
            if self._assessing is not None:
                self._assessing.on_exit()

    def _is_superseded(self) -> bool:
        """Whether another head has taken over from ours, looked up every few seconds.

        That head has a tuner host of its own, and two of them would do the author's work twice.
        """
        now = time.monotonic()
        if now < self._look_at:
            return False
        self._look_at = now + parent_pipe.LOOK_S
        return parent_pipe.is_superseded(self._config.leader_file, self._config.epoch)

    def take(self, message: Any) -> None:
        """Carry out a message of the head, or keep it until the tuner is there."""
        if isinstance(message, Shutdown):
            self._ending.begin(message.deadline_s, self._on_exit if self.ready else _nothing)
        elif self.ready and not self._early:
            self._obey(message)
        else:
            self._early.append(message)

    def _obey(self, message: Any) -> None:
        match message:
            case OpenRequest(trial=trial):
                self._open(trial)
            case CancelRequest(trial=trial):
                self._cancel(trial)
            case AnswerWait():
                self.gate.answer(message)
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
                self.gate.tell_version(store, number, publisher)
            case OpenGate(trial=trial, verdict=verdict):
                self.gate.open(trial, verdict)
            case AskStacks(trials=trials):
                self._report_stacks(trials)
            case _:
                raise InternalError(f"the head sent {message!r}")

    def _open(self, trial: int) -> None:
        request = Request(trial, self._say)
        self._live[trial] = request
        self.gate.opened(trial)
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
            self.outbox.say(RequestFailed(TrialId(trial), RequestEnd.CANCELLED))
        else:
            self.gate.cancel(request)
            self._requests.give_up(trial)  # if it waits for a callback since a moment ago

    def _report_stacks(self, trials: tuple[TrialId, ...]) -> None:
        threads = {}
        for trial in trials:
            request = self._live.get(trial)
            if request is not None:
                threads[int(trial)] = request.thread
            elif self._delivery.current == trial:
                threads[int(trial)] = self._delivery.thread
        texts = stacks(threads, self.gate, self._calls, self._delivery.current)
        self.outbox.say(StacksReported(texts))


def _nothing() -> None:
    """Stands for the ``_on_exit`` of a tuner that is not built yet."""
