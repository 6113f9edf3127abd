"""Arguments that do not fit are named before anything starts."""

from __future__ import annotations

import builtins

import pytest

from tuners import TunerArgumentError, make_builtin
from tuners.builtin import make_assessor


@pytest.mark.parametrize(
    "name, arguments, words",
    [
        ("TPE", {"n_startup_trial": 4}, "Did you mean 'n_startup_trials'"),
        ("TPE", {"nStartupTrials": "x", "popsize": 3}, "takes no argument"),
        ("Optuna", {"sampler": "TPESampeler"}, "Did you mean 'TPESampler'"),
        ("Optuna", {"sampler": 7}, "has no sampler 7"),
        ("Optuna", {"sampler": "NSGAII", "sampler_args": {"population_size": 1}}, "refuses its"),
        ("Optuna", {"sampler_arg": {}}, "Did you mean 'sampler_args'"),
        ("Optuna", {"optimize_mode": "max"}, "'maximize' or 'minimize'"),
        ("CMA-ES", {"seed": -1}, "seed is an integer"),
    ],
)
def test_what_does_not_fit_is_named(name, arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        make_builtin(name, arguments)


def test_objects_of_optuna_are_written_by_name():
    tuner = make_builtin(
        "Optuna",
        {
            "sampler": "NSGAIISampler",
            "samplerArgs": {"crossover": {"name": "SBXCrossover", "eta": 2.0}},
        },
    )
    crossover = tuner._study.sampler._child_generation_strategy._crossover
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
