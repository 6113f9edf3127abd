"""Runs one request in its thread: ask the tuner, send its answer."""

from __future__ import annotations

import threading
import traceback
from collections.abc import Callable
from typing import Any

from dispatcher.core.events import ForeignWaitSeen, Proposed, RequestEnd, RequestFailed
from dispatcher.core.ids import TrialId
from dispatcher.tuner_host.adapter import LaterAnswers, Propose
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.proposals import Nonsense, ProposalRules, propose, seen_by_trial
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.signatures import TunerCalls
from dispatcher.tuner_host.tracebacks import describe, shorten
from dispatcher.tuner_host.wait import is_trial
from trial_runtime.failpoints import failpoint
from tuners.errors import ParentFailed, UnknownParent, WaitCancelled


class Requests:
    """Runs requests; keeps their parameters until the trial's result is delivered.

    Args:
        calls: the tuner.
        gate: knows which request this thread runs, for ``wait_for``.
        run_token: counts the requests in author's code.
        rules: of valid parameters.
        over: called in the request's thread just before its answer is sent.
        later: makes what lets a tuner answer later, if it takes callbacks; None: none does.
        provoke: let races happen that are rare otherwise (rehearsals).
    """

    def __init__(
        self,
        calls: TunerCalls,
        gate: Gate,
        run_token: RunToken,
        rules: ProposalRules,
        over: Callable[[Request], None],
        *,
        later: Callable[[Propose], LaterAnswers | None] | None = None,
        provoke: bool = False,
    ) -> None:
        self._provoke = provoke
        self.calls = calls
        self._over = over
        self._gate = gate
        self._run_token = run_token
        self._rules = rules
        #: Of tuners that may answer later.
        self.callbacks: LaterAnswers | None = None
        if later is not None and calls.takes_callback:
            self.callbacks = later(self._answered_later)
        #: The very objects that were generated: tuners recognise them in results.
        self.generated: dict[int, Any] = {}

    def run(self, request: Request) -> None:
        """Ask the tuner and send the answer; never raises what the author's code raises."""
        request.thread, request.native_thread = threading.get_ident(), threading.get_native_id()
        self._gate.enter(request)
        event = _cancelled(request) if request.cancelled else self._answer_of(request)
        if event is None:
            self._put_off(request)
            return
        if request.unwanted and not isinstance(event, RequestFailed):
            self.generated.pop(request.trial, None)
            event = _cancelled(request)
        failpoint("host.request.returned")
        self._over(request)
        # Sent before the count goes down: a snapshot must not overtake its answers.
        request.say(event)
        self._gate.leave(request)
        request.thread = request.native_thread = 0
        self._run_token.leave(request)

    def give_up(self, trial: int | None = None) -> bool:
        """Answer requests that wait for a callback: one that is cancelled, or all of them with
        "not now", since no trial is left that could make the tuner call it."""
        if self.callbacks is None:
            return False
        requests = self.callbacks.give_up(trial)
        for request in requests:
            self._over(request)
            kind = RequestEnd.NOT_NOW if trial is None else RequestEnd.CANCELLED
            request.say(RequestFailed(TrialId(request.trial), kind, "its callback was not called"))
        return bool(requests)

    def _answer_of(self, request: Request) -> Proposed | RequestFailed | None:
        """The answer; None if a callback is to bring it."""
        callbacks, trial = self.callbacks, request.trial
        if callbacks is None:
            return self._ask(request)
        if callbacks.goes_on_waiting(request):
            return None
        if callbacks.is_refused(trial):
            # Final, so that the head may ask for another id, now that results have come.
            return RequestFailed(TrialId(trial), RequestEnd.CANCELLED, "its callback is still held")
        event = self._ask(request)
        refused = isinstance(event, RequestFailed) and event.kind is RequestEnd.NOT_NOW
        meanwhile = callbacks.end(request, refused=refused)
        if meanwhile is None:
            return None
        answered, parameters = meanwhile
        return self._read(request, parameters) if answered else event

    def _put_off(self, request: Request) -> None:
        """Leave a request waiting for its callback, without a thread and without a slot.

        The head takes it for one that stands still in the author's code.
        """
        request.say(ForeignWaitSeen(TrialId(request.trial)))
        self._gate.leave(request)
        request.thread = request.native_thread = 0
        self._run_token.leave(request)
        if request.cancelled:  # before it waited, so that the cancelling did not find it
            self.give_up(request.trial)

    def _answered_later(self, request: Request, parameters: Any) -> None:
        """Send the answer that a callback brings, in any thread of the author's."""
        event = self._read(request, parameters)
        self._over(request)
        request.say(event)

    def _read(self, request: Request, returned: Any) -> Proposed | RequestFailed:
        try:
            proposal = propose(request.trial, returned, self._rules)
        except Nonsense as error:
            text = shorten(f"st_callback({request.trial}, …) was given {error}")
            return RequestFailed(TrialId(request.trial), RequestEnd.NONSENSE, text)
        self.generated[request.trial] = seen_by_trial(returned, self._rules)
        return proposal

    def _ask(self, request: Request) -> Proposed | RequestFailed:
        try:
            returned = self._generate(request.trial)
            proposal = propose(request.trial, returned, self._rules)
        except Nonsense as error:
            text = shorten(f"generate_parameters({request.trial}) returned {error}")
            return RequestFailed(TrialId(request.trial), RequestEnd.NONSENSE, text)
        except BaseException as error:  # noqa: BLE001 - top of a request: SystemExit included
            event = failure(request, error)
            if event.kind is RequestEnd.ERROR:
                self.calls.remember(f"generate_parameters({request.trial})", event.text)
            return event
        self.generated[request.trial] = seen_by_trial(returned, self._rules)
        return proposal

    def _generate(self, trial: int) -> Any:
        if not self._provoke:
            return self._call(trial)
        from dispatcher.tuner_host.provoking import provoked

        return provoked(lambda: self._call(trial), trial)

    def _call(self, trial: int) -> Any:
        if self.callbacks is None:
            return self.calls.generate(trial)
        return self.calls.generate(trial, self.callbacks.begin(trial))


def _cancelled(request: Request) -> RequestFailed:
    return RequestFailed(TrialId(request.trial), RequestEnd.CANCELLED)


def failure(request: Request, error: BaseException) -> RequestFailed:
    """Turn an exception of ``generate_parameters`` into the request's answer."""
    trial = TrialId(request.trial)
    if _is_no_more_trial(error):
        return RequestFailed(trial, RequestEnd.NOT_NOW, shorten(_last_line(error)))
    if request.cancelled and isinstance(error, WaitCancelled):
        return RequestFailed(trial, RequestEnd.CANCELLED)
    if isinstance(error, ParentFailed | UnknownParent):
        return RequestFailed(trial, RequestEnd.ABANDONED, _sentence(error), _parent(error))
    if isinstance(error, WaitCancelled):
        return RequestFailed(trial, RequestEnd.ABANDONED, _sentence(error))
    return RequestFailed(trial, RequestEnd.ERROR, describe(error))


def _last_line(error: BaseException) -> str:
    return "".join(traceback.format_exception_only(error)).strip()  # str() may raise


def _sentence(error: BaseException) -> str:
    """The message of an error; authors derive from ours, and need not call ours in making one."""
    message = getattr(error, "message", None)
    return shorten(message if isinstance(message, str) and message else _last_line(error))


def _parent(error: ParentFailed | UnknownParent) -> TrialId | None:
    """The parent, if it can be one: authors also raise these errors, with any value."""
    parent = getattr(error, "parent", None)
    if not isinstance(parent, int) or isinstance(parent, bool):
        return None
    return TrialId(parent) if is_trial(parent) else None


def _is_no_more_trial(error: BaseException) -> bool:
    """Whether a class of it has that name: authors import NNI's, or define their own."""
    return any(cls.__name__ == "NoMoreTrialError" for cls in type(error).__mro__)
