"""ASHA: successive halving without waiting, in which the promoted go on from their own weights.

Li, Jamieson, Rostamizadeh, Gonina, Ben-tzur, Hardt, Recht, Talwalkar: A System for Massively
Parallel Hyperparameter Tuning, MLSys 2020, Algorithm 2.
"""

from __future__ import annotations

import bisect
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, TypeAlias

from tuners import space as spaces
from tuners import values
from tuners.errors import TunerArgumentError
from tuners.inheriting import InheritingTuner, without

Key: TypeAlias = tuple[float, int]
"""``(-score, trial)``: sorts the best first, the earliest if even."""


#: How many configurations of a rung wait at most.
KEPT = 1000


class Rung:
    """The results of one budget.

    Algorithm 2 asks for one of the top ``size / eta`` that was not promoted. The best of those that
    wait has nothing above it but promoted ones, so that its rank is a count among these: a rung of
    any size answers without sorting.

    Only the best of those that wait are kept: the others are counted. One of them could be promoted
    after ``eta`` times as many more results that are all worse than it.
    """

    def __init__(self) -> None:
        self.waiting: list[Key] = []  # sorted
        self.promoted: list[Key] = []  # sorted
        self.forgotten = 0
        self.configurations: dict[int, dict[str, Any]] = {}  # of those that wait

    def add(self, trial: int, score: float, configuration: dict[str, Any]) -> int | None:
        """Takes a result in.

        Args:
            trial: its ``parameter_id``.
            score: larger is better.
            configuration: its parameters without those that the tuner adds.

        Returns:
            The trial that is no longer kept for it; None: all are.
        """
        bisect.insort(self.waiting, (-score, trial))
        self.configurations[trial] = configuration
        if len(self.waiting) <= KEPT:
            return None
        _, worst = self.waiting.pop()
        del self.configurations[worst]
        self.forgotten += 1
        return worst

    def promotable(self, eta: int) -> Key | None:
        """The best one in the top ``1 / eta`` that was not promoted."""
        if not self.waiting:
            return None
        rank = bisect.bisect(self.promoted, self.waiting[0])
        size = len(self.waiting) + len(self.promoted) + self.forgotten
        return self.waiting[0] if rank < size // eta else None

    def promote(self, key: Key) -> dict[str, Any]:
        """Moves one over, and returns its configuration."""
        self.waiting.remove(key)
        bisect.insort(self.promoted, key)
        return self.configurations.pop(key[1])

    def take_back(self, key: Key, configuration: dict[str, Any]) -> None:
        """Undoes a promotion that came to nothing."""
        self.promoted.remove(key)
        self.add(key[1], -key[0], configuration)

    def drop(self, key: Key) -> None:
        """Forgets one that was promoted: its weights are missing."""
        self.promoted.remove(key)


@dataclass(frozen=True, slots=True)
class Promotion:
    """A promotion that a request is about to answer with."""

    rung: int
    key: Key
    configuration: dict[str, Any]


class ASHATuner(InheritingTuner):
    """Asynchronous successive halving. Thread-safe; never waits but for an end under way.

    A trial trains a configuration from ``budget_before`` up to ``budget`` units of whatever the
    author counts (epochs, steps, pictures). A request promotes the best configuration that is in
    the top ``1 / eta`` of its rung, looking at the highest rung first; its trial starts from its
    own earlier weights (``promoted_from`` says from which trial). Where there is none, a new
    configuration is drawn; after a change of the search space the promoted keep what they have.
    Trials without a result, or with NaN or infinity, do not count; one that has a result and no
    weights is dropped when its turn to be promoted comes.
    Of each rung the best 1,000 that wait are kept, and the scores of those that were promoted.

    Args:
        optimize_mode: ``maximize`` or ``minimize``.
        min_budget: of the first rung; r of the paper, times ``eta ** s``.
        max_budget: no rung beyond; R of the paper.
        eta: 1 of eta configurations is promoted; 4 in the paper.
        seed: the same seed gives the same answers under the same order of results; null draws one.
    """

    _own_keys: ClassVar[tuple[str, ...]] = (
        "save_path",
        "restore_path",
        "budget",
        "budget_before",
        "promoted_from",
    )
    _not_ended = "the end of trial {trial} is under way"

    def __init__(
        self,
        optimize_mode: str = "maximize",
        min_budget: int = 1,
        max_budget: int = 64,
        eta: int = 4,
        seed: int | None = 0,
    ) -> None:
        self.optimize_mode = values.optimize_mode(optimize_mode)
        self.eta = values.whole("eta", eta, 2)
        self.budgets = [values.whole("min_budget", min_budget, 1)]
        if values.whole("max_budget", max_budget, 1) < min_budget:
            raise TunerArgumentError(
                f"max_budget ({max_budget}) is below min_budget ({min_budget})."
            )
        while self.budgets[-1] * eta <= max_budget:
            self.budgets.append(self.budgets[-1] * eta)
        self.seed = values.seed(seed)
        self._rungs = [Rung() for _ in self.budgets]
        self._answering: dict[int, Promotion] = {}  # by request
        self._ended: dict[int, bool] = {}  # of those that wait: for requests that may not wait

    def generate_parameters(self, parameter_id: int, **kwargs: Any) -> dict[str, Any]:
        """Promotes a configuration, or draws one.

        Raises:
            NoMoreTrialError: the end of the promoted trial is under way, and waiting is not
                allowed (``multiThread: false``): ask again after the next result.
        """
        while True:
            with self.lock:
                promotion = self._promote(parameter_id)
                if promotion is None:
                    return self._drawn(parameter_id)
            try:
                well = self._has_ended_well(promotion.key[1])  # outside the lock
            except BaseException:
                with self.lock:
                    self._rungs[promotion.rung].take_back(promotion.key, promotion.configuration)
                    del self._answering[parameter_id]
                raise
            with self.lock:
                del self._answering[parameter_id]
                self._ended.pop(promotion.key[1], None)
                if well:
                    return self._promoted(parameter_id, promotion)
                self._rungs[promotion.rung].drop(promotion.key)

    def receive_trial_result(
        self, parameter_id: int, parameters: Any, value: Any, **kwargs: Any
    ) -> None:
        """See :meth:`.Tuner.receive_trial_result`; puts the result on the rung of its budget."""
        score = values.score(value, self.optimize_mode)
        known = parameters if isinstance(parameters, Mapping) else {}
        if kwargs.get("customized") or known.get("budget") not in self.budgets:
            return
        rung = self.budgets.index(known["budget"])
        if score is not None:
            own = without(known, self._own_keys)
            with self.lock:
                forgotten = self._rungs[rung].add(parameter_id, score, own)
                if forgotten is not None:
                    self._ended.pop(forgotten, None)

    def trial_end(self, parameter_id: int, success: bool, **kwargs: Any) -> None:
        """Notes the end of one that may be promoted."""
        with self.lock:
            if any(parameter_id in rung.configurations for rung in self._rungs):
                self._ended[parameter_id] = success

    def state(self) -> dict[str, Any]:
        """All rungs; promotions that were not answered yet are left out."""
        with self.lock:
            rungs = []
            for number, rung in enumerate(self._rungs):
                open_ = {
                    one.key[1]: one.configuration
                    for one in self._answering.values()
                    if one.rung == number
                }
                configurations = {**rung.configurations, **open_}
                keys = {key[1]: -key[0] for key in (*rung.waiting, *rung.promoted)}
                rungs.append(
                    {
                        "waiting": [[n, keys[n], own] for n, own in configurations.items()],
                        "promoted": [[n, -minus] for minus, n in rung.promoted if n not in open_],
                        "forgotten": rung.forgotten,
                    }
                )
            ended = [[number, well] for number, well in self._ended.items()]
            return {"seed": self.seed, "rungs": rungs, "ended": ended}

    def restore(self, state: Any) -> None:
        """Takes over what ``state`` returned."""
        with self.lock:
            self.seed = state["seed"]
            self._answering = {}
            self._ended = {int(number): bool(well) for number, well in state["ended"]}
            self._rungs = [Rung() for _ in self.budgets]
            for rung, kept in zip(self._rungs, state["rungs"], strict=True):
                rung.forgotten = kept.get("forgotten", 0)
                for number, score, own in kept["waiting"]:
                    rung.add(number, score, own)
                rung.promoted = sorted((-score, number) for number, score in kept["promoted"])

    def restore_proposal(self, parameter_id: int, parameters: Any) -> None:
        """Takes note of a promotion."""
        with self.lock:
            self._settle(parameters)

    # ---- decisions, all with the lock held ---------------------------------------------------

    def _promote(self, parameter_id: int) -> Promotion | None:
        for number in reversed(range(len(self._rungs) - 1)):
            key = self._rungs[number].promotable(self.eta)
            if key is not None:
                promotion = Promotion(number, key, self._rungs[number].promote(key))
                self._answering[parameter_id] = promotion
                return promotion
        return None

    def _drawn(self, parameter_id: int) -> dict[str, Any]:
        return {
            **spaces.sample(self._space, self.rng(parameter_id)),
            "budget": self.budgets[0],
            "budget_before": 0,
            "save_path": self.save_path(parameter_id),
        }

    def _promoted(self, parameter_id: int, promotion: Promotion) -> dict[str, Any]:
        parent = promotion.key[1]
        return {
            **promotion.configuration,
            "budget": self.budgets[promotion.rung + 1],
            "budget_before": self.budgets[promotion.rung],
            "promoted_from": parent,
            "save_path": self.save_path(parameter_id),
            "restore_path": self.save_path(parent),
        }

    def _settle(self, parameters: Mapping[str, Any]) -> None:
        trial = parameters.get("promoted_from")
        for rung in self._rungs:
            if trial in rung.configurations:
                rung.promote(next(key for key in rung.waiting if key[1] == trial))
                self._ended.pop(trial, None)

    def _reported_end(self, parameter_id: int) -> bool | None:
        return self._ended.get(parameter_id)
