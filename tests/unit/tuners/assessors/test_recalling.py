"""A fresh assessor that is shown the past goes on as the one before it would have."""

from __future__ import annotations

import random

import pytest

from tuners import Assessor, AssessResult
from tuners.assessors import curvefitting
from tuners.builtin import BUILTIN_ASSESSORS, make_assessor

CASES = {
    "Medianstop": {"start_step": 3},
    "Curvefitting": {"epoch_num": 16, "start_step": 5, "gap": 3},
    "Threshold": {"lower": 0.4, "start_step": 2, "gap": 2},
    "OptunaPruner": {"pruner": "SuccessiveHalving", "pruner_args": {"min_resource": 2}},
}
STEPS = 16


def test_no_assessor_is_left_out():
    assert CASES.keys() == set(BUILTIN_ASSESSORS)


class Led:
    """Trials that report abreast, each in its turn; those that are stopped end so."""

    def __init__(self, assessors, seed=4):
        self.assessors = assessors
        self.dice = random.Random(seed)
        self.running: dict[str, list[float]] = {}
        self.begun = 0
        self.shown = []  # what there was to see: trial and value, or trial and how it ended

    def lead(self, steps):
        """Verdicts of each assessor in turn."""
        verdicts = []
        for _ in range(steps):
            while len(self.running) < 4:
                self.running[str(self.begun)] = []
                self.begun += 1
            trial = self.dice.choice(sorted(self.running))
            history = self.running[trial]
            limit = 0.2 + 0.7 * (int(trial) * 7 % 10) / 10
            history.append(limit * (1 - 0.8 ** (len(history) + 1)))
            self.shown.append((trial, history[-1]))
            told = [one.assess_trial(trial, list(history)).value for one in self.assessors]
            verdicts.append((trial, len(history), told))
            if not told[0] or len(history) == STEPS:
                well = told[0] and int(trial) % 5 != 4
                self.shown.append((trial, well))
                for one in self.assessors:
                    one.trial_end(trial, well)
                del self.running[trial]
        return verdicts


@pytest.mark.parametrize("name", CASES)
def test_verdicts_after_a_restart_are_those_without_one(name, monkeypatch):
    first = make_assessor(name, CASES[name])
    led = Led([first])
    led.lead(250)
    fresh = make_assessor(name, CASES[name])
    with monkeypatch.context() as patched:
        patched.setattr(curvefitting, "predict", None)  # curves are not fitted once more
        histories: dict[str, list[float]] = {}
        for trial, what in led.shown:
            if isinstance(what, bool):
                fresh.trial_end(trial, what)
                continue
            histories.setdefault(trial, []).append(what)
            fresh.recall_trial(trial, list(histories[trial]))
    led.assessors.append(fresh)
    verdicts = led.lead(250)
    assert all(one == other for _, _, (one, other) in verdicts)
    stopped = sum(not one for _, _, (one, _) in verdicts)
    assert 3 < stopped < 200


def test_one_of_ones_own_is_asked_again_and_its_answers_are_nothing():
    asked = []

    class Own(Assessor):
        def assess_trial(self, trial_job_id, trial_history):
            asked.append((trial_job_id, trial_history))
            return AssessResult.Bad

    assert Own().recall_trial("3", [1.0]) is None
    assert asked == [("3", [1.0])]
