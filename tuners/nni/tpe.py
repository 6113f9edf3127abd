"""TPE with the numbers that NNI's has: how many trials are good ones, and when old ones fade."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from tuners import values
from tuners.optuna import OptunaTuner


class NniTPETuner(OptunaTuner):
    """Optuna's TPE in NNI's words; its defaults are NNI's.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        seed: of the sampler; null draws one.
        constant_liar: trials that still run count as bad ones.
        n_startup_trials: so many are drawn at random first.
        n_ei_candidates: how many points are looked at for each trial.
        prior_weight: how much the search space itself weighs beside what was seen.
        linear_forgetting: the latest so many trials count in full, older ones the less the older
            they are; and there are at most so many good ones.
        gamma: of n trials ``gamma * sqrt(n)`` are good ones, rounded up.
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        seed: int | None = 0,
        constant_liar: bool = True,
        n_startup_trials: int = 20,
        n_ei_candidates: int = 24,
        prior_weight: float = 1.0,
        linear_forgetting: int = 25,
        gamma: float = 0.25,
    ) -> None:
        recent = values.whole("linear_forgetting", linear_forgetting, 1)
        share = values.share("gamma", gamma, 1e6)
        arguments: dict[str, Any] = {
            "constant_liar": values.flag("constant_liar", constant_liar),
            "n_startup_trials": n_startup_trials,
            "n_ei_candidates": n_ei_candidates,
            "prior_weight": prior_weight,
            "gamma": good_ones(share, recent),
            "weights": fading(recent),
        }
        super().__init__("TPESampler", arguments, optimize_mode, seed=seed)


def good_ones(gamma: float, most: int) -> Callable[[int], int]:
    """The number of good ones among n trials, as a function of n.

    >>> [good_ones(0.25, 25)(n) for n in (0, 1, 20, 100, 20000)]
    [0, 1, 2, 3, 25]
    """
    return lambda trials: min(math.ceil(gamma * math.sqrt(trials)), most)


def fading(recent: int) -> Callable[[int], Any]:
    """The weights of n trials, the oldest first, as a function of n.

    >>> fading(2)(4).tolist()
    [0.25, 1.0, 1.0, 1.0]
    """
    import numpy as np

    def weights(trials: int) -> Any:
        old = max(trials - recent, 0)
        ramp = np.linspace(1 / trials, 1.0, num=old) if old else np.zeros(0)
        return np.concatenate([ramp, np.ones(trials - old)])

    return weights
