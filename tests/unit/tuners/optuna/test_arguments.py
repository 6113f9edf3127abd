"""Arguments that do not fit are named before anything starts."""

from __future__ import annotations

import builtins
import re

import pytest

from tuners import TunerArgumentError, make_builtin
from tuners.builtin import make_assessor

TWO = {name: {"_type": "uniform", "_value": [0, 1]} for name in ("a", "b")}


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("TPE", {"n_startup_trial": 4}, "Did you mean 'n_startup_trials'"),
        ("TPE", {"nStartupTrials": 4, "popsize": 3}, "takes no argument 'popsize'"),
        ("TPE", {"optimise_mode": "minimize"}, "Did you mean 'optimize_mode'"),
        ("Optuna", {"sampler": "TPESampeler"}, "Did you mean 'TPESampler'"),
        ("Optuna", {"sampler": 7}, "has no sampler 7"),
        ("Optuna", {"sampler": "NSGAII", "sampler_args": {"population_size": 1}}, "refuses its"),
        ("Optuna", {"sampler_arg": {}}, "Did you mean 'sampler_args'"),
        ("Optuna", {"optimize_mode": "max"}, "'maximize' or 'minimize'"),
        ("CMA-ES", {"seed": -1}, "seed is an integer"),
        ("TPE", {"n_startup_trials": "9"}, "n_startup_trials of TPESampler is a whole number"),
        ("TPE", {"n_ei_candidates": 0}, "n_ei_candidates of TPESampler is 1 or more, not 0"),
        ("TPE", {"multivariate": 1}, "multivariate of TPESampler is true or false, not 1"),
        ("GP", {"n_startup_trials": -2}, "n_startup_trials of GPSampler is 0 or more"),
        ("CMA-ES", {"sigma0": "wide"}, "sigma0 of CmaEsSampler is a number, not 'wide'"),
        ("CMA-ES", {"independent_sampler": "Randm"}, "Did you mean 'RandomSampler'"),
        ("QMC", {"qmc_type": 3}, "qmc_type of QMCSampler is a text"),
        ("QMC", {"qmc_type": "sobo"}, "refuses its arguments"),
        ("NSGA-II", {"crossover_prob": 2.0}, "refuses its arguments"),
        ("TPE", {"history": 39}, "history .39. is too short .* it needs 40 trials or more"),
        ("NSGA-II", {"history": 100}, "it needs 200 trials or more"),
        ("TPE", {"history": "all"}, "history is an integer from 1 up"),
        ("Optuna", {"samplerArgs": [1]}, "sampler_args is an object"),
        ("TPE", {"gamma": 9}, "gamma of TPESampler is code of Optuna's, which no file can give"),
        ("NSGA-II", {"constraintsFunc": "cheap"}, "constraints_func of NSGAIISampler is code"),
        ("CMA-ES", {"x0": 0.5}, "x0 of CmaEsSampler is an object, not 0.5"),
        ("CMA-ES", {"source_trials": [1]}, "source_trials of CmaEsSampler is code"),
    ],
)
def test_what_does_not_fit_is_named(name, arguments, words):
    with pytest.raises(TunerArgumentError) as refused:
        make_builtin(name, arguments)
    assert re.search(words, f"{refused.value.message} {refused.value.hint}")


def test_a_sampler_within_another_is_seeded_as_well():
    def proposals():
        inner = {"independent_sampler": {"name": "RandomSampler"}, "n_startup_trials": 20}
        tuner = make_builtin("CMA-ES", {**inner, "seed": 3})
        tuner.update_search_space({"x": {"_type": "choice", "_value": [*range(50)]}} | TWO)
        return [tuner.generate_parameters(number) for number in range(8)]

    assert proposals() == proposals()


def test_objects_of_optuna_are_written_by_name():
    tuner = make_builtin(
        "Optuna",
        {
            "sampler": "NSGAIISampler",
            "samplerArgs": {"crossover": {"name": "SBXCrossover", "eta": 2.0}},
        },
    )
    crossover = tuner.study.sampler._child_generation_strategy._crossover
    assert type(crossover).__name__ == "SBXCrossover"
    make_assessor(
        "OptunaPruner",
        {"pruner": "Patient", "prunerArgs": {"wrapped_pruner": "MedianPruner", "patience": 2}},
    )
    with pytest.raises(TunerArgumentError, match=r"no pruner 'Medan'.*Did you mean"):
        make_assessor("OptunaPruner", {"pruner": "Medan"})


def test_a_missing_library_is_named(monkeypatch):
    real = builtins.__import__

    def without(name, *args, **kwargs):
        if name.partition(".")[0] == "optuna":
            raise ImportError("No module named 'optuna'", name="optuna")
        return real(name, *args, **kwargs)

    import tuners.optuna.library as library

    monkeypatch.setattr(library, "import_module", lambda name: without(name))
    with pytest.raises(TunerArgumentError, match=r"pip install 'bequeath\[optuna\]'"):
        make_builtin("TPE")


def test_a_missing_torch_is_named_before_the_first_fit(monkeypatch):
    import tuners.optuna.library as library

    monkeypatch.setattr(library, "find_spec", lambda name: None if name == "torch" else object())
    with pytest.raises(TunerArgumentError, match="GPSampler needs torch"):
        make_builtin("GP")
