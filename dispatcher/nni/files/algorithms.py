"""NNI's built-in algorithms by name: which of ours stands for each, and what its arguments become.

An argument is handed on under our name, or has no counterpart: then NNI's own default is the only
value that can be honoured, and any other one is refused by name rather than left out.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from dispatcher.experiment.builtin_names import canonical_builtin
from tuners.builtin import NNI_NAMES
from tuners.builtin import fold as fold_builtin


@dataclass(frozen=True, slots=True)
class Argument:
    """One class argument. ``native`` is its name here, empty without a counterpart; ``value``
    turns its value into ours, or raises ``ValueError`` with the reason."""

    native: str = ""
    default: Any = None
    value: Callable[[Any], Any] = lambda given: given
    note: str = ""


@dataclass(frozen=True, slots=True)
class Algorithm:
    """One built-in algorithm of NNI's.

    Attributes:
        nni: its name in v3.
        native: ours that stands for it; empty: refused.
        mode: what NNI takes for ``optimize_mode`` where the file says nothing; empty: none.
        note: how far ours differs, or what to use instead.
        fixed: arguments that ours needs in order to behave as NNI's.
        stand_in: ours is another algorithm; a remark says so when the experiment starts.
    """

    nni: str
    native: str
    mode: str = "maximize"
    arguments: Mapping[str, Argument] = field(default_factory=dict)
    note: str = ""
    fixed: Mapping[str, Any] = field(default_factory=dict)
    stand_in: bool = False


class CannotHonour(ValueError):
    """Raised for a value that has no counterpart; ``str()`` says why, ``hint`` what to do."""

    def __init__(self, text: str, hint: str = "") -> None:
        super().__init__(text)
        self.hint = hint


def _same(*names: str) -> dict[str, Argument]:
    return {name: Argument(name) for name in names}


def _only(**defaults: Any) -> dict[str, Argument]:
    return {name: Argument(default=default) for name, default in defaults.items()}


_MODE = {"optimize_mode": Argument("optimize_mode")}
_LIE = Argument(
    "constant_liar", "best", lambda kind: kind is not None, "Optuna has one kind of lie"
)
_TPE_ARGS: dict[str, Argument] = {
    "constant_liar_type": _LIE,
    "n_startup_jobs": Argument("n_startup_trials"),
    "n_ei_candidates": Argument("n_ei_candidates"),
    "prior_weight": Argument("prior_weight"),
    "linear_forgetting": Argument("linear_forgetting"),
    "gamma": Argument("gamma"),
}
_HYPEROPT = {
    **_MODE,
    "seed": Argument("seed"),
    "parallel_optimize": Argument("constant_liar"),
    "constant_liar_type": Argument(default="min", note="Optuna has one kind of lie"),
}
_GP = {
    **_MODE,
    "cold_start_num": Argument("n_startup_trials"),
    **_only(utility="ei", kappa=5, xi=0, nu=2.5, alpha=1e-6),
    **_only(selection_num_warm_up=100000, selection_num_starting_points=250),
}

TUNERS: dict[str, Algorithm] = {
    fold_builtin(each.nni): each
    for each in (
        Algorithm(
            "TPE",
            "NniTPE",
            "minimize",
            {**_HYPEROPT, "tpe_args": Argument("", None)},
            "Optuna's TPE, with NNI's numbers of good and of fading trials",
        ),
        Algorithm("TPE_legacy", "TPE", "minimize", _HYPEROPT, "Optuna's TPE"),
        Algorithm(
            "Anneal",
            "TPE",
            "minimize",
            _HYPEROPT,
            "Optuna's TPE stands in: like annealing it samples near what was good so far",
            stand_in=True,
        ),
        Algorithm("Random", "Random", "", {**_MODE, **_same("seed")}),
        Algorithm(
            "Evolution",
            "RegularizedEvolution",
            "maximize",
            {**_MODE, **_same("population_size")},
            "aging evolution stands in for naive evolution, in tournaments of two, without weights",
            {"population_size": 32, "sample_size": 2, "inherit": False},
            stand_in=True,
        ),
        Algorithm(
            "RegularizedEvolution",
            "RegularizedEvolution",
            "maximize",
            {**_MODE, **_same("population_size", "sample_size")},
            "without inherited weights, unless the file is converted and says so",
            {"inherit": False},
        ),
        Algorithm(
            "GridSearch",
            "GridSearch",
            "",
            {"optimize_mode": Argument("optimize_mode")},
            "continuous axes coarse before fine, as in v3",
        ),
        Algorithm("Batch", "Batch", "", {**_MODE}, "one choice whose options are the parameters"),
        Algorithm(
            "SMAC",
            "TPE",
            "maximize",
            {**_MODE, **_only(config_dedup=False)},
            "Optuna's TPE stands in for SMAC's random forests",
            stand_in=True,
        ),
        Algorithm(
            "Metis",
            "GP",
            "maximize",
            {
                **_MODE,
                "cold_start_num": Argument("n_startup_trials"),
                **_only(no_resampling=True, no_candidates=False, exploration_probability=0.9),
                **_only(selection_num_starting_points=600),
            },
            "Optuna's Gaussian process stands in",
            stand_in=True,
        ),
        Algorithm("GP", "GP", "maximize", _GP, "Optuna's Gaussian process; it needs torch"),
        Algorithm(
            "DNGO",
            "GP",
            "maximize",
            {**_MODE, **_only(sample_size=1000, trials_per_update=20, num_epochs_per_training=500)},
            "Optuna's Gaussian process stands in for the network",
            stand_in=True,
        ),
        Algorithm(
            "PBT",
            "NniPBT",
            "maximize",
            {
                **_MODE,
                **_same("all_checkpoint_dir", "population_size", "factor"),
                **_same("resample_probability", "fraction"),
            },
            "members need not wait for one another; the keys of the checkpoints are NNI's",
        ),
        Algorithm(
            "Hyperband",
            "NniHyperband",
            "maximize",
            {
                **_MODE,
                "R": Argument("max_budget"),
                "eta": Argument("eta"),
                "exec_mode": Argument(default="parallelism"),
            },
            "trials train from scratch up to TRIAL_BUDGET",
            {"max_budget": 60},
        ),
        Algorithm(
            "BOHB",
            "NniBOHB",
            "maximize",
            {
                **_MODE,
                **_same("min_budget", "max_budget", "eta", "min_points_in_model"),
                **_same("top_n_percent", "num_samples", "random_fraction", "bandwidth_factor"),
                **_same("min_bandwidth"),
                **_only(config_space=None),
            },
            "trials train from scratch up to TRIAL_BUDGET; the model looks back on 300 results of "
            "each budget",
        ),
        Algorithm("PPO", "", note="use 'RegularizedEvolution', or bring a controller of your own"),
        Algorithm(
            "NetworkMorphism",
            "",
            note="its trials get a graph of AutoKeras; use 'MorphingEvolution', whose trials get "
            "layers and inherit weights",
        ),
    )
}

ASSESSORS: dict[str, Algorithm] = {
    fold_builtin(each.nni): each
    for each in (
        Algorithm("Medianstop", "Medianstop", "maximize", {**_MODE, **_same("start_step")}),
        Algorithm(
            "Curvefitting",
            "Curvefitting",
            "",
            {**_MODE, **_same("epoch_num", "start_step", "threshold", "gap")},
        ),
    )
}


def find(kind: str, name: str) -> Algorithm | None:
    """Return NNI's algorithm of that name in any release's spelling; None if it has none.

    >>> find("tuner", "BatchTuner").native
    'Batch'
    """
    table = TUNERS if kind == "tuner" else ASSESSORS
    return table.get(fold_builtin(name).removesuffix("advisor"))


def only_nni_has(kind: str, name: object, class_args: object) -> bool:
    """Whether a section can only be one of NNI's: by its name, or by its arguments.

    Args:
        kind: ``tuner`` or ``assessor``.
        name: the algorithm, as the file writes it.
        class_args: its arguments, as the file has them; anything but a mapping counts as none.
    """
    if not isinstance(name, str):
        return False
    algorithm = find(kind, name)
    if algorithm is None:
        return False
    if canonical_builtin(name, key=kind) in (None, *NNI_NAMES):
        return True
    arguments = class_args if isinstance(class_args, Mapping) else {}
    return any(
        arg in arguments and algorithm.arguments[arg].native != arg for arg in algorithm.arguments
    )


def _is_idle(name: str, value: Any, given: Mapping[str, Any]) -> bool:
    """Whether NNI itself makes no use of an argument beside the others."""
    lies = name == "constant_liar_type" and value in ("max", "mean")
    return lies and not given.get("parallel_optimize")


def native_arguments(
    algorithm: Algorithm, given: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, str]]:
    """Return our class arguments, and for each of them the argument of NNI's it comes from.

    Raises:
        CannotHonour: an argument is unknown, or has a value without a counterpart.
    """
    ours = dict(algorithm.fixed)
    origin: dict[str, str] = {}
    flat: dict[str, tuple[Argument | None, Any]] = {}
    for name, value in given.items():
        if name == "tpe_args" and algorithm.nni == "TPE":
            inner = value if isinstance(value, Mapping) else {}
            flat |= {key: (_TPE_ARGS.get(key), each) for key, each in inner.items()}
        else:
            flat[name] = (algorithm.arguments.get(name), value)
    for name, (argument, value) in flat.items():
        if argument is None:
            known = ", ".join(algorithm.arguments) or "none"
            raise CannotHonour(
                f"NNI's {algorithm.nni} takes no argument {name!r}", f"it takes {known}"
            )
        if argument.native:
            ours[argument.native] = argument.value(value)
            origin[argument.native] = name
        elif value != argument.default and not _is_idle(name, value, given):
            why = f": {argument.note}" if argument.note else ""
            raise CannotHonour(
                f"the argument {name!r} can only have NNI's default, {argument.default!r}, as "
                f"{algorithm.native} has nothing like it{why}",
                f"remove {name!r}, or bring your own tuner",
            )
    return ours, origin
