"""Bounds, and Optuna's pruners against Optuna itself."""

from __future__ import annotations

import random

import optuna
import pytest

from tests.unit.tuners.assessors.test_medianstop import run
from tuners import TunerArgumentError
from tuners.builtin import BUILTIN_ASSESSORS, builtin_assessor, make_assessor


def test_a_value_outside_stops_and_so_does_nan():
    assessor = make_assessor("Threshold", {"lower": 0.1, "upper": 2, "start_step": 3})
    assert run(assessor, "a", [0.0, 3.0, 0.5, 0.1, 2.0]) == []
    assert run(assessor, "b", [0.5, 0.5, 0.05, 0.5, 2.5, float("nan")]) == [3, 5, 6]


def test_only_so_many_in_a_row():
    assessor = make_assessor("Threshold", {"lower": 1, "gap": 3})
    assert run(assessor, "a", [0, 0, 1, 0, 0, 0]) == [6]


@pytest.mark.parametrize(
    "arguments", [{}, {"lower": 2, "upper": 1}, {"lower": "1"}, {"lower": 1, "gab": 1}]
)
def test_arguments_are_checked(arguments):
    with pytest.raises(TunerArgumentError):
        make_assessor("Threshold", arguments)


def test_no_assessor_is_left_without_a_class():
    for name in BUILTIN_ASSESSORS:
        assert builtin_assessor(name.lower()).__name__.startswith(name)
    with pytest.raises(TunerArgumentError, match="Did you mean 'Medianstop'"):
        builtin_assessor("MedianStopp")


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("MedianPruner", {"n_startup_trials": 2}),
        ("SuccessiveHalvingPruner", {}),
        ("HyperbandPruner", {"max_resource": 9}),
        ("ThresholdPruner", {"lower": 0.2}),
    ],
)
def test_a_pruner_prunes_what_it_prunes_in_optuna(name, arguments):
    assessor = make_assessor("OptunaPruner", {"pruner": name, "prunerArgs": arguments})
    study = optuna.create_study(
        direction="maximize",
        study_name=assessor.study.study_name,  # which Hyperband draws its brackets from
        pruner=getattr(optuna.pruners, name)(**arguments),
    )
    dice = random.Random(4)
    pruned = 0
    for number in range(40):
        trial = study.ask()
        values = [dice.random() for _ in range(9)]
        for step, value in enumerate(values):
            trial.report(value, step)
            stopped = not assessor.assess_trial(str(number), values[: step + 1]).value
            assert stopped == trial.should_prune(), (number, step)
            if stopped:
                break
        pruned += stopped
        state = optuna.trial.TrialState.PRUNED if stopped else None
        study.tell(trial, None if stopped else values[-1], state=state)
        assessor.trial_end(str(number), not stopped)
    assert 0 < pruned < 40
