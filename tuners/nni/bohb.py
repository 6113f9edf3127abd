"""BOHB whose trials get ``TRIAL_BUDGET``, and train from scratch."""

from __future__ import annotations

from typing import Any

from tuners.bohb import BOHBTuner
from tuners.nni.budgets import BUDGET, in_nnis_word, without_budget


class NniBOHBTuner(BOHBTuner):
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

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Does what the base does, with the budget under NNI's name."""
        return in_nnis_word(super().generate_parameters(parameter_id, **kwargs))

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; the budget is no part of the configuration."""
        super().receive_trial_result(parameter_id, without_budget(parameters), value, **kwargs)
