"""Hyperband whose fresh configurations come from a model of those that did well.

Falkner, Klein, Hutter: BOHB, Robust and Efficient Hyperparameter Optimization at Scale, ICML 2018,
section 4.1 and algorithm 2.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from tuners import densities, values
from tuners import space as spaces
from tuners.errors import TunerArgumentError
from tuners.hyperband import HyperbandTuner
from tuners.space import coordinates

#: Results that the model looks back on, of each budget: the latest. It bounds memory and time.
_HISTORY = 300

#: Points of the model that may miss the constraints before one is drawn from the whole space.
_MOST_POINTS = 16

#: Parameters, score, and where they lie; None: nowhere in the space as it is now.
_Seen = tuple[dict[str, Any], float, list[float] | None]


class BOHBTuner(HyperbandTuner):
    """Hyperband with a model: brackets, rungs and promotion are those of Hyperband.

    A fresh configuration is drawn at random with a probability of ``random_fraction``, else from
    the model of the largest budget that has results enough: a density of the good ones and one of
    all others, and of ``num_samples`` points near good ones the one with the largest ratio. The
    model sees the latest 300 results of each budget; trials that failed, or reported NaN or
    infinity, are not among them. Which results there are when a configuration is drawn follows
    from the timing of trials; the same order of results gives the same search.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        min_budget: the smallest budget, a whole number.
        max_budget: the largest.
        eta: 1 of eta configurations is promoted.
        min_points_in_model: N_min of the paper: how many good and how many other results a model
            is made of at least; null: one more than there are parameters, which is the least it
            can be. Two more results than that make a model.
        top_n_percent: how many of 100 results are good ones; q of the paper.
        num_samples: how many points are looked at for each configuration; N_s of the paper.
        random_fraction: how likely a configuration is drawn at random; rho of the paper.
        bandwidth_factor: how much wider than the densities are the kernels that points are drawn
            from; b_w of the paper.
        min_bandwidth: the least width of a kernel.
        inherit: false: the promoted train from scratch, as in the paper.
        seed: the same seed gives the same search under the same order of results; null draws one.
    """

    def __init__(
        self,
        optimize_mode: str = "maximize",
        min_budget: int = 1,
        max_budget: int = 27,
        eta: int = 3,
        min_points_in_model: int | None = None,
        top_n_percent: int = 15,
        num_samples: int = 64,
        random_fraction: float = 1 / 3,
        bandwidth_factor: float = 3.0,
        min_bandwidth: float = 1e-3,
        inherit: bool = True,
        seed: int | None = 0,
    ) -> None:
        self.min_budget = values.whole("min_budget", min_budget, 1)
        if values.whole("max_budget", max_budget, 1) < min_budget:
            raise TunerArgumentError(
                f"max_budget is {min_budget} (min_budget) or more, not {max_budget}."
            )
        super().__init__(optimize_mode, max_budget, eta, inherit=inherit, seed=seed)
        self.min_points = (
            None
            if min_points_in_model is None
            else values.whole("min_points_in_model", min_points_in_model, 1)
        )
        self.top_n_percent = values.whole("top_n_percent", top_n_percent, 1)
        if top_n_percent > 99:
            raise TunerArgumentError(f"top_n_percent is from 1 to 99, not {top_n_percent}.")
        self.num_samples = values.whole("num_samples", num_samples, 1)
        self.random_fraction = values.share("random_fraction", random_fraction, zero=True)
        self.bandwidth_factor = values.share("bandwidth_factor", bandwidth_factor, 1e6)
        self.min_bandwidth = values.share("min_bandwidth", min_bandwidth, 1.0)
        self._axes: tuple[coordinates.Axis, ...] = ()
        self._seen: dict[int, list[_Seen]] = {}  # by budget

    def handles(self, search_space: Any) -> str:
        """Whether each parameter is an axis of the model."""
        space = spaces.parse(search_space)
        try:
            coordinates.axes_of(space)
        except spaces.SpaceError as error:
            return error.sentence
        return super().handles(space)

    def update_search_space(self, search_space: Any) -> None:
        """Does what the base does; results outside of the new space do not count any more."""
        super().update_search_space(search_space)
        with self.lock:
            self._axes = coordinates.axes_of(self._space)
            for budget, seen in self._seen.items():
                self._seen[budget] = [(own, score, self._located(own)) for own, score, _ in seen]

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; the model learns from it as well."""
        super().receive_trial_result(parameter_id, parameters, value, **kwargs)
        with self.lock:
            learned = self._results.get(parameter_id)
            if learned is not None:
                rung, _ = self._place(parameter_id)
                self._learn(rung.budget, *learned)

    def import_data(self, data: Sequence[dict[str, Any]]) -> str | None:
        """Shows the model results of another experiment that name their budget."""
        with self.lock:
            left_out = sum(not self._import(row["parameter"], row["value"]) for row in data)
        return (
            f"{left_out} of {len(data)} imported results have no {self.budget_key!r}, are no "
            "numbers, or lie outside of the search space: the model does not see them"
            if left_out
            else None
        )

    def state(self) -> dict[str, Any]:
        """The base's state, and the results that the model sees."""
        with self.lock:
            seen = [
                [budget, [[own, score] for own, score, _ in rows]]
                for budget, rows in self._seen.items()
            ]
        return {**super().state(), "seen": seen}

    def restore(self, state: Any) -> None:
        """Takes over what ``state`` returned."""
        super().restore(state)
        with self.lock:
            self._seen = {
                int(budget): [(own, float(score), self._located(own)) for own, score in rows]
                for budget, rows in state["seen"]
            }

    # ---- all with the lock held --------------------------------------------------------------

    #: The parameter that holds the budget.
    budget_key = "budget"

    #: Whether no result is both a good one and one of the others.
    sides_apart = False

    def _import(self, parameters: Any, value: Any) -> bool:
        score = values.score(value, self.optimize_mode)
        known = parameters if isinstance(parameters, Mapping) else {}
        budget = known.get(self.budget_key)
        own = {name: known[name] for name, _ in self._space.dimensions if name in known}
        usable = isinstance(budget, int | float) and score is not None
        if not usable or self._located(own) is None:
            return False
        assert budget is not None and score is not None  # noqa: PT018 - for the type checker
        self._learn(round(budget), own, score)
        return True

    def _learn(self, budget: int, own: dict[str, Any], score: float) -> None:
        rows = self._seen.setdefault(budget, [])
        rows.append((own, score, self._located(own)))
        del rows[:-_HISTORY]

    def _located(self, own: Mapping[str, Any]) -> list[float] | None:
        try:
            return coordinates.locate(self._space, self._axes, own)
        except ValueError:
            return None

    def _draw(self, parameter_id: int) -> dict[str, Any]:
        rng = self.rng(parameter_id)
        if rng.random() >= self.random_fraction:
            for budget in sorted(self._seen, reverse=True):
                point = self._from_model(budget, rng)
                if point is not None:
                    return self._fitting(budget, point, rng)
        return spaces.sample(self._space, rng)

    def _fitting(self, budget: int, point: list[float] | None, rng: Any) -> dict[str, Any]:
        """The parameters at a point, or at another one of the model that meets the constraints."""
        for _ in range(_MOST_POINTS):
            assert point is not None
            parameters = coordinates.parameters_at(self._space, self._axes, point)
            if self._space.admits(parameters):
                return parameters
            point = self._from_model(budget, rng)
        return spaces.sample(self._space, rng)

    def _from_model(self, budget: int, rng: Any) -> list[float] | None:
        """A point by the model of one budget; None: it has results too few."""
        import numpy as np

        rows = [(score, at) for _, score, at in self._seen[budget] if at is not None]
        least = max(self.min_points or 0, len(self._axes) + 1)
        sides = densities.split(len(rows), least, self.top_n_percent, apart=self.sides_apart)
        if sides is None or not self._axes:
            return None
        good, bad = sides
        rows.sort(key=lambda row: -row[0])  # equal ones stay in their order
        points = np.array([at for _, at in rows])
        options = [axis.options for axis in self._axes]
        dense = densities.fit(points[:good], options, self.min_bandwidth, rng)
        others = densities.fit(points[-bad:], options, self.min_bandwidth, rng)
        return densities.promising(dense, others, rng, self.num_samples, self.bandwidth_factor)
