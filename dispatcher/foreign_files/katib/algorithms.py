"""Katib's algorithms by name: which of our tuners stands for each, and what its settings become."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any


def _whole(text: Any) -> int:
    number = float(text)
    if number != int(number):
        raise ValueError(text)
    return int(text) if str(text).strip().isdecimal() else int(number)


def _number(text: Any) -> float:
    return float(text)


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. ``native`` is our class argument, empty without a counterpart; ``note`` says why
    there is none, or what is different."""

    native: str = ""
    read: Callable[[Any], Any] = str
    note: str = ""


@dataclass(frozen=True, slots=True)
class KatibAlgorithm:
    """One algorithm of Katib's.

    Attributes:
        native: our tuner; empty: refused.
        settings: by name.
        fixed: class arguments that ours needs in order to behave as Katib's.
        note: how far ours differs, or what to use instead.
    """

    native: str
    settings: Mapping[str, Setting] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)
    note: str = ""


_SEED = {"random_state": Setting("seed", _whole)}
_TPE = {
    **_SEED,
    "n_startup_trials": Setting("n_startup_trials", _whole),
    "startup_trials": Setting("n_startup_trials", _whole),
    "n_ei_candidates": Setting("n_ei_candidates", _whole),
    "n_EI_candidates": Setting("n_ei_candidates", _whole),
    "ei_candidates": Setting("n_ei_candidates", _whole),
    "gamma": Setting(note="Optuna has its own rule for how many trials are good"),
    "prior_weight": Setting(note="Optuna has its own weight of the prior"),
}

#: The setting of Hyperband that names the parameter which is a trial's budget.
RESOURCE = "resource_name"

#: Our name of that parameter.
BUDGET = "budget"

ALGORITHMS: dict[str, KatibAlgorithm] = {
    "random": KatibAlgorithm("Random", _SEED),
    "grid": KatibAlgorithm(
        "GridSearch",
        {
            **{"random_state": Setting(note="a grid is walked in one order")},
            **{"default_setting": Setting(note="it says nothing")},
        },
    ),
    "tpe": KatibAlgorithm("TPE", _TPE, note="Optuna's TPE"),
    "multivariate-tpe": KatibAlgorithm("TPE", _TPE, {"multivariate": True}, "Optuna's TPE"),
    "bayesianoptimization": KatibAlgorithm(
        "GP",
        {
            **_SEED,
            "n_initial_points": Setting("n_startup_trials", _whole),
            "base_estimator": Setting(note="the model is a Gaussian process"),
            "acq_func": Setting(note="the acquisition is log expected improvement"),
            "acq_optimizer": Setting(note="the acquisition is optimised in Optuna's way"),
        },
        note="Optuna's Gaussian process; it needs torch",
    ),
    "cmaes": KatibAlgorithm(
        "CMA-ES",
        {
            **_SEED,
            "sigma": Setting("sigma0", _number),
            "restart_strategy": Setting(note="it is not restarted"),
        },
        note="Optuna's CMA-ES",
    ),
    "sobol": KatibAlgorithm("QMC", _SEED, {"qmc_type": "sobol"}, "Optuna's Sobol' sequence"),
    "hyperband": KatibAlgorithm(
        "Hyperband",
        {
            "r_l": Setting("max_budget", _whole),
            "eta": Setting("eta", _whole),
            RESOURCE: Setting(
                note="this parameter is the budget: the tuner sets it, and it leaves the space"
            ),
        },
        {"inherit": False},
        "brackets follow one another without waiting for `parallelTrialCount`",
    ),
    "pbt": KatibAlgorithm(
        "",
        note="'PBT' hands weights from trial to trial by 'save_path' and 'restore_path' here, and "
        "Katib's by a volume: write 'tuner' at the top of the file (docs/tuners.md)",
    ),
    "enas": KatibAlgorithm("", note="'ENAS' is a tuner here (docs/tuners.md)"),
    "darts": KatibAlgorithm("", note="'ENAS' and 'SPOS' are tuners here (docs/tuners.md)"),
}
