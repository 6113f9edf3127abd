"""Random search: every trial drawn independently.

Bergstra, Bengio: Random Search for Hyper-Parameter Optimization, Journal of Machine Learning
Research 13, 2012.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tuners import values
from tuners.base import Tuner
from tuners.space import Space, parse, sample
from tuners.space.model import Dimension
from tuners.space.sampling import is_legal


class RandomTuner(Tuner):
    """Draws each set of parameters from the search space, by its ``parameter_id`` alone.

    Args:
        seed: the same seed gives the same parameters for the same id; null draws a fresh one.
        optimize_mode: ignored (random search has no use for it), taken so that files can name it.
    """

    def __init__(self, seed: int | None = 0, optimize_mode: str = "maximize") -> None:
        self.seed = values.seed(seed)
        values.optimize_mode(optimize_mode)
        self._space = Space(())

    def update_search_space(self, search_space: Any) -> None:
        """Takes the space; raises SpaceError when it cannot be read."""
        self._space = parse(search_space)

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Draws parameters; never blocks."""
        return sample(self._space, self.rng(parameter_id))

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; learns nothing."""

    def begin_trial(self, parameter_id: int) -> None:
        """See :meth:`.Suggesting.begin_trial`; remembers nothing."""

    def suggest(self, parameter_id: int, name: str, dimension: Dimension) -> Any:
        """Draws one parameter, by the id and the name alone.

        Args:
            parameter_id: the trial.
            name: of the parameter.
            dimension: the values that it may have.
        """
        return sample(Space(((name, dimension),)), self.rng(parameter_id, name))[name]

    def fix(self, parameter_id: int, name: str, dimension: Dimension, value: Any) -> None:
        """See :meth:`.Suggesting.fix`; learns nothing.

        Args:
            parameter_id: the trial.
            name: of the parameter.
            dimension: its values.
            value: the one that it has.
        """
        if not is_legal(dimension, value):
            raise ValueError(f"{name} cannot be {value!r}")

    def go_on_behind(self, trials: int) -> bool:
        """See :meth:`.Suggesting.go_on_behind`; each trial has numbers of its own."""
        return True

    def show_trial(self, parameter_id: int, parameters: Mapping[str, Any], space: Space) -> bool:
        """See :meth:`.Suggesting.show_trial`; learns nothing.

        Args:
            parameter_id: the trial.
            parameters: all that it has.
            space: of these.
        """
        return True

    def state(self) -> dict[str, Any]:
        """The seed is all there is."""
        return {"seed": self.seed}

    def restore(self, state: Any) -> None:
        """Takes the seed back, which matters when it was drawn."""
        self.seed = state["seed"]
