"""A budget that is spent to its end: the last trial that does not fit whole is a shorter one."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tuner_digits.searching import Outcome, Task


@dataclass
class Filling:
    """Trials of so many steps, of one worker, of which the last has as many as are left.

    Without it, random search with long trials would leave up to a trial of its budget unspent. All
    searches whose trials are of one length have it, tuners and baseline alike.
    """

    trials: Callable[[int], Task]  #: by their number of steps
    steps: int
    budget: float
    spent: float = 0.0

    def cost(self, parameters: Mapping[str, Any]) -> float:
        return self._fitting(parameters).cost(parameters)

    def run(
        self, parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
    ) -> Outcome:
        fitting = self._fitting(parameters)
        self.spent += fitting.cost(parameters)
        return fitting.run(parameters, inherited, dice)

    def _fitting(self, parameters: Mapping[str, Any]) -> Task:
        whole, left = self.trials(self.steps), self.budget - self.spent
        if whole.cost(parameters) <= left:
            return whole
        judged = self.trials(0).cost(parameters)
        step = self.trials(1).cost(parameters) - judged
        steps = int((left - judged) / step - 1e-6)  # the sum must not exceed what it is compared to
        return self.trials(steps) if steps > 0 else whole
