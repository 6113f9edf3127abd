"""A schedule read from an experiment's export, and run again."""

from __future__ import annotations

import json

import pytest

from tuners import NoMoreTrialError, ParentFailed, TunerArgumentError
from tuners.schedules import ScheduleTuner, schedule
from tuners.testing import OpenGate, RefusingGate, with_gate

ROWS = [
    {"trial": 0, "save_path": "trials/0", "restore_path": None, "parameters.lr": 0.1},
    {"trial": 1, "save_path": "trials/1", "restore_path": None, "parameters.lr": 0.5},
    {"trial": 2, "save_path": "trials/2", "restore_path": "trials/1", "parameters.lr": 0.4},
    {
        "trial": 4,
        "save_path": "trials/4",
        "restore_path": "trials/2",
        "parameters.lr": 0.2,
        "parameters.layer._name": "conv",
        "parameters.layer.size": 3,
        "parameters.save_path": "trials/4",
        "parameters.restore_path": "trials/2",
    },
]
FOUND = [{"lr": 0.5}, {"lr": 0.4}, {"lr": 0.2, "layer": {"_name": "conv", "size": 3}}]


def test_the_schedule_follows_the_weights_not_the_numbers():
    assert schedule(ROWS, 4) == FOUND
    assert schedule(ROWS, 0) == [{"lr": 0.1}]


def test_rows_that_are_missing_are_named():
    with pytest.raises(KeyError, match="no trial 3"):
        schedule(ROWS, 3)
    with pytest.raises(KeyError, match="starts from 'trials/1'"):
        schedule([ROWS[2]], 2)


def test_it_is_run_again_step_by_step():
    gate = OpenGate()
    tuner = with_gate(ScheduleTuner(json.loads(json.dumps(FOUND))), gate)
    steps = [tuner.generate_parameters(n) for n in range(3)]
    assert [step.get("restore_path") for step in steps] == [None, "trials/0", "trials/1"]
    assert [step["lr"] for step in steps] == [0.5, 0.4, 0.2]
    assert gate.waited == [(0,), (1,)]
    with pytest.raises(NoMoreTrialError, match="all 3 steps"):
        tuner.generate_parameters(3)
    steps[2]["layer"]["size"] = 99
    assert tuner.generate_parameters(2)["layer"]["size"] == 3


def test_a_step_that_failed_ends_the_schedule():
    tuner = with_gate(ScheduleTuner(FOUND), OpenGate(failed={0}))
    tuner.generate_parameters(0)
    with pytest.raises(ParentFailed):
        tuner.generate_parameters(1)


def test_without_threads_and_after_a_restart():
    one, other = (with_gate(ScheduleTuner(FOUND), RefusingGate()) for _ in range(2))
    one.generate_parameters(0)
    with pytest.raises(NoMoreTrialError, match="step 0 has not ended"):
        one.generate_parameters(1)
    one.receive_trial_result(0, {}, 1.0)
    one.trial_end(0, True)
    other.restore(json.loads(json.dumps(one.state())))
    assert other.generate_parameters(1) == one.generate_parameters(1)


@pytest.mark.parametrize("wrong", [[], {}, "lr", [0.1]])
def test_what_is_no_schedule_is_refused(wrong):
    with pytest.raises(TunerArgumentError, match="schedule"):
        ScheduleTuner(wrong)
