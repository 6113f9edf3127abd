"""The two searches of this example: evolution that inherits, and the random search it must beat."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import architecture
import numpy as np

from tuners import NoMoreTrialError, RegularizedEvolutionTuner, Tuner


class Purse:
    """Counts the core-seconds that trials report, and says when the budget is spent."""

    def __init__(self, budget_s: float | None) -> None:
        self.budget_s = budget_s
        self.spent_s = 0.0

    def open(self) -> None:
        """Raises NoMoreTrialError once the budget is spent."""
        if self.budget_s is not None and self.spent_s >= self.budget_s:
            raise NoMoreTrialError(f"the budget of {self.budget_s:g} core-seconds is spent")

    def pay(self, value: Mapping[str, float]) -> None:
        self.spent_s += value["core_s"]


class DigitsEvolution(RegularizedEvolutionTuner):
    """Aging evolution over architectures; founders are shallow, children grow.

    Args:
        founder_epochs: epochs of a trial without a parent.
        child_epochs: epochs of a trial that starts from its parent's weights.
        founder_blocks: most blocks of a founder.
        budget_s: core-seconds after which no trial is proposed; null: no such bound.
        **evolution: arguments of RegularizedEvolutionTuner.
    """

    def __init__(
        self,
        founder_epochs: int = 12,
        child_epochs: int = 30,
        founder_blocks: int = 3,
        budget_s: float | None = None,
        **evolution: Any,
    ) -> None:
        super().__init__(**evolution)
        self.founder_epochs = founder_epochs
        self.child_epochs = child_epochs
        self.founder_blocks = founder_blocks
        self.purse = Purse(budget_s)

    def founder(self, rng: np.random.Generator) -> dict[str, Any]:
        return architecture.draw(rng, self.founder_blocks)

    def mutate(self, parameters: Mapping[str, Any], rng: np.random.Generator) -> dict[str, Any]:
        return architecture.mutate(dict(parameters), rng)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        self.purse.open()
        parameters = super().generate_parameters(parameter_id, **kwargs)
        inherits = "restore_path" in parameters
        return {**parameters, "epochs": self.child_epochs if inherits else self.founder_epochs}

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        self.purse.pay(value)
        super().receive_trial_result(parameter_id, parameters, value, **kwargs)


class DigitsRandom(Tuner):
    """Random search over the same architectures, each trained for the same number of epochs."""

    def __init__(self, epochs: int = 240, seed: int = 0, budget_s: float | None = None) -> None:
        self.epochs = epochs
        self.seed = seed
        self.purse = Purse(budget_s)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        self.purse.open()
        return {**architecture.draw(self.rng(parameter_id)), "epochs": self.epochs}

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        self.purse.pay(value)
