"""NNI's ``st_callback``: a tuner that said "not now" answers later, by itself.

A request that raised ``NoMoreTrialError`` while the tuner keeps a callback is not asked again: it
counts as one that stands in a wait of the author's, and the callback brings its answer, the first
one of it. Only when no trial is left whose end could make the tuner answer is it "not now" for
good. Others take its place then if results have come since it was asked: there are tuners that
keep callbacks and never call one, and they answer those. Whether a callback is kept is seen by
whether the object is still there.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet, ref

from dispatcher.tuner_host.request import Request

#: Takes an answer: request's id, parameters. False: nobody waits for it.
Answer = Callable[[int, Any], bool]


class SendTrial:
    """What a tuner calls with an id and its parameters. One object for each call of the tuner;
    any of them answers for any id, as in NNI."""

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __call__(self, parameter_id: int, parameters: Any) -> bool:
        """Answer a request that was refused before; false if nobody waits for it."""
        return self._answer(int(parameter_id), parameters)


class Callbacks:
    """Who holds callbacks, and which requests wait for one. From any thread.

    Args:
        note: told of an answer that nobody waits for, once.
    """

    def __init__(self, note: Callable[[str], None]) -> None:
        self._note = note
        self._noted = False
        self._lock = threading.Lock()  # held for a few dictionary operations only
        self._kept: WeakSet[SendTrial] = WeakSet()  # of calls that are over
        self._given: dict[int, ref[SendTrial]] = {}
        self._asking: dict[int, Any] = {}  # being asked → a callback's answer meanwhile
        self._waiting: dict[int, Request] = {}
        self._refused: set[int] = set()  # told "not now" for good, while the callback was held
        self._propose: Callable[[Request, Any], None] = lambda request, parameters: None

    def on_answer(self, propose: Callable[[Request, Any], None]) -> None:
        """Set what is done with the answer to a request that waits."""
        self._propose = propose

    def begin(self, trial: int) -> SendTrial:
        """A callback for one call of the tuner."""
        callback = SendTrial(self._answer)
        with self._lock:
            self._asking[trial] = _NOTHING
            self._given[trial] = ref(callback)
        return callback

    def end(self, request: Request, *, refused: bool) -> tuple[bool, Any] | None:
        """The call is over: whether a callback has answered meanwhile, and what. None: it was
        ``refused``, a callback is kept, and from now on the request waits for it."""
        trial = request.trial
        with self._lock:
            self._keep(trial)
            look = refused and len(self._kept) > 0
        if look:
            gc.collect()  # the exception of the refusal may still know it, in a ring
        with self._lock:
            answer = self._asking.pop(trial, _NOTHING)  # a callback stores it there until now
            if answer is _NOTHING and refused and len(self._kept):
                self._waiting[trial] = request
                return None
        return answer is not _NOTHING, answer

    def _keep(self, trial: int) -> None:
        given = self._given.pop(trial, None)
        callback = given() if given is not None else None
        if callback is not None:
            self._kept.add(callback)

    def goes_on_waiting(self, request: Request) -> bool:
        """Whether the tuner was asked for this trial by a call that was repeated after a restart,
        and still holds its callback: then this request waits in place of that one."""
        with self._lock:
            waits = request.trial in self._waiting
            if waits:
                self._waiting[request.trial] = request
            return waits

    def is_refused(self, trial: int) -> bool:
        """Whether asking again is not allowed: it was refused for good, and the callback that
        could answer is still kept."""
        with self._lock:
            return trial in self._refused and len(self._kept) > 0

    def waiting(self) -> list[int]:
        """The requests that wait for a callback."""
        with self._lock:
            return list(self._waiting)

    def give_up(self, trial: int | None = None) -> list[Request]:
        """Wait no longer: for one request that is cancelled, or for all that wait."""
        with self._lock:
            if trial is not None:
                request = self._waiting.pop(trial, None)
                return [request] if request is not None else []
            given_up = list(self._waiting.values())
            self._waiting.clear()
            self._refused.update(request.trial for request in given_up)
            return given_up

    def _answer(self, trial: int, parameters: Any) -> bool:
        with self._lock:
            request = self._waiting.pop(trial, None)
            if request is None and self._asking.get(trial, parameters) is _NOTHING:
                self._asking[trial] = parameters
                return True
        if request is not None:
            self._propose(request, parameters)
            return True
        if not self._noted:
            self._noted = True
            self._note(
                f"st_callback({trial}, …) came to nothing: no request of that id waits for it "
                "any more; the first answer counts. (Said once.)"
            )
        return False


class _Nothing:
    """Marks a request that no callback has answered, since None could be an answer."""


_NOTHING = _Nothing()
