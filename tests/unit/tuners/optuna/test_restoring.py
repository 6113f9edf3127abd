"""A restored sampler goes on as the one before it would have."""

from __future__ import annotations

import json

import pytest

from tests.unit.tuners.optuna.test_as_optuna import SPACE, lead, result
from tuners import make_builtin


def fresh(name):
    tuner = make_builtin(name, {"seed": 11, "optimize_mode": "minimize"})
    tuner.update_search_space(SPACE)
    return tuner


@pytest.mark.parametrize("name", ["TPE", "CMA-ES", "QMC", "NSGA-II"])
def test_it_proposes_to_the_letter_what_the_other_does(name):
    one = fresh(name)
    lead(one, 0, 30)
    state = json.loads(json.dumps(one.state()))
    other = fresh(name)
    other.restore(state)
    assert other.state() == one.state()
    assert lead(other, 30, 60) == lead(one, 30, 60)


def test_proposals_since_the_state_are_known_again_in_any_order():
    one = fresh("TPE")
    lead(one, 0, 15)
    state = json.loads(json.dumps(one.state()))
    since = {number: one.generate_parameters(number) for number in range(15, 19)}
    other = fresh("TPE")
    other.restore(state)
    for number in (16, 15, 18, 17):  # answered in another order than asked
        other.restore_proposal(number, since[number])
    for tuner in (one, other):
        for number, parameters in since.items():
            tuner.receive_trial_result(number, parameters, result(parameters))
            tuner.trial_end(number, True)
    assert lead(other, 19, 40) == lead(one, 19, 40)


def test_a_proposal_that_is_not_suggested_again_is_taken_as_it_was():
    tuner = fresh("TPE")
    foreign = {**fresh("TPE").generate_parameters(0), "units": 12, "momentum": 0.125}
    tuner.restore_proposal(0, foreign)
    tuner.receive_trial_result(0, foreign, 1.0)
    told = [trial for trial in tuner.study.trials if trial.state.name == "COMPLETE"]
    assert [trial.params["units"] for trial in told] == [12]


def test_a_space_that_changed_in_between_is_the_one_gone_on_with():
    narrow = {"units": {"_type": "randint", "_value": [8, 12]}}
    one = fresh("TPE")
    lead_space = {"lr": SPACE["lr"], "units": SPACE["units"]}
    one.update_search_space(lead_space)
    for number in range(12):
        parameters = one.generate_parameters(number)
        one.receive_trial_result(number, parameters, parameters["units"])
        one.trial_end(number, True)
    one.update_search_space(narrow)
    one.generate_parameters(12)
    other = make_builtin("TPE", {"seed": 11, "optimize_mode": "minimize"})
    other.update_search_space(narrow)
    other.restore(json.loads(json.dumps(one.state())))
    assert [other.generate_parameters(n) for n in (13, 14)] == [
        one.generate_parameters(n) for n in (13, 14)
    ]
