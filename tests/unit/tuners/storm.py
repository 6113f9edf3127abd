"""A search in which trials end in any order and some fail, with or without a restart of the tuner.

A run is repeated exactly by its seed, also with a restart in the middle.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

from tuners import Tuner
from tuners.testing import Search


class Storm(Search):
    """Runs one tuner.

    Args:
        make: builds the tuner, with its search space.
        count: how many requests.
        abreast: requests that are open or running at once.
        failing: share of trials that fail.
        restart_at: after so many ends the tuner is replaced by a restored one; None: never.
        stale: how many ends before that its state was taken; what was proposed and what ended since
            is told again, as the tuner host does.
    """

    def __init__(
        self,
        make: Callable[[], Tuner],
        *,
        count: int = 200,
        abreast: int = 24,
        failing: float = 0.1,
        restart_at: int | None = None,
        stale: int = 0,
        seed: int = 0,
    ) -> None:
        super().__init__(make(), patience_s=120.0)
        self._make = make
        self._count = count
        self._abreast = abreast
        self._failing = failing
        self._restart_at = restart_at
        self._state_at = None if restart_at is None else restart_at - stale
        self._seed = seed
        self._ends = 0
        self._checked: set[int] = set()

    def blow(self) -> dict[int, Any]:
        """Returns all proposals by request. Raises what a request raised."""
        return self.run(self._value, trials=self._count, at_once=self._abreast, seed=self._seed)

    def ask(self, request: int) -> Any:
        parameters = super().ask(request)
        self._check()
        return parameters

    def end(self, trial: int, value: Any = None) -> None:
        if self._ends == self._state_at:
            self.keep_state()
        if self._ends == self._restart_at:
            self.restart(self._make())
        self._ends += 1
        super().end(trial, value)
        self._check()

    def _value(self, parameters: Any, trial: int) -> float | None:
        dice = random.Random(f"{self._seed} {trial}")
        return dice.random() if dice.random() >= self._failing else None

    def _check(self) -> None:
        """Whether each new proposal inherits from a trial that has ended well."""
        for request in self.proposed.keys() - self._checked:
            self._checked.add(request)
            path = self.proposed[request].get("restore_path")
            if path is not None:
                parent = int(path.removeprefix("trials/"))
                assert parent in self.gate.ended, f"{request} inherits from {parent}, which did not"
