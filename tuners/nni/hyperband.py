"""Hyperband whose trials get ``TRIAL_BUDGET``, and train from scratch."""

from __future__ import annotations

from typing import Any

from tuners.hyperband import HyperbandTuner
from tuners.nni.budgets import in_nnis_word, without_budget


class NniHyperbandTuner(HyperbandTuner):
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

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Does what the base does, with the budget under NNI's name."""
        return in_nnis_word(super().generate_parameters(parameter_id, **kwargs))

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; the budget is no part of the configuration."""
        super().receive_trial_result(parameter_id, without_budget(parameters), value, **kwargs)
