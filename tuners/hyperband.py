"""Hyperband and successive halving in which the promoted go on from their own weights.

Li, Jamieson, DeSalvo, Rostamizadeh, Talwalkar: Hyperband, Journal of Machine Learning Research
18(185), 2018, Algorithm 1, whose inner loop is successive halving (Jamieson and Talwalkar 2016).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from tuners import space as spaces
from tuners import values
from tuners.errors import NoMoreTrialError, ParentFailed, TunerArgumentError
from tuners.inheriting import InheritingTuner, without

#: How far back a number may still come that was passed over, see ``HyperbandTuner._see``.
PATIENCE = 500


@dataclass(frozen=True, slots=True)
class HyperbandRung:
    """So many configurations, each trained up to a budget. ``first``: number of its first trial."""

    first: int
    count: int
    budget: int


def bracket(
    max_budget: int, eta: int, s: int, first: int = 0, least: int = 1
) -> list[HyperbandRung]:
    """The rungs of bracket ``s``, Li et al. (2018), Algorithm 1, lines 3 to 9.

    Budgets are rounded to whole numbers.

    Args:
        max_budget: R of the paper.
        eta: 1 of eta configurations is promoted.
        s: number of the bracket: how often it halves.
        first: number of its first trial.
        least: the smallest budget there is; 1 in the paper.

    >>> [(rung.count, rung.budget) for rung in bracket(81, 3, 3)]
    [(34, 3), (11, 9), (3, 27), (1, 81)]
    """
    most = halvings(max_budget, eta, least)
    count = -(-(most + 1) * eta**s // (s + 1))  # rounded up; (most + 1) is B / R
    rungs = []
    for i in range(s + 1):
        rungs.append(HyperbandRung(first, count // eta**i, round(max_budget / eta ** (s - i))))
        first += rungs[-1].count
    return rungs


def halvings(max_budget: int, eta: int, least: int = 1) -> int:
    """``s_max``: how often the largest budget can be divided by eta and is ``least`` or more.

    Args:
        max_budget: R of the paper.
        eta: 1 of eta configurations is promoted.
        least: the smallest budget there is; 1 in the paper.
    """
    times = 0
    while least * eta ** (times + 1) <= max_budget:
        times += 1
    return times


class HyperbandTuner(InheritingTuner):
    """Hyperband, or one bracket of it: successive halving. Thread-safe; memory is bounded.

    A trial trains a configuration from ``budget_before`` up to ``budget`` units of whatever the
    author counts (epochs, steps, pictures). In the first rung of a bracket configurations are
    drawn; those of the next rung are the best of the one before, and their trials start from
    their own earlier weights. Which rung a trial belongs to follows from its number alone; a
    request waits until the rung before has ended, and holds no slot meanwhile: with ``lookahead``
    above the size of a rung the next bracket begins while stragglers finish. When all brackets
    were run it begins again, with fresh configurations. After a change of the search space the
    promoted keep what they have.

    Trials that failed, or reported NaN or infinity, or whose weights are missing, are not
    promoted. When too few are left for a rung, its last requests end without a trial.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        max_budget: R of the paper, a whole number: the budget of the last rung.
        eta: 1 of eta configurations is promoted; 3 or 4 in the paper.
        bracket: number of the one bracket to run again and again (successive halving), from 0
            (no halving) to the largest s with ``eta ** s <= max_budget``; null: all of them,
            largest first.
        inherit: false: the promoted train from scratch, as in the paper.
        seed: one seed gives one search, whatever the timing; null draws one.
    """

    _own_keys: ClassVar[tuple[str, ...]] = ("save_path", "restore_path", "budget", "budget_before")
    #: The smallest budget of all.
    min_budget: int = 1

    _not_ended = "trial {trial} of the rung before has not ended"

    def __init__(
        self,
        optimize_mode: str = "maximize",
        max_budget: int = 81,
        eta: int = 3,
        bracket: int | None = None,
        inherit: bool = True,
        seed: int | None = 0,
    ) -> None:
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.max_budget = values.whole("max_budget", max_budget, 1)
        self.eta = values.whole("eta", eta, 2)
        self.inherit = values.flag("inherit", inherit)
        self.seed = values.seed(seed)
        self._rungs = _table(self.max_budget, self.eta, bracket, self.min_budget)
        self._trials = sum(rung.count for rungs in self._rungs for rung in rungs)
        # Of rounds that may still promote, by number: configuration and score; how trials ended.
        self._results: dict[int, tuple[dict[str, Any], float]] = {}
        self._ended: dict[int, bool] = {}
        self._latest = -1  # the highest number that was asked for
        self._open: set[int] = set()  # asked for and not answered
        self._passed_over: set[int] = set()  # below the highest, and not asked for yet

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Draws a configuration, or promotes one. Blocks until the rung before has ended.

        Raises:
            NoMoreTrialError: it has not, and waiting is not allowed (``multiThread: false``): ask
                again after the next result.
            ParentFailed: fewer than were to be promoted have ended well.
        """
        with self.lock:
            self._see(parameter_id)
            self._open.add(parameter_id)
        try:
            parameters = self._answer(parameter_id)
        except NoMoreTrialError:
            raise  # it will be asked for again
        except BaseException:
            self._close(parameter_id)
            raise
        self._close(parameter_id)
        return parameters

    def _answer(self, parameter_id: int) -> dict[str, Any]:
        rung, before = self._place(parameter_id)
        paths = {"save_path": self.save_path(parameter_id)} if self.inherit else {}
        if before is None:
            with self.lock:
                drawn = self._draw(parameter_id)
            return {**drawn, "budget": rung.budget, "budget_before": 0, **paths}
        well = [
            one
            for one in range(before.first, before.first + before.count)
            if self._has_ended_well(one)
        ]
        with self.lock:
            ranked = sorted(
                (one for one in well if one in self._results),
                key=lambda one: (-self._results[one][1], one),
            )
            slot = parameter_id - rung.first
            if slot >= len(ranked):
                raise ParentFailed(
                    before.first + slot,
                    f"only {len(ranked)} of its rung can be promoted, {rung.count} were to be",
                )
            parent = ranked[slot]
            parameters = dict(self._results[parent][0])
        spent = before.budget if self.inherit else 0
        if self.inherit:
            paths["restore_path"] = self.save_path(parent)
        return {**parameters, "budget": rung.budget, "budget_before": spent, **paths}

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; the result counts on its rung."""
        score = values.score(value, self.optimize_mode)
        if score is None or kwargs.get("customized"):
            return
        with self.lock:
            self._results[parameter_id] = (without(parameters, self._own_keys), score)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Counts a trial as ended; rounds that have promoted all they could are forgotten."""
        self._close(parameter_id)  # answered it was, if not by this process
        with self.lock:
            self._see(parameter_id)
            self._ended[parameter_id] = success
            needed = min(self._open | self._passed_over, default=self._latest)
            oldest = needed - needed % self._trials
            for number in [one for one in self._ended if one < oldest]:
                del self._ended[number]
                self._results.pop(number, None)

    def state(self) -> dict[str, Any]:
        """Results of the rounds under way. What runs is known from the numbers alone."""
        with self.lock:
            results = [[one, own, score] for one, (own, score) in self._results.items()]
            ended = [[one, well] for one, well in self._ended.items()]
            return {
                "seed": self.seed,
                "results": results,
                "ended": ended,
                "open": sorted(self._open),
                "latest": self._latest,
            }

    def restore(self, state: Any) -> None:
        """Takes over what ``state`` returned."""
        with self.lock:
            self.seed = state["seed"]
            self._results = {int(one): (own, score) for one, own, score in state["results"]}
            self._ended = {int(one): bool(well) for one, well in state["ended"]}
            self._open = set(state["open"])
            known = [-1, *self._open, *self._ended]  # all there is in older states
            self._latest = state.get("latest", max(known))
            self._passed_over = set()

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Counts a number as asked for."""
        with self.lock:
            self._see(parameter_id)

    def _draw(self, parameter_id: int) -> dict[str, Any]:
        """A fresh configuration. Called with the lock held."""
        return spaces.sample(self._space, self.rng(parameter_id))

    def _see(self, parameter_id: int) -> None:
        """Counts a number as asked for. Called with the lock held.

        They are asked for in order; but the calls of an earlier process are repeated in the order
        of their answers. One that had waited for a straggler comes after ends of rounds that began
        later, and looks back on its own round all the same. A number that never had an answer is
        not repeated, so that there is a bound.
        """
        self._passed_over.update(range(self._latest + 1, parameter_id))
        self._latest = max(self._latest, parameter_id)
        self._passed_over.discard(parameter_id)
        if self._passed_over:
            oldest = self._latest - max(PATIENCE, self._trials)
            self._passed_over = {one for one in self._passed_over if one > oldest}

    def _close(self, parameter_id: int) -> None:
        with self.lock:
            self._open.discard(parameter_id)

    def _place(self, parameter_id: int) -> tuple[HyperbandRung, HyperbandRung | None]:
        """The rung of a trial, and the one before it, with first numbers as they are in fact."""
        start = parameter_id - parameter_id % self._trials
        for rungs in self._rungs:
            before = None
            for rung in rungs:
                here = HyperbandRung(rung.first + start, rung.count, rung.budget)
                if parameter_id < here.first + here.count:
                    return here, before
                before = here
        raise AssertionError("the rungs of a round hold all of its trials")

    def _reported_end(self, parameter_id: int) -> bool | None:
        return self._ended.get(parameter_id)


def _table(max_budget: int, eta: int, only: int | None, least: int) -> list[list[HyperbandRung]]:
    most = halvings(max_budget, eta, least)
    if only is not None and (values.whole("bracket", only, 0) > most):
        raise TunerArgumentError(
            f"bracket is from 0 to {most} for a max_budget of {max_budget} and an eta of {eta}, "
            f"not {only}."
        )
    found: list[list[HyperbandRung]] = []
    first = 0
    for s in [only] if only is not None else range(most, -1, -1):
        found.append(bracket(max_budget, eta, s, first, least))
        first = found[-1][-1].first + found[-1][-1].count
    return found
