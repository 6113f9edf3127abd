"""A search without processes: requests in threads, and trials that the test ends."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from typing import Any, Literal, NamedTuple

from tuners.base import Tuner, WaitMode
from tuners.errors import NoMoreTrialError, ParentFailed, SelfWait, UnknownParent, WaitCancelled
from tuners.testing.gates import PATIENCE_S, ScriptedGate, with_gate


class Search:
    """Plays a search around a tuner, step by step or as a whole; nothing is trained.

    Every request runs in a thread, and blocks in ``wait_for`` until the trial that it waits for is
    ended by :meth:`end`. A step returns once each request is answered or blocked, so that nothing
    depends on speed. Waits for anything else, such as an Event of the tuner's own, are not seen.

    >>> class Pairs(Tuner):
    ...     def generate_parameters(self, parameter_id, **kwargs):
    ...         if parameter_id % 2 == 0:
    ...             return {"lr": 0.1}
    ...         self.wait_for(parameter_id - 1)
    ...         return {"lr": 0.1, "restore_path": self.save_path(parameter_id - 1)}
    ...     def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
    ...         pass
    >>> search = Search(Pairs())
    >>> search.ask(0), search.ask(1)
    ({'lr': 0.1}, None)
    >>> search.end(0, 0.7)
    >>> search.proposed[1]
    {'lr': 0.1, 'restore_path': 'trials/0'}

    Args:
        tuner: it has its search space already; the search gives it a gate.
        patience_s: seconds after which a request that neither returns nor waits fails the test.

    Attributes:
        tuner: the tuner; another one after :meth:`restart`.
        gate: its gate.
        proposed: the parameters of each trial, as JSON gives them back.
        abandoned: requests that ended without a trial, as they could inherit from nobody.
        later: requests that said *not now*; they are asked again after the next end.
    """

    def __init__(self, tuner: Tuner, *, patience_s: float = PATIENCE_S) -> None:
        self.gate = _SearchGate(patience_s)
        self.tuner = with_gate(tuner, self.gate)
        self.proposed: dict[int, Any] = {}
        self.abandoned: set[int] = set()
        self.later: list[int] = []
        self._errors: list[BaseException] = []
        self._happened: list[_Happened] = []  # from the beginning
        self._state: str | None = None
        self._kept_at = 0  # what happened after that is not in the state

    @property
    def running(self) -> list[int]:
        """The trials that were proposed and have not ended, in order."""
        over = self.gate.ended | self.gate.failed.keys()
        return sorted(self.proposed.keys() - over)

    @property
    def waiting(self) -> list[int]:
        """The requests that wait for a trial, in order."""
        return sorted(self.gate.requests.values())

    def ask(self, request: int) -> Any:
        """Ask for the parameters of a trial; None: it waits, says *not now*, or was abandoned.

        Raises:
            Exception: what the tuner raised.
            AssertionError: it neither returns nor waits, or was asked already.
        """
        if request in self.gate.asked:
            raise AssertionError(
                f"trial {request} was asked for already: {self._standing(request)}"
            )
        self._ask(request)
        return self.proposed.get(request)

    def end(self, trial: int, value: Any = None, *, reason: str = "") -> None:
        """End a trial: deliver its result and its end, open its gate, ask again who said not now.

        Args:
            trial: one that runs.
            value: its final result; None: it has none.
            reason: why nobody can start from it, such as ``"weights missing"``; without a value
                it failed in any case.

        Raises:
            Exception: what the tuner raised.
            AssertionError: it does not run.
        """
        if trial not in self.running:
            raise AssertionError(f"trial {trial} does not run: {self._standing(trial)}")
        if value is None:
            reason = reason or "exit code 1"
        self._happened.append(_Happened("end", trial, value, reason))
        self._end(trial, value, reason)
        for request in sorted(self.later):
            self._ask(request)

    def publish(self, store: str, by: int) -> int:
        """Let a trial that runs publish the next version of a shared store; return its number.

        Requests that waited for it have gone on when this returns.

        Args:
            store: its name.
            by: the trial.

        Raises:
            Exception: what the tuner raised.
            AssertionError: the trial does not run.
        """
        if by not in self.running:
            raise AssertionError(f"trial {by} does not run: {self._standing(by)}")
        self._happened.append(_Happened("published", by, store))
        number = self.gate.publish(store, by)
        self._settle()
        return number

    def run(
        self,
        score: Callable[[Any, int], Any],
        *,
        trials: int,
        at_once: int = 1,
        seed: int | None = None,
    ) -> dict[int, Any]:
        """Play a search to its end and return what was proposed, by trial.

        Args:
            score: the result of a trial from its parameters and its number; None: it fails.
            trials: how many requests there are, with those that were asked before.
            at_once: how many requests may be open (they wait, or said *not now*) or trials run at
                one time.
            seed: draws which of the running trials ends next; None: the one with the least number.

        Raises:
            Exception: what the tuner raised.
            AssertionError: requests wait, and nothing runs that could let them go on.
        """
        dice = random.Random(seed)  # noqa: S311 - no secret
        requests = iter([one for one in range(trials) if one not in self.gate.asked])
        while True:
            while self._open < at_once and (request := next(requests, None)) is not None:
                self.ask(request)
            if not self.running:
                break
            trial = self.running[0] if seed is None else dice.choice(self.running)
            self.end(trial, score(self.proposed[trial], trial))
        if blocked := self.waiting:
            self.close()
            raise AssertionError(f"requests {blocked} wait for ever: nothing runs any more")
        return self.proposed

    def keep_state(self) -> None:
        """Take the tuner's ``state()``, for a restart later on."""
        self._state = json.dumps(self.tuner.state(), allow_nan=False)
        self._kept_at = len(self._happened)

    def restart(self, fresh: Tuner) -> None:
        """Go on with another tuner, as after the death of the tuner's process.

        The fresh one gets the state that was kept last (taken now if none was), then what happened
        since: proposals by ``restore_proposal``, results and ends. Blocked requests are asked anew.
        If ``state()`` is None, all calls are repeated instead; the earlier answers stand.

        Args:
            fresh: made as the first one was, with its search space.

        Raises:
            Exception: what the fresh tuner raised.
            AssertionError: it waits in, or refuses, a repeated request that was answered before.
        """
        if self._state is None:
            self.keep_state()
        state = json.loads(self._state or "null")
        waiting = self.waiting
        self.close()
        self.gate.resume()
        self.tuner = with_gate(fresh, self.gate)
        if state is None:
            self._repeat_calls()
            return
        fresh.restore(state)
        for one in self._happened[self._kept_at :]:
            if one.what == "end":
                self._deliver(one.trial, one.value)
            elif one.what == "proposed":
                fresh.restore_proposal(one.trial, self.proposed[one.trial])
        for request in waiting:
            self._start(request)

    def close(self) -> None:
        """Cancel the requests that wait, as the end of an experiment does."""
        threads = list(self.gate.requests)
        self.gate.cancel()
        for thread in threads:
            thread.join(self.gate.patience_s)

    @property
    def _open(self) -> int:
        return len(self.running) + len(self.waiting) + len(self.later)

    def _standing(self, request: int) -> str:
        """The fate of a request, for an error."""
        if request not in self.gate.asked:
            return "it was never asked for"
        if request in self.waiting:
            return "its request waits"
        if request in self.later:
            return "its request said not now, and is asked again after the next end"
        if request not in self.proposed:
            return "its request ended without parameters"
        return "it runs" if request in self.running else "it has ended"

    def _ask(self, request: int) -> None:
        self._happened.append(_Happened("asked", request))
        self._start(request)

    def _start(self, request: int) -> None:
        if request in self.later:
            self.later.remove(request)
        thread = threading.Thread(target=self._run_request, args=(request,), daemon=True)
        self.gate.enter(thread, request)
        thread.start()
        self._settle()

    def _end(self, trial: int, value: Any, reason: str) -> None:
        self._deliver(trial, value)
        if reason:
            self.gate.fail(trial, reason)
        else:
            self.gate.open(trial)
        self._settle()

    def _deliver(self, trial: int, value: Any) -> None:
        if value is not None:
            self.tuner.receive_trial_result(trial, self.proposed[trial], value)
        self.tuner.trial_end(trial, value is not None)

    def _repeat_calls(self) -> None:
        """Call the fresh tuner as the first one was called, from the beginning."""
        self.gate.forget()
        self.abandoned, self.later = set(), []
        for one in self._happened:
            if one.what == "asked":
                self._start(one.trial)
            elif one.what == "end":
                self._end(one.trial, one.value, one.reason)
            elif one.what == "published":
                self.gate.publish(one.value, one.trial)
                self._settle()
        unanswered = {*self.waiting, *self.later, *self.abandoned} & self.proposed.keys()
        if unanswered:
            raise AssertionError(
                f"requests {sorted(unanswered)} were answered before, and are not when all calls "
                "are repeated in a fresh tuner"
            )

    def _run_request(self, request: int) -> None:
        try:
            parameters = self.tuner.generate_parameters(request)
            text = json.dumps(parameters, default=_plain, allow_nan=False)
            if request not in self.proposed:  # else its call is repeated: the first answer stands
                self.proposed[request] = json.loads(text)
                self._happened.append(_Happened("proposed", request))
        except NoMoreTrialError:
            self.later.append(request)
        except ParentFailed:
            self.abandoned.add(request)
            self.gate.fail(request, "no trial")
        except WaitCancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - the top of a thread
            self._errors.append(error)
            self.gate.fail(request, "no trial")
        finally:
            self.gate.answered()

    def _settle(self) -> None:
        """Return once every request is answered or blocked."""
        moving = self.gate.until_settled()
        if self._errors:
            raise self._errors.pop(0)
        if moving:
            raise AssertionError(f"requests {moving} neither return nor wait in wait_for")


class _Happened(NamedTuple):
    """One thing that happened in a search, as a restart tells it."""

    what: Literal["asked", "proposed", "published", "end"]
    trial: int
    value: Any = None  # its result; the name of the store
    reason: str = ""


class _SearchGate(ScriptedGate):
    """A scripted gate that knows the requests.

    It refuses waits for what was never asked for, and lets one request go on at a time, as the
    tuner host does: of those whose waits are over, the one with the least number.
    """

    def __init__(self, patience_s: float) -> None:
        super().__init__(patience_s)
        self.asked: set[int] = set()
        self.requests: dict[threading.Thread, int] = {}  # not answered
        self._turn: threading.Thread | None = None  # the request that goes on

    def wait(self, parents: tuple[int, ...], mode: WaitMode, timeout: float | None) -> list[int]:
        """Block until enough of these trials have ended; see the class above."""
        for parent in parents:
            if parent not in self.asked:
                raise UnknownParent(parent)
            if parent == self.requests.get(threading.current_thread()):
                raise SelfWait(parent)
        return super().wait(parents, mode, timeout)

    def enter(self, thread: threading.Thread, request: int) -> None:
        """Let a request begin, in a thread that is about to start; nobody else goes on now."""
        with self._changed:
            self.asked.add(request)
            self.requests[thread] = request
            self._turn = thread

    def answered(self) -> None:
        """Note that the request of this thread is over."""
        me = threading.current_thread()
        with self._changed:
            self.requests.pop(me, None)
            self._give_turn_away(me)
            self._changed.notify_all()

    def until_settled(self) -> list[int]:
        """Return once every request is answered or blocked; name those that are not in time."""

        def moving() -> list[int]:
            blocked = self.blocked()
            return [number for thread, number in self.requests.items() if thread not in blocked]

        with self._changed:
            if self._changed.wait_for(lambda: not moving(), self.patience_s):
                return []
            return moving() if self._turn is None else [self.requests[self._turn]]

    def resume(self) -> None:
        """Let waits block again after :meth:`cancel`."""
        self._is_cancelled = False

    def forget(self) -> None:
        """Forget what has ended and what was published: it all comes again."""
        with self._changed:
            self.ended.clear()
            self.failed.clear()
            self.versions.clear()
            self._publishers.clear()

    def _goes_on(self, me: threading.Thread, is_over: Callable[[], bool]) -> bool:
        if not is_over():
            self._give_turn_away(me)
            return False
        if self._is_cancelled or me not in self.requests:
            return True
        if self._turn is None:
            blocked = self.blocked()
            ready = (thread for thread in self.requests if thread not in blocked)
            self._turn = min(ready, key=self.requests.__getitem__)
        return self._turn is me

    def _give_turn_away(self, me: threading.Thread) -> None:
        if self._turn is me:
            self._turn = None
            self._changed.notify_all()


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy, as an experiment takes them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"parameters must be JSON, and {value!r} is none")
