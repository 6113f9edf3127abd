"""The tuner host under the real core: both must draw the same conclusions from each wait.

A wait that the host ends by itself is taken off the core's books by the same rule. Were the
two of different minds, the core would refuse an event, or somebody would wait for ever.
"""

from __future__ import annotations

import random
import time

import pytest

from dispatcher.core import actions as a
from dispatcher.core import apply, check, new_state
from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.model import OVER, EndReason, Phase, Weights
from dispatcher.core.settings import Settings, TunerErrorPolicy
from tests.integration.tuner_host.conftest import Make
from tests.integration.tuner_host.fake_head import FakeHead
from tests.integration.tuner_host.test_requests import source

WILD = source("""
    import random, time
    from tuners import UnknownParent, WaitTimeout, CycleRefused
    class T(Tuner):
        def __init__(self, seed):
            self.seed = seed
            self.results, self.ends = {}, {}
            self.events = {}
            self.refused = set()
        def generate_parameters(self, parameter_id, **kwargs):
            draw = random.Random(f"{self.seed} {parameter_id}")
            parents = [draw.randrange(max(0, parameter_id - 12), parameter_id + 3)
                       for _ in range(draw.randrange(4))] if parameter_id else []
            if draw.random() < 0.05 and parameter_id not in self.refused:
                self.refused.add(parameter_id)
                raise NoMoreTrialError
            if draw.random() < 0.05: raise ValueError("on purpose")
            with self.lock:
                event = self.events.setdefault(draw.randrange(max(1, parameter_id)),
                                               threading.Event())
            if draw.random() < 0.1: event.wait(0.3)
            for attempt in range(draw.randrange(1, 3)):
                wanted = [one for one in parents if one != parameter_id]
                if not wanted: break
                timeout = draw.choice([None, None, 0.0, 0.01, 0.2])
                mode = draw.choice(["all", "any"])
                try:
                    granted = self.wait_for(*wanted, mode=mode, timeout=timeout)
                    assert granted
                    for parent in granted:
                        assert parent in self.ends, (parameter_id, granted)
                except (WaitTimeout, UnknownParent, CycleRefused):
                    pass
                except ParentFailed:
                    if draw.random() < 0.5: raise
            return {"save_path": f"t/{parameter_id}"}
        def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
            assert parameter_id not in self.results
            self.results[parameter_id] = value
            with self.lock:
                self.events.setdefault(parameter_id, threading.Event()).set()
        def trial_end(self, parameter_id, success, **kwargs):
            assert parameter_id not in self.ends
            self.ends[parameter_id] = success
    """)


class Machine:
    """Core and host, with trials that end at once, in random order and not always well."""

    def __init__(self, head: FakeHead, seed: int, trials: int) -> None:
        self.head = head
        self.random = random.Random(seed)
        self.state = new_state(
            Settings(
                slots=4,
                lookahead=12,
                max_trials=trials,
                on_tuner_error=TunerErrorPolicy.CONTINUE,
                trial_retries=0,
            )
        )
        self.running: list[a.StartAttempt] = []
        self.started = 0

    def take(self, event: e.Event) -> None:
        step = apply(self.state, event, time.time())
        check(self.state)
        for action in step.actions:
            if isinstance(action, a.TunerAction):
                self.head.do(action)
            elif isinstance(action, a.StartAttempt):
                self.running.append(action)
                self.started += 1

    def end_one(self) -> None:
        attempt = self.running.pop(self.random.randrange(len(self.running)))
        self.take(e.AttemptStarted(attempt.trial, attempt.attempt))
        if self.random.random() < 0.8:
            self.take(e.FinalReported(attempt.trial, attempt.attempt, 1, "0.5"))
            weights = Weights("digest", "files", 1)
            end = e.AttemptEnded(
                attempt.trial, attempt.attempt, EndReason.FINISHED, 0, weights=weights
            )
        else:
            end = e.AttemptEnded(attempt.trial, attempt.attempt, EndReason.FAILED, 1)
        self.take(end)

    def run(self) -> None:
        self.take(e.HeadStarted(1))
        self.take(e.WorkerJoined(WorkerId("local"), 4))
        self.head.launch()
        deadline = time.monotonic() + 120
        while self.state.phase not in OVER:
            assert time.monotonic() < deadline, self.state
            for event in self.head.poll(0.0 if self.running else 0.02):
                assert not isinstance(event, e.TunerHostLost), event
                if isinstance(event, e.RequestFailed) and event.kind is e.RequestEnd.ERROR:
                    assert event.text.endswith("on purpose"), event.text
                assert not getattr(event, "error", ""), event
                self.take(event)
            if self.running:
                self.end_one()


@pytest.mark.parametrize("seed", range(3))
def test_wild_waits(make: Make, seed: int) -> None:
    head = make(WILD, class_args={"seed": seed}, snapshot_every=5)
    machine = Machine(head, seed, trials=150)
    machine.run()
    assert machine.state.phase is Phase.COMPLETED, machine.state.phase_reason
    assert machine.started == machine.state.submitted
    assert machine.started == 150 or machine.state.tuner_done
    assert not machine.state.waits
    assert not head.notes
