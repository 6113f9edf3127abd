"""Budgets under NNI's name: its trials get ``TRIAL_BUDGET``, and train from scratch."""

from __future__ import annotations

from typing import Any

from tuners.bohb import BOHBTuner
from tuners.hyperband import HyperbandTuner
from tuners.inheriting import without

BUDGET = "TRIAL_BUDGET"


class _InNnisWord(HyperbandTuner):
    """One of our Hyperbands whose trials know the budget by NNI's name."""

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Does what the base does, with the budget under NNI's name."""
        parameters = super().generate_parameters(parameter_id, **kwargs)
        budget = parameters["budget"]
        return {**without(parameters, ("budget", "budget_before")), BUDGET: budget}

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; the budget is no part of the configuration."""
        own = without(parameters, (BUDGET,))
        super().receive_trial_result(parameter_id, own, value, **kwargs)


class NniBOHBTuner(_InNnisWord, BOHBTuner):
    """:class:`~tuners.bohb.BOHBTuner` without weights, in NNI's words.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        min_budget: the smallest budget, a whole number.
        max_budget: the largest (NNI's default is 3).
        eta: 1 of eta configurations is promoted.
        min_points_in_model: how many good and how many other results a model needs at least.
        top_n_percent: how many of 100 results are good ones.
        num_samples: how many points are looked at for each configuration.
        random_fraction: how likely a configuration is drawn at random.
        bandwidth_factor: how much wider kernels are that points are drawn from.
        min_bandwidth: the least width of a kernel.
        seed: the same seed gives the same search under the same order of results; null draws one.
    """

    budget_key = BUDGET
    sides_apart = True

    def __init__(
        self,
        optimize_mode: str = "maximize",
        min_budget: int = 1,
        max_budget: int = 3,
        eta: int = 3,
        min_points_in_model: int | None = None,
        top_n_percent: int = 15,
        num_samples: int = 64,
        random_fraction: float = 1 / 3,
        bandwidth_factor: float = 3.0,
        min_bandwidth: float = 1e-3,
        seed: int | None = 0,
    ) -> None:
        super().__init__(
            optimize_mode,
            min_budget,
            max_budget,
            eta,
            min_points_in_model,
            top_n_percent,
            num_samples,
            random_fraction,
            bandwidth_factor,
            min_bandwidth,
            inherit=False,
            seed=seed,
        )


class NniHyperbandTuner(_InNnisWord):
    """:class:`~tuners.hyperband.HyperbandTuner` without weights, in NNI's words.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        max_budget: R of the paper (NNI's default is 60).
        eta: 1 of eta configurations is promoted.
        seed: one seed gives one search, whatever the timing; null draws one.
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        max_budget: int = 60,
        eta: int = 3,
        seed: int | None = 0,
    ) -> None:
        super().__init__(optimize_mode, max_budget, eta, inherit=False, seed=seed)
