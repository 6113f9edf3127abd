"""A run of a tuner without processes: requests in threads, trials that end in any order.

Between two ends the storm waits until every request is answered or blocked, so that a run is
repeated exactly by its seed, with or without a restart of the tuner in the middle.
"""

from __future__ import annotations

import json
import random
import threading
from collections.abc import Callable
from typing import Any

from tests.unit.tuners.gates import OpenGate
from tuners import NoMoreTrialError, ParentFailed, Tuner, UnknownParent, WaitCancelled

PATIENCE_S = 120.0


class StormGate(OpenGate):
    """Knows how each trial ended, and who is blocked."""

    def __init__(self) -> None:
        super().__init__()
        self.changed = threading.Condition()
        self.fates: dict[int, bool] = {}
        self.asked: set[int] = set()
        self.blocked_threads: set[threading.Thread] = set()
        self.closed = False

    def wait(self, parents: tuple[int, ...], mode: str, timeout: float | None) -> list[int]:
        me = threading.current_thread()
        with self.changed:
            for parent in parents:
                if parent not in self.asked:
                    raise UnknownParent(parent)
                while parent not in self.fates and not self.closed:
                    self.blocked_threads.add(me)
                    self.changed.notify_all()
                    self.changed.wait()
                self.blocked_threads.discard(me)
                if self.closed:
                    raise WaitCancelled
                if not self.fates[parent]:
                    raise ParentFailed(parent, "killed")
        return list(parents)


class Storm:
    """Runs one tuner.

    Args:
        make: builds the tuner, with its search space.
        count: how many requests.
        abreast: requests that are open or running at once.
        failing: share of trials that fail.
        restart_at: after so many ends the tuner is replaced by a restored one; None: never.
        stale: how many ends before that its state was taken; what was proposed and what ended since
            is told again, as the tuner host does.
    """

    def __init__(
        self,
        make: Callable[[], Tuner],
        *,
        count: int = 200,
        abreast: int = 24,
        failing: float = 0.1,
        restart_at: int | None = None,
        stale: int = 0,
        seed: int = 0,
    ) -> None:
        self._make = make
        self._count = count
        self._abreast = abreast
        self._failing = failing
        self._restart_at = restart_at
        self._state_at = None if restart_at is None else restart_at - stale
        self._state = ""
        self._since: list[tuple[str, int, float | None]] = []  # what happened, trial, its value
        self._dice = random.Random(seed)
        self.gate = StormGate()
        self.tuner = self._fresh()
        self.proposals: dict[int, Any] = {}
        self.without: set[int] = set()  # requests that ended without a trial
        self.errors: list[BaseException] = []
        self._later: list[int] = []  # said "not now"
        self._threads: dict[int, threading.Thread] = {}

    def run(self) -> dict[int, Any]:
        """Returns all proposals by request. Raises what a request raised."""
        running: set[int] = set()
        asked = ends = 0
        while True:
            while asked < self._count and len(running) + len(self._threads) < self._abreast:
                self._ask(asked)
                asked += 1
                running = self._running()
            if not running:
                break
            if ends == self._state_at:
                self._state = json.dumps(self.tuner.state())
                self._since.clear()
            if ends == self._restart_at:
                self._restart()
            self._finish(self._dice.choice(sorted(running)))
            ends += 1
            for request in [self._later.pop(0) for _ in range(len(self._later))]:
                self._ask(request)
            running = self._running()
        assert not self._threads, f"requests {sorted(self._threads)} wait for ever"
        return self.proposals

    def _running(self) -> set[int]:
        return self.proposals.keys() - self.gate.fates.keys()

    def _fresh(self) -> Tuner:
        tuner = self._make()
        tuner._bequeath_gate = self.gate
        return tuner

    def _ask(self, request: int) -> None:
        self.gate.asked.add(request)
        thread = threading.Thread(target=self._request, args=(request,))
        self._threads[request] = thread
        thread.start()
        self._settle()

    def _request(self, request: int) -> None:
        try:
            parameters = self.tuner.generate_parameters(request)
            path = parameters.get("restore_path")
            if path is not None:
                parent = int(path.removeprefix("trials/"))
                assert self.gate.fates[parent], f"{request} inherits from {parent}, which failed"
            self.proposals[request] = json.loads(json.dumps(parameters))
            self._since.append(("proposed", request, None))
        except NoMoreTrialError:
            self._later.append(request)
        except ParentFailed:
            self.without.add(request)
            with self.gate.changed:
                self.gate.fates[request] = False
        except WaitCancelled:
            pass
        except BaseException as error:  # noqa: BLE001 - the top of a thread
            self.errors.append(error)
        finally:
            with self.gate.changed:
                if self._threads.get(request) is threading.current_thread():
                    del self._threads[request]
                self.gate.changed.notify_all()

    def _settle(self) -> None:
        """Until every request is answered or blocked."""

        def is_settled() -> bool:
            return all(thread in self.gate.blocked_threads for thread in self._threads.values())

        with self.gate.changed:
            assert self.gate.changed.wait_for(is_settled, PATIENCE_S), "a request stands still"
        if self.errors:
            raise self.errors[0]

    def _finish(self, trial: int) -> None:
        well = self._dice.random() >= self._failing
        value = self._dice.random() if well else None
        self._since.append(("ended", trial, value))
        self._tell(trial, value)
        with self.gate.changed:
            self.gate.fates[trial] = well
            for thread in self._threads.values():
                self.gate.blocked_threads.discard(thread)  # each looks for itself again
            self.gate.changed.notify_all()
        self._settle()

    def _tell(self, trial: int, value: float | None) -> None:
        if value is not None:
            self.tuner.receive_trial_result(trial, self.proposals[trial], value)
        self.tuner.trial_end(trial, value is not None)

    def _restart(self) -> None:
        waiting = dict(sorted(self._threads.items()))
        with self.gate.changed:
            self.gate.closed = True
            self.gate.changed.notify_all()
        for thread in waiting.values():
            thread.join(PATIENCE_S)
        self.gate.closed = False
        self.tuner = self._fresh()
        self.tuner.restore(json.loads(self._state))
        for what, trial, value in self._since:
            if what == "proposed":
                self.tuner.restore_proposal(trial, self.proposals[trial])
            else:
                self._tell(trial, value)
        for request in waiting:
            self._ask(request)
