"""Results and ends, one at a time, in the order in which the head committed them.

For each trial, in this order and never another: ``receive_trial_result`` returned,
``trial_end`` returned, gate open. An exception counts as returned: it is reported with its
traceback, the call is never repeated, and the gate opens all the same.
"""

from __future__ import annotations

import json
import threading
from collections import deque
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any

from dispatcher.core.actions import Assess, Deliver, TellImport, TellSearchSpace
from dispatcher.core.events import EndDelivered, ImportDelivered, ResultDelivered
from dispatcher.core.ids import TrialId
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.messages import Note
from dispatcher.tuner_host.outbox import Outbox
from dispatcher.tuner_host.plain_values import NotJson, plain
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.snapshots import Snapshots
from dispatcher.tuner_host.tracebacks import describe
from trial_runtime.failpoints import failpoint

Work = Deliver | TellSearchSpace | TellImport | Assess | Request


class Delivery:
    """Queues results and other work for the tuner, and delivers it in the main thread.

    With ``multiThread: false`` requests come here, too: everything in one thread, in the
    order of arrival. Intermediate results come here for advisors only.

    Args:
        calls: the tuner.
        gate: opened once a trial's end was delivered.
        outbox: takes events and notes for the head.
        snapshots: counts deliveries, and takes states between them.
        generated: the object that each request returned; entries are dropped once delivered.
        run: carries out a request in this thread (serial tuners only).
        note: takes a text for the user, once, if the tuner changes parameters it has returned.
    """

    def __init__(
        self,
        calls: TunerCalls,
        gate: Gate,
        outbox: Outbox,
        snapshots: Snapshots,
        generated: dict[int, Any],
        run: Callable[[Request], None],
        note: Callable[[str], None],
    ) -> None:
        self._note = note
        self._noted_changes = False
        self._calls = calls
        self._gate = gate
        self._outbox = outbox
        self._snapshots = snapshots
        self._generated = generated
        self._run = run
        self._queue: SimpleQueue[Work] = SimpleQueue()
        self._put = 0
        self._done = 0
        self._due: deque[int] = deque()  # trials whose deliveries are not over, in order
        self.current: int | None = None  # the trial being delivered, for stacks
        self.request: int | None = None  # the request in this thread, if tuner calls are serial
        self.thread = 0
        self.native_thread = 0

    def put(self, work: Work) -> None:
        """Queue work. I/O thread only."""
        self._put += 1
        if isinstance(work, Deliver):
            self._due.append(work.trial)
        self._queue.put(work)

    def busy(self) -> bool:
        """Whether anything is queued or being delivered."""
        return self._put != self._done

    def next_due(self) -> int | None:
        """The trial being delivered, or the next one; None if none waits. Any thread."""
        try:
            return self._due[0]
        except IndexError:
            return None

    def place(self) -> str:
        """Describe the call this thread is in, as part of a sentence. Any thread."""
        if self.current is not None:
            return f"in receive_trial_result or trial_end of trial {self.current}"
        if self.request is not None:
            return f"in generate_parameters of request {self.request}"
        return "in another call"

    def serve(self) -> None:
        """Deliver for ever."""
        self.thread = threading.get_ident()
        self.native_thread = threading.get_native_id()
        while True:
            try:
                work = self._queue.get(timeout=self._snapshots.due_in())
            except Empty:
                self._snapshots.take_if_due(self._outbox.say)
                continue
            self.carry_out(work)
            self._done += 1

    def carry_out(self, work: Work) -> None:
        """Do one piece of work; never raises what the author's code raises."""
        match work:
            case Deliver():
                self.current = work.trial
                self._deliver(work)
                self.current = None
                self._due.popleft()
            case TellSearchSpace():
                self._tell_search_space(work)
            case TellImport():
                self._import(work)
            case Assess():
                self._intermediate(work)
            case Request():
                self.request = work.trial
                self._run(work)
                self.request = None

    def _deliver(self, work: Deliver) -> None:
        trial = TrialId(work.trial)
        parameters = self._generated.pop(trial, None)
        if work.value is not None and not work.result_delivered:
            error = self._result(work, work.value, parameters)
            failpoint("host.result.returned")
            # Sent together with the end, unless that takes long: the I/O thread looks now and
            # then while a delivery is under way.
            self._outbox.say_later(ResultDelivered(trial, error))
        error = self._end(trial, work.success)
        failpoint("host.end.returned")
        self._snapshots.count()
        messages: list[object] = [EndDelivered(trial, error)]
        state = self._snapshots.try_take()
        if state is not None:
            messages.append(state)
        self._gate.open(trial, work.verdict, messages, self._outbox.say)
        failpoint("host.gate.opened")
        if state is not None:
            self._snapshots.over()

    def _result(self, work: Deliver, value: str, parameters: Any) -> str:
        try:
            if parameters is None:
                parameters = json.loads(work.parameters)
            elif not self._noted_changes and _changed(parameters, work.parameters):
                self._noted_changes = True
                self._note(
                    f"the parameters of request {work.trial} were changed after "
                    "generate_parameters had returned them: the trial ran with what was returned, "
                    "and its result comes with what they are now. Return a copy, or keep one. "
                    "(Said once.)"
                )
            decoded = json.loads(value)
            self._calls.result(work.trial, parameters, decoded, by_hand=work.by_hand)
        except BaseException as error:  # noqa: BLE001 - becomes an event; never repeated
            return self._raised(f"receive_trial_result({work.trial})", error)
        return ""

    def _end(self, trial: int, success: bool) -> str:
        try:
            self._calls.end(trial, success)
        except BaseException as error:  # noqa: BLE001 - becomes an event; the gate opens anyway
            return self._raised(f"trial_end({trial})", error)
        return ""

    def _intermediate(self, work: Assess) -> None:
        try:
            assert self._calls.advisor is not None
            value = json.loads(work.value)
            self._calls.advisor.intermediate_result(work.trial, value, work.attempt, work.seq)
        except BaseException as error:  # noqa: BLE001 - becomes a note; the trial goes on
            text = self._raised(f"handle_report_metric_data of trial {work.trial}", error)
            self._outbox.say(Note(f"handle_report_metric_data raised:\n{text}"))

    def _raised(self, call: str, error: BaseException) -> str:
        text = describe(error)
        self._calls.remember(call, text)
        return text

    def _tell_search_space(self, work: TellSearchSpace) -> None:
        try:
            self._calls.update_search_space(json.loads(work.search_space))
        except BaseException as error:  # noqa: BLE001 - becomes a note; the tuner keeps what it has
            self._outbox.say(Note(f"update_search_space raised:\n{describe(error)}"))

    def _import(self, work: TellImport) -> None:
        error = ""
        try:
            remark = self._calls.import_data(json.loads(work.data))
            if remark:
                self._note(remark)
        except BaseException as raised:  # noqa: BLE001 - becomes an event; never repeated
            error = self._raised("import_data", raised)
        self._snapshots.count()
        self._outbox.say(ImportDelivered(work.number, error))


def _changed(returned: Any, parameters: str) -> bool:
    """Whether an object that was generated is no longer what the trial ran with."""
    try:
        return bool(plain(returned, "parameters", any_keys=True) != json.loads(parameters))
    except NotJson:
        return True
