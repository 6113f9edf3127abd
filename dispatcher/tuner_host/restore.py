"""Rebuilds a tuner whose process is gone, so that each result counts once.

The head writes a msgpack file ``{state, calls}``. With a ``state`` the tuner takes it, and then
gets the proposals, results and ends since. Without, all calls are repeated in the order of the
journal: requests run in threads as before, their waits end at the gates that the repeated ends
open.
"""

from __future__ import annotations

import json
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import msgspec

from dispatcher.core.actions import AnswerWait
from dispatcher.core.events import Proposed, VersionsHeld, WaitStarted
from dispatcher.core.ids import TrialId
from dispatcher.core.model import FailReason, Verdict
from dispatcher.errors import InternalError
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.own_threads import has_own_threads
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.requests import Requests
from dispatcher.tuner_host.shown import MetricReplay
from dispatcher.tuner_host.tracebacks import describe

#: A repeated request that stands still for this long in something of the author's waits for
#: a later call.
STILL_S = 0.05

#: Seconds for which everything must stand still before an answer is given up: the first time,
#: since a wait may have a time limit, and once the tuner is known to behave in another way.
FIRST_STILL_S = 2.0
AGAIN_STILL_S = 0.2

#: Answers that differ, beyond which they are counted only.
_MOST_NOTED = 20


class RestoreFile(msgspec.Struct, frozen=True):
    """Holds ``calls`` in journal order, and the ``state`` that they follow, if any.

    Calls are ``["generate", id, parameters]``, ``["result", id, parameters, value]``, ``["end",
    id, success, ok]``: parameters and values are JSON text, None for a request that ended without
    a proposal; ``ok``: its gate let children in. Also ``["import", number, data]``, with a number
    of its own and data as JSON text, ``["version", id, store, number]``: the version that a trial
    published to a shared store, ``["gate", id, reason, chain]``: the request ended without a
    trial, and ``["refused", id, parents, mode, store, version, kind, parent, reason, chain]``: a
    wait of the request that the head refused.
    """

    state: str | None
    calls: list[list[Any]]


def read(path: Path) -> RestoreFile:
    """Read the file. Raises ``InternalError`` if the head has not written it so."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=RestoreFile)
    except (OSError, msgspec.MsgspecError) as error:
        raise InternalError(f"the calls to repeat cannot be read: {error}") from error


def write(path: Path, state: str | None, calls: list[list[Any]]) -> None:
    """Write the file for :func:`read`.

    Args:
        path: the file.
        state: JSON text of the tuner's own state; None for the beginning.
        calls: all since then, see :class:`RestoreFile`.
    """
    path.write_bytes(msgspec.msgpack.encode(RestoreFile(state, calls)))


class _Repeated:
    """A request under repetition: takes the events that were the head's the first time."""

    def __init__(self, trial: int, wanted: str | None, refusals: list[_Refusal]) -> None:
        self.wanted = wanted
        self.answer: object = None
        self._refusals = refusals  # not repeated yet
        self.refused: deque[AnswerWait] = deque()  # to be given to the request, which waits
        self.settled = threading.Event()  # it blocks, or was answered
        self.over = threading.Event()  # it was answered
        self.request = Request(trial, self._hear)

    def _hear(self, event: object) -> None:
        if isinstance(event, WaitStarted) and not event.answered:
            asked = (event.parents, event.mode, event.store, event.version)
            again = next((one for one in self._refusals if one.asked == asked), None)
            if again is not None:
                self._refusals.remove(again)
                self.refused.append(replace(again.answer, ticket=event.ticket))
        if type(event).__name__ in ("Proposed", "RequestFailed"):
            self.answer = event
            self.over.set()
        if not isinstance(event, VersionsHeld) and not getattr(event, "answered", False):
            self.settled.set()  # after other events the request just goes on


class _Refusal(NamedTuple):
    """The head's refusal of a wait, which only the head could know."""

    asked: tuple[tuple[int, ...], str, str, int]  # parents, mode, store, version
    answer: AnswerWait

    @classmethod
    def of(cls, call: list[Any]) -> _Refusal:
        """Read a refusal as :class:`RestoreFile` has it."""
        _, trial, parents, mode, store, version, kind, parent, reason, chain = call
        answer = AnswerWait(
            trial,
            0,
            kind,
            parent=parent,
            reason=FailReason(reason) if reason else None,
            chain=tuple(chain),
        )
        return cls((tuple(parents), mode, store, version), answer)


class Onlooker(Protocol):
    """Looks on while calls are repeated; in the main thread, and may raise nothing."""

    def about_to(self, name: str, trial: int) -> None:
        """A call is about to be repeated."""

    def differs(self, trial: int, wanted: str, answer: object) -> None:
        """A request has another answer than before.

        Args:
            trial: the request.
            wanted: the earlier answer: JSON text of parameters.
            answer: the event that answers it now, or a text on why there is none.
        """

    def over(self) -> None:
        """All calls were repeated."""


class _FirstFew:
    """Notes how the first answers differ, and how many differ in all."""

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._differing = 0

    def about_to(self, name: str, trial: int) -> None:
        """See :meth:`Onlooker.about_to`."""

    def differs(self, trial: int, wanted: str, answer: object) -> None:
        """See :meth:`Onlooker.differs`."""
        self._differing += 1
        if self._differing <= _MOST_NOTED:
            now = answer.parameters if isinstance(answer, Proposed) else answer
            self._note(
                f"request {trial} was answered by {wanted} before the restart and by "
                f"{now} when it was repeated; the earlier answer stands"
            )

    def over(self) -> None:
        """See :meth:`Onlooker.over`."""
        if self._differing > _MOST_NOTED:
            self._note(f"{self._differing} answers differ from those before the restart")


class Restore:
    """Carries out a restore in the main thread, before the tuner is ready.

    Args:
        requests: runs the requests, and keeps their parameters.
        gate: opened as trials end.
        start: starts a request: in a thread of its own, or for a serial tuner at once.
        note: takes a text for the user about a difference, which is no error.
        timeout_s: longest time given to one call.
        onlooker: in place of one that notes the first differences.
        metrics: repeats to an advisor the metrics of its trials, between the calls.
        bystanders: threads of before the tuner, which are neither its nor ours.
    """

    def __init__(
        self,
        requests: Requests,
        gate: Gate,
        start: Callable[[Request], None],
        note: Callable[[str], None],
        timeout_s: float,
        onlooker: Onlooker | None = None,
        metrics: MetricReplay | None = None,
        bystanders: Collection[threading.Thread] = (),
    ) -> None:
        self._requests = requests
        self._calls = requests.calls
        self._gate = gate
        self._start = start
        self._note = note
        self._timeout_s = timeout_s
        self._repeated: dict[int, _Repeated] = {}
        self._refusals: dict[int, list[_Refusal]] = {}  # of requests that are not repeated yet
        self._onlooker = onlooker or _FirstFew(note)
        self._metrics = metrics
        self._bystanders = bystanders
        self._patience_s = FIRST_STILL_S

    def carry_out(self, file: RestoreFile) -> None:
        """Bring the tuner to its former state. Raises what its ``restore`` raises."""
        if file.state is not None:
            self._calls.restore(json.loads(file.state))
        for call in file.calls:
            name, trial = call[0], int(call[1])
            self._onlooker.about_to(name, trial)
            if name == "generate":
                if file.state is None:
                    self._generate(trial, call[2])
                elif call[2] is not None:
                    self._calls.restore_proposal(trial, json.loads(call[2]))
            elif name == "result":
                self._tell_metrics_until_end_of(trial)
                self._result(trial, call[2], call[3])
            elif name == "end":
                self._tell_metrics_until_end_of(trial)
                self._end(trial, success=bool(call[2]), ok=bool(call[3]))
            elif name == "gate":
                self._end_without_trial(trial, Verdict(FailReason(call[2]), tuple(call[3])))
            elif name == "refused":
                self._refusals.setdefault(trial, []).append(_Refusal.of(call))
            elif name == "version":
                self._gate.tell_version(call[2], int(call[3]), trial)
            elif name == "import":
                self._import(call[2])
            else:
                raise InternalError(f"unknown call {name!r} among those to repeat")
        if self._metrics is not None:
            self._metrics.rest()
        self._finish()

    def _tell_metrics_until_end_of(self, trial: int) -> None:
        if self._metrics is not None:
            self._metrics.until_end_of(trial)

    def _generate(self, trial: int, wanted: str | None) -> None:
        repeated = _Repeated(trial, wanted, self._refusals.pop(trial, []))
        self._repeated[trial] = repeated
        self._start(repeated.request)
        deadline = time.monotonic() + self._timeout_s
        place: tuple[int, int] | None = None
        while time.monotonic() < deadline:
            settled = repeated.settled.wait(STILL_S)
            if self._refuse_again(self._repeated.values()):
                continue  # it goes on
            if settled:
                return
            before, place = place, _place(repeated.request.thread)
            if place is not None and place == before:
                return  # stands still in an own Event: the result it waits for comes later

    def _refuse_again(self, among: Iterable[_Repeated]) -> bool:
        """Answer waits that the head refused when they were new; whether there were any."""
        any_refused = False
        for repeated in among:
            while repeated.refused:
                repeated.settled.clear()  # first: it goes on at once, and may set it again
                self._gate.answer(repeated.refused.popleft())
                any_refused = True
        return any_refused

    def _result(self, trial: int, parameters: str | None, value: str) -> None:
        self._await(trial)
        generated = self._requests.generated.pop(trial, None)
        if generated is None and parameters is not None:
            generated = json.loads(parameters)
        try:
            self._calls.result(trial, generated, json.loads(value), by_hand=False)
        except BaseException as error:  # noqa: BLE001 - counted as delivered then, so now
            self._note(f"receive_trial_result({trial}) raised again:\n{describe(error)}")

    def _end(self, trial: int, *, success: bool, ok: bool) -> None:
        self._await(trial)
        self._requests.generated.pop(trial, None)
        try:
            self._calls.end(trial, success)
        except BaseException as error:  # noqa: BLE001 - as above
            self._note(f"trial_end({trial}) raised again:\n{describe(error)}")
        if self._metrics is not None:
            self._metrics.ended(trial)
        self._gate.open(trial, Verdict(None if ok else FailReason.FAILED))

    def _end_without_trial(self, trial: int, verdict: Verdict) -> None:
        self._await(trial)
        self._requests.generated.pop(trial, None)
        self._gate.open(trial, verdict)

    def _import(self, data: str) -> None:
        try:
            self._calls.import_data(json.loads(data))
        except BaseException as error:  # noqa: BLE001 - as above
            self._note(f"import_data raised again:\n{describe(error)}")

    def _await(self, trial: int) -> None:
        """Let a request finish before its result, which follows its parameters."""
        repeated = self._repeated.pop(trial, None)
        if repeated is None:
            return
        if repeated.wanted is not None and not self._answers(repeated):
            awaited = self._gate.waiting(trial)
            why = f"it waits for {awaited}, " if awaited else "it stands still, "
            self._onlooker.differs(trial, repeated.wanted, f"{why}which it did not then")
        self._conclude(trial, repeated)

    def _answers(self, repeated: _Repeated) -> bool:
        """Wait for a request's answer, for as long as anything can bring it.

        This thread delivers the ends, so that no ``wait_for`` returns meanwhile; and where all
        asked requests stand still, none sets what another one waits for. But a wait with a time
        limit ends by itself, and a thread that the tuner has started (a timer, or one that
        computes for the others) may bring anything.
        """
        deadline = time.monotonic() + self._timeout_s
        before: list[object] = []
        still = 0
        while not repeated.over.wait(STILL_S):
            asked = self._asked(repeated)
            self._refuse_again(asked)
            here = [self._stands(one.request) for one in asked]
            at_work = None in here or has_own_threads(self._bystanders)
            still = still + 1 if here == before and not at_work else 0
            before = here
            if still * STILL_S >= self._patience_s or time.monotonic() > deadline:
                self._patience_s = AGAIN_STILL_S
                return repeated.over.is_set()
        return True

    def _asked(self, last: _Repeated) -> list[_Repeated]:
        unanswered = [one for one in self._repeated.values() if not one.over.is_set()]
        return [last, *unanswered]

    def _stands(self, request: Request) -> object:
        """The place at which a request stands still; None while it may go on by itself."""
        awaited = self._gate.waiting(request.trial)
        if awaited:
            return None if self._gate.waits_by_the_clock(request.trial) else awaited
        return None if _waits_by_the_clock(request.thread) else _place(request.thread)

    def _conclude(self, trial: int, repeated: _Repeated) -> None:
        if repeated.over.is_set():
            self._compare(trial, repeated)
        else:
            repeated.request.unwanted = True
            self._gate.cancel(repeated.request, "its answer is known from before the restart")

    def _compare(self, trial: int, repeated: _Repeated) -> None:
        if repeated.wanted is None:
            self._requests.generated.pop(trial, None)
            if self._calls.advisor is not None:
                self._calls.advisor.take_back(trial)
            return
        answer = repeated.answer
        wanted = json.loads(repeated.wanted)
        if isinstance(answer, Proposed) and json.loads(answer.parameters) == wanted:
            return
        self._requests.generated[trial] = wanted  # what the trial really ran with
        self._onlooker.differs(trial, repeated.wanted, answer)

    def _finish(self) -> None:
        """End the threads of requests whose trials still run: their parameters are known."""
        for trial in list(self._repeated):
            self._refuse_again(self._repeated.values())
            repeated = self._repeated.pop(trial)
            if repeated.wanted is not None:
                repeated.over.wait(STILL_S if repeated.settled.is_set() else self._timeout_s)
            self._conclude(trial, repeated)
            if repeated.wanted is not None:
                self._requests.generated.setdefault(TrialId(trial), json.loads(repeated.wanted))
        self._onlooker.over()


def _place(thread: int) -> tuple[int, int] | None:
    """The place of a thread, if that is inside a wait of the standard library."""
    frame = sys._current_frames().get(thread)
    if frame is None or not frame.f_code.co_filename.endswith(("threading.py", "queue.py")):
        return None
    return id(frame), frame.f_lasti


def _waits_by_the_clock(thread: int) -> bool:
    """Whether a wait of the standard library in which a thread stands has a time limit."""
    frame = sys._current_frames().get(thread)
    limit = None if frame is None else frame.f_locals.get("timeout")
    return limit is not None and limit != -1  # which Thread.join passes for none
