"""NNI's ``st_callback``: a tuner that answered "not now" answers later, by itself.

A request that raised ``NoMoreTrialError`` while the tuner keeps a callback is not asked again: it
counts as blocked in the author's code, and the first call of the callback brings its answer. The
request fails with "not now" for good once no trial is left whose end could make the tuner answer.
Other requests take its place then if results have come since: some tuners keep callbacks and never
call one, but answer new requests. Whether a callback is kept is seen by whether the object still
exists.
"""

from __future__ import annotations

import gc
import threading
from collections.abc import Callable
from typing import Any
from weakref import WeakSet, ref

from dispatcher.tuner_host.request import Request

#: Takes an answer: the request's id, parameters. False: no request waits for it.
Answer = Callable[[int, Any], bool]


class SendTrial:
    """The callback that a tuner calls with an id and its parameters.

    Each call of the tuner gets an object of its own; any of them answers for any id, as in NNI.
    """

    def __init__(self, answer: Answer) -> None:
        self._answer = answer

    def __call__(self, parameter_id: int, parameters: Any) -> bool:
        """Answer a request that was refused before; false if no request waits for it."""
        return self._answer(int(parameter_id), parameters)


class Callbacks:
    """Keeps track of callbacks that the tuner holds, and of requests that wait for one.

    Methods may be called from any thread.

    Args:
        note: takes a text for the user, once, about an answer that no request waits for.
        propose: takes the answer to a waiting request.
    """

    def __init__(
        self, note: Callable[[str], None], propose: Callable[[Request, Any], None]
    ) -> None:
        self._note = note
        self._propose = propose
        self._noted = False
        self._lock = threading.Lock()  # held for a few dictionary operations only
        self._kept: WeakSet[SendTrial] = WeakSet()  # of calls that are over
        self._given: dict[int, ref[SendTrial]] = {}
        self._asking: dict[int, Any] = {}  # being asked → a callback's answer meanwhile
        self._waiting: dict[int, Request] = {}
        self._refused: set[int] = set()  # failed with "not now" while the callback was held

    def begin(self, trial: int) -> SendTrial:
        """Make a callback for one call of the tuner."""
        callback = SendTrial(self._answer)
        with self._lock:
            self._asking[trial] = NOTHING
            self._given[trial] = ref(callback)
        return callback

    def end(self, request: Request, *, refused: bool) -> tuple[bool, Any] | None:
        """Note the end of a call; return whether a callback has answered meanwhile, and with what.

        None if the call was ``refused`` while a callback is kept: the request waits for it now.
        """
        trial = request.trial
        with self._lock:
            self._keep(trial)
            look = refused and len(self._kept) > 0
        if look:
            gc.collect()  # the exception of the refusal may still refer to it, in a cycle
        with self._lock:
            answer = self._asking.pop(trial, NOTHING)  # a callback stores it there until now
            if answer is NOTHING and refused and len(self._kept):
                self._waiting[trial] = request
                return None
        return answer is not NOTHING, answer

    def _keep(self, trial: int) -> None:
        given = self._given.pop(trial, None)
        callback = given() if given is not None else None
        if callback is not None:
            self._kept.add(callback)

    def goes_on_waiting(self, request: Request) -> bool:
        """Whether a call repeated after a restart has asked for this trial, and the tuner still
        holds its callback: then this request waits in place of that one."""
        with self._lock:
            waits = request.trial in self._waiting
            if waits:
                self._waiting[request.trial] = request
            return waits

    def is_refused(self, trial: int) -> bool:
        """Whether the tuner may not be asked again: it refused for good, and still keeps the
        callback that could answer."""
        with self._lock:
            return trial in self._refused and len(self._kept) > 0

    def waiting(self) -> list[int]:
        """The requests that wait for a callback."""
        with self._lock:
            return list(self._waiting)

    def give_up(self, trial: int | None = None) -> list[Request]:
        """Take one cancelled request, or all of them, out of the waiting ones; return them."""
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
            if request is None and self._asking.get(trial, parameters) is NOTHING:
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


NOTHING = _Nothing()
