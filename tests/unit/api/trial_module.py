"""A trial and a tuner in a module, as tests give them to an experiment."""

from __future__ import annotations

from typing import Any

from tuners import Tuner


def train(parameters: dict[str, Any]) -> float:
    """Report what was given."""
    return float(parameters["x"])


class Mine(Tuner):
    """Proposes one and the same."""

    def __init__(self, n: int = 1) -> None:
        super().__init__()
        self.n = n

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """The number it was made with."""
        return {"x": self.n}

    def receive_trial_result(self, *args: Any, **kwargs: Any) -> None:
        """Nothing is learnt."""
