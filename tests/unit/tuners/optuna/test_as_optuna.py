"""Against Optuna itself: the same seed and the same results give the same suggestions."""

from __future__ import annotations

import warnings

import optuna
import pytest

from tuners import make_builtin

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
    "momentum": {"_type": "uniform", "_value": [0.0, 0.9]},
    "units": {"_type": "randint", "_value": [8, 65]},
    "depth": {"_type": "quniform", "_value": [2, 10, 2]},
    "act": {"_type": "choice", "_value": ["relu", "gelu", None, 2.5]},
    "conv": {
        "_type": "choice",
        "_value": [
            {"_name": "none"},
            {"_name": "some", "kernel": {"_type": "randint", "_value": [1, 4]}},
        ],
    },
}


def define_by_run(trial):
    """What a user of Optuna would write for that space."""
    found = {
        "lr": trial.suggest_float("lr", 1e-4, 1e-1, log=True),
        "momentum": trial.suggest_float("momentum", 0.0, 0.9),
        "units": trial.suggest_int("units", 8, 64),
        "depth": trial.suggest_float("depth", 2, 10, step=2),
        "act": trial.suggest_categorical("act", ["relu", "gelu", None, 2.5]),
        "conv": {"_name": trial.suggest_categorical("conv", ["none", "some"])},
    }
    if found["conv"]["_name"] == "some":
        found["conv"]["kernel"] = trial.suggest_int("conv/some/kernel", 1, 3)
    return found


def result(parameters):
    return (parameters["units"] - 40) ** 2 + parameters["momentum"] + 100 * parameters["lr"]


def lead(tuner, first, last):
    """Trials one after another; every seventh fails."""
    found = []
    for number in range(first, last):
        parameters = tuner.generate_parameters(number)
        found.append(parameters)
        if number % 7:
            tuner.receive_trial_result(number, parameters, result(parameters))
        tuner.trial_end(number, bool(number % 7))
    return found


CASES = {
    "TPE": ("TPESampler", {"n_startup_trials": 6, "multivariate": True, "group": True}),
    "CMA-ES": ("CmaEsSampler", {"n_startup_trials": 3, "warn_independent_sampling": False}),
    "QMC": ("QMCSampler", {"scramble": True, "warn_independent_sampling": False}),
    "NSGA-II": ("NSGAIISampler", {"population_size": 10}),
    "NSGA-III": ("NSGAIIISampler", {"population_size": 10}),
    "GP": ("GPSampler", {"n_startup_trials": 57, "warn_independent_sampling": False}),
}


@pytest.mark.parametrize("name", CASES)
def test_the_same_suggestions_in_serial_use(name):
    if name == "GP":
        pytest.importorskip("torch")
    sampler, arguments = CASES[name]
    tuner = make_builtin(name, {**arguments, "seed": 7, "optimize_mode": "minimize"})
    tuner.update_search_space(SPACE)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        theirs = getattr(optuna.samplers, sampler)(seed=7, **arguments)
        study = optuna.create_study(sampler=theirs)
    for number in range(60):
        parameters = tuner.generate_parameters(number)
        trial = study.ask()
        assert parameters == define_by_run(trial), number
        if number % 10 == 9:
            study.tell(trial, state=optuna.trial.TrialState.FAIL)
        else:
            study.tell(trial, result(parameters))
            tuner.receive_trial_result(number, parameters, {"default": result(parameters)})
        tuner.trial_end(number, number % 10 != 9)


def test_several_objectives_go_to_the_study_with_their_senses():
    modes = {"default": "maximize", "latency": "minimize"}
    tuner = make_builtin(
        "Optuna", {"sampler": "NSGAII", "samplerArgs": {"population_size": 8}, "objectives": modes}
    )
    tuner.update_search_space(SPACE)
    study = optuna.create_study(
        directions=["maximize", "minimize"],
        sampler=optuna.samplers.NSGAIISampler(seed=0, population_size=8),
    )
    for number in range(40):
        parameters = tuner.generate_parameters(number)
        trial = study.ask()
        assert parameters == define_by_run(trial), number
        accuracy, latency = -parameters["lr"], parameters["units"] * 1.5
        study.tell(trial, [accuracy, latency])
        tuner.receive_trial_result(number, parameters, {"default": accuracy, "latency": latency})
        tuner.trial_end(number, True)


def test_a_result_that_is_not_finite_is_a_failed_trial():
    tuner = make_builtin("TPE")
    tuner.update_search_space(SPACE)
    for number, value in enumerate([float("nan"), float("inf"), 1.0]):
        tuner.receive_trial_result(number, tuner.generate_parameters(number), value)
        tuner.trial_end(number, True)
    states = [trial.state.name for trial in tuner.study.trials]
    assert states == ["FAIL", "FAIL", "COMPLETE"]


def test_a_trial_by_hand_is_seen_where_it_lies_in_the_space():
    tuner = make_builtin("TPE")
    tuner.update_search_space(SPACE)
    own = tuner.generate_parameters(0)
    inside = {**own, "units": 33, "conv": {"_name": "some", "kernel": 2}}
    tuner.receive_trial_result(5, inside, 2.0, customized=True)
    tuner.receive_trial_result(6, {**inside, "units": 4000}, 3.0, customized=True)
    tuner.receive_trial_result(7, {"units": 9}, 3.0, customized=True)
    trials = tuner.study.trials
    assert [trial.state.name for trial in trials] == ["RUNNING", "COMPLETE"]
    assert trials[1].params["units"] == 33
    assert trials[1].params["conv/some/kernel"] == 2
