"""What a tuner does for a trial, and what it keeps, does not grow with the number of trials.

Counted in calls and in bytes of ``state()``, which no load of the machine changes. Seconds and
bytes of memory over 5,000 trials are measured by ``benchmarks/tuners.py``, for every tuner.
"""

from __future__ import annotations

import json
import random
import sys

import pytest

from tests.unit.tuners.test_storm import CASES, make
from tuners import NoMoreTrialError, ParentFailed
from tuners.testing import with_gate

ABREAST = 8
TRIALS = 400
QUARTER = TRIALS // 4

#: How much more is called where that hangs on what was drawn, and how much fuller a bounded memory
#: may be at the end than in the middle.
SLACK = 1.2

#: A search that begins with networks as large as they may become: a proposal's cost goes with that.
FULL = {"blocks": [{"width": 8, "kernel": 3}] * 4, "max_blocks": 4, "max_width": 8}
OF_NETWORKS = {"MorphingEvolution", "crossover", "NetworkMorphism"}

#: Samplers of Optuna, whose bound is tried in ``optuna/test_history.py``; and what remembers the
#: latest 300 results of each budget.
ELSEWHERE = {
    *("Optuna", "TPE", "TPE that forgets", "CMA-ES", "GP", "QMC", "NSGA-II", "NSGA-III", "BOHB")
}

#: Bytes a trial of a state that does grow: which request had which answer, or which rank.
GROWS = {"GridSearch": 30, "ASHA": 140, "Schedule": 30}


class Led:
    """Trials abreast that end in any order; counts what is called."""

    def __init__(self, case: str) -> None:
        self.tuner = with_gate(make(case, FULL if case in OF_NETWORKS else {}))
        self.dice = random.Random(3)
        self.running: dict[int, object] = {}
        self.asked = 0
        self.calls = 0

    def lead(self, trials: int) -> int:
        """Calls of Python's and C's functions that so many more trials took."""
        before = self.calls
        sys.setprofile(self.count)
        try:
            for _ in range(trials):
                self.step()
        finally:
            sys.setprofile(None)
        return self.calls - before

    def count(self, frame: object, event: str, argument: object) -> None:
        self.calls += event in ("call", "c_call")

    def step(self) -> None:
        try:
            parameters = self.tuner.generate_parameters(self.asked)
            self.running[self.asked] = json.loads(json.dumps(parameters))
        except (NoMoreTrialError, ParentFailed):
            pass
        self.asked += 1
        if len(self.running) >= ABREAST:
            trial = self.dice.choice(sorted(self.running))
            parameters = self.running.pop(trial)
            self.tuner.receive_trial_result(trial, parameters, self.dice.random())
            self.tuner.trial_end(trial, True)

    def size(self) -> int:
        return len(json.dumps(self.tuner.state()))


@pytest.mark.parametrize("case", [case for case in CASES if case not in ELSEWHERE])
def test_neither_work_nor_state_grows(case: str) -> None:
    led = Led(case)
    led.lead(QUARTER)
    calls, sizes = [], []
    for _ in range(3 * QUARTER // 25):
        calls.append(led.lead(25))
        sizes.append(led.size())
    half = len(calls) // 2
    assert sum(calls[half:]) <= SLACK * sum(calls[:half])
    grown = GROWS.get(case, 0) * 25 * half
    assert max(sizes[half:]) <= SLACK * max(sizes[:half]) + grown + 200
