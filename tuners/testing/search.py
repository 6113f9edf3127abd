"""A search without processes: requests in threads, and trials that the test ends."""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from typing import Any

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
        self._state = ""
        self._since: list[tuple[int, bool, Any]] | None = None  # trial, whether it ended, result

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
            AssertionError: it neither returns nor waits.
        """
        self.gate.asked.add(request)
        thread = threading.Thread(target=self._run_request, args=(request,), daemon=True)
        self.gate.requests[thread] = request
        thread.start()
        self._settle()
        return self.proposed.get(request)

    def end(self, trial: int, value: Any = None) -> None:
        """End a trial: deliver its result and its end, open its gate, ask again who said not now.

        Args:
            trial: one that runs.
            value: its final result; None: it failed.

        Raises:
            Exception: what the tuner raised.
        """
        if self._since is not None:
            self._since.append((trial, True, value))
        self._deliver(trial, value)
        if value is None:
            self.gate.fail(trial)
        else:
            self.gate.open(trial)
        self._settle()
        again, self.later = self.later, []
        for request in again:
            self.ask(request)

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
            trials: how many requests there are.
            at_once: how many requests may wait or trials run at one time.
            seed: draws which of the running trials ends next; None: the one with the least number.

        Raises:
            Exception: what the tuner raised.
            AssertionError: requests wait, and nothing runs that could let them go on.
        """
        dice = random.Random(seed)  # noqa: S311 - no secret
        asked = 0
        while True:
            while asked < trials and len(self.running) + len(self.waiting) < at_once:
                self.ask(asked)
                asked += 1
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
        self._since = []

    def restart(self, fresh: Tuner) -> None:
        """Go on with another tuner, as after the death of the tuner's process.

        The fresh one gets the state that was kept last (taken now if none was), then what happened
        since: proposals by ``restore_proposal``, results and ends. Blocked requests are asked anew.

        Args:
            fresh: made as the first one was, with its search space.
        """
        if self._since is None:
            self.keep_state()
        waiting = self.waiting
        self.close()
        self.gate.resume()
        self.tuner = with_gate(fresh, self.gate)
        fresh.restore(json.loads(self._state))
        for trial, has_ended, value in self._since or ():
            if has_ended:
                self._deliver(trial, value)
            else:
                fresh.restore_proposal(trial, self.proposed[trial])
        for request in waiting:
            self.ask(request)

    def close(self) -> None:
        """Cancel the requests that wait, as the end of an experiment does."""
        threads = list(self.gate.requests)
        self.gate.cancel()
        for thread in threads:
            thread.join(self.gate.patience_s)

    def _deliver(self, trial: int, value: Any) -> None:
        if value is not None:
            self.tuner.receive_trial_result(trial, self.proposed[trial], value)
        self.tuner.trial_end(trial, value is not None)

    def _run_request(self, request: int) -> None:
        try:
            parameters = self.tuner.generate_parameters(request)
            text = json.dumps(parameters, default=_plain, allow_nan=False)
            self.proposed[request] = json.loads(text)
            if self._since is not None:
                self._since.append((request, False, None))
        except NoMoreTrialError:
            self.later.append(request)
        except ParentFailed:
            self.abandoned.add(request)
            self.gate.fail(request, "no trial")
        except WaitCancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - the top of a thread
            self._errors.append(error)
        finally:
            self.gate.answered()

    def _settle(self) -> None:
        """Return once every request is answered or blocked."""
        moving = self.gate.until_settled()
        if self._errors:
            raise self._errors.pop(0)
        if moving:
            raise AssertionError(f"requests {moving} neither return nor wait in wait_for")


class _SearchGate(ScriptedGate):
    """A scripted gate that knows the requests: it refuses waits for what was never asked for."""

    def __init__(self, patience_s: float) -> None:
        super().__init__(patience_s)
        self.asked: set[int] = set()
        self.requests: dict[threading.Thread, int] = {}  # not answered

    def wait(self, parents: tuple[int, ...], mode: WaitMode, timeout: float | None) -> list[int]:
        """Block until enough of these trials have ended; see the class above."""
        for parent in parents:
            if parent not in self.asked:
                raise UnknownParent(parent)
            if parent == self.requests.get(threading.current_thread()):
                raise SelfWait(parent)
        return super().wait(parents, mode, timeout)

    def answered(self) -> None:
        """Note that the request of this thread is over."""
        with self._changed:
            self.requests.pop(threading.current_thread(), None)
            self._changed.notify_all()

    def until_settled(self) -> list[int]:
        """Return once every request is answered or blocked; name those that are not in time."""

        def moving() -> list[int]:
            blocked = self.blocked()
            return [number for thread, number in self.requests.items() if thread not in blocked]

        with self._changed:
            self._changed.wait_for(lambda: not moving(), self.patience_s)
            return moving()

    def resume(self) -> None:
        """Let waits block again after :meth:`cancel`."""
        self._is_cancelled = False


def _plain(value: Any) -> Any:
    """Numbers and arrays of numpy, as an experiment takes them."""
    if hasattr(value, "tolist"):
        return value.tolist()
    raise TypeError(f"parameters must be JSON, and {value!r} is none")
