"""Several objectives and bounds in Optuna's samplers, beside a plain study of Optuna's."""

from __future__ import annotations

import json
import warnings

import optuna
import pytest

from tests.unit.tuners.optuna.test_as_optuna import SPACE, define_by_run
from tuners import TunerArgumentError, make_builtin

BOUNDED = {"default": "maximize", "latency": "minimize <= 60", "memory": ">= 8"}
SAMPLERS = {
    "TPE": ("TPESampler", {"n_startup_trials": 6}),
    "NSGA-II": ("NSGAIISampler", {"population_size": 8}),
    "NSGA-III": ("NSGAIIISampler", {"population_size": 8}),
}


def result_of(parameters):
    return {
        "default": -parameters["lr"],
        "latency": parameters["units"] * 1.5,
        "memory": float(parameters["units"] % 32),
    }


def bounded(name, **more):
    tuner = make_builtin(name, {**SAMPLERS[name][1], "objectives": BOUNDED, "seed": 7, **more})
    tuner.update_search_space(SPACE)
    return tuner


def lead(tuner, first, until):
    made = []
    for number in range(first, until):
        parameters = tuner.generate_parameters(number)
        made.append(parameters)
        tuner.receive_trial_result(number, parameters, result_of(parameters))
        tuner.trial_end(number, True)
    return made


@pytest.mark.parametrize("name", SAMPLERS)
def test_bounds_reach_the_sampler_as_constraints(name):
    """Mutation: a bound with the wrong sign, or one that the sampler never sees."""
    sampler, arguments = SAMPLERS[name]

    def constraints(trial):
        return trial.user_attrs["own"]

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(optuna.samplers, sampler)(
            seed=7, constraints_func=constraints, **arguments
        )
        study = optuna.create_study(directions=["maximize", "minimize"], sampler=theirs)
    tuner = bounded(name)
    for number in range(40):
        parameters = tuner.generate_parameters(number)
        trial = study.ask()
        assert parameters == define_by_run(trial), number
        told = result_of(parameters)
        trial.set_user_attr("own", [told["latency"] - 60.0, 8.0 - told["memory"]])
        study.tell(trial, [told["default"], told["latency"]])
        tuner.receive_trial_result(number, parameters, told)
        tuner.trial_end(number, True)
    plain = make_builtin(name, {**arguments, "seed": 7, "objectives": {
        "default": "maximize", "latency": "minimize"}})  # fmt: skip
    plain.update_search_space(SPACE)
    assert lead(plain, 0, 40) != lead(bounded(name), 0, 40), "the bounds change nothing"


@pytest.mark.parametrize("name", SAMPLERS)
@pytest.mark.parametrize("at", [25, 70])
def test_a_restart_knows_the_bounds(name, at):
    """Also after trials were forgotten. Mutation: the log without them."""
    one = bounded(name, history=40)
    lead(one, 0, at)
    other = bounded(name, history=40)
    other.restore(json.loads(json.dumps(one.state())))
    assert lead(other, at, at + 20) == lead(one, at, at + 20)


def test_what_is_kept_keeps_its_bounds_first():
    tuner = bounded("NSGA-II", history=40, population_size=2)
    lead(tuner, 0, 41)
    kept = [one for one in tuner.study.get_trials(deepcopy=False) if one.values]
    assert any(max(one.system_attrs["constraints"]) <= 0 for one in kept)


@pytest.mark.parametrize(
    "name, objectives, error",
    [
        ("CMA-ES", {"default": "maximize", "size": "minimize"}, "by one objective, and there are"),
        ("CMA-ES", {"default": "maximize <= 3"}, "knows no bounds, and the objective 'default'"),
        ("QMC", {"default": "maximize", "size": "<= 3"}, "knows no bounds"),
        ("TPE", {"default": "max"}, "the direction is 'maximize' or 'minimize'"),
    ],
)
def test_what_a_sampler_cannot_do_is_refused(name, objectives, error):
    with pytest.raises(TunerArgumentError, match=error):
        make_builtin(name, {"objectives": objectives})
