"""Searches that train one network with all weights: ENAS and single path one-shot.

A part of the budget is spent on the search, in which nobody trains an architecture by itself. What
it picks is then trained from scratch, as both papers judge what they found: one architecture after
another, the best first, with what is left of the budget. Random search trains every architecture
that it draws, from the same space.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from benchmarks.tuner_digits.searching import Better, Found, Outcome, search
from benchmarks.tuner_nas import cost, paths, task
from tuners import Tuner

#: Trials of the search hand out no network.
NOTHING_YET = 0.0


@dataclass(frozen=True)
class Alone:
    """The task of random search: each architecture is trained by itself."""

    steps: int
    rate: float

    def cost(self, parameters: Mapping[str, Any]) -> float:
        size = paths.size(paths.architecture_of(parameters))
        return cost.trained(self.steps, size) + cost.judged(size)

    def run(
        self, parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
    ) -> Outcome:
        return alone(paths.architecture_of(parameters), self.steps, self.rate, dice)


def alone(
    architecture: paths.Architecture, steps: int, rate: float, dice: np.random.Generator
) -> Outcome:
    """One architecture, trained from scratch."""
    weights = paths.fresh(dice)
    network = fixed(weights, architecture)
    task.fit(weights, network, steps, rate, dice, paths.SHARES)
    return Outcome(None, *(right(network, part) for part in ("validation", "test")))


def right(network: task.Pass, part: str = "validation") -> float:
    """The share of a part's pictures that a network tells."""
    return task.share_right(network, part, paths.SHARES)


def fixed(weights: task.Weights, architecture: paths.Architecture) -> task.Pass:
    """One architecture with these weights."""
    return lambda _step, pictures: paths.scores(weights, architecture, pictures)


@dataclass
class Pick:
    """Architectures that a search has judged with shared weights; the last ones count (0: all)."""

    of_last: int = 0
    spent: float = 0.0
    judged: list[tuple[paths.Architecture, float]] = field(default_factory=list)

    @property
    def ranked(self) -> list[paths.Architecture]:
        """The last ones, the best first and the earliest if even, each of them once."""
        kept: list[paths.Architecture] = []
        for architecture, _ in sorted(self.judged[-self.of_last :], key=lambda one: -one[1]):
            if architecture not in kept:
                kept.append(architecture)
        return kept


@dataclass
class Shared:
    """Trials of ENAS, with the versions of their shared store.

    Trials of one round start from one version and publish one after another: each adds its part of
    the change to what is newest, so that together they come to the mean.
    """

    pick: Pick
    steps: int
    rate: float
    together: int
    newest: dict[str, int] = field(default_factory=dict)
    versions: dict[int, task.Weights] = field(default_factory=dict)

    def cost(self, parameters: Mapping[str, Any]) -> float:
        sizes = [paths.size(each) for each in parameters["architectures"]]
        if parameters["phase"] == "controller":
            return cost.judged(sizes[0])
        return sum(cost.trained(self.steps, size) for size in sizes) / len(sizes)

    def run(
        self, parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
    ) -> Outcome:
        self.pick.spent += self.cost(parameters)
        pinned = parameters.get("shared_stores", {}).get("omega", 0)
        drawn: Sequence[paths.Architecture] = parameters["architectures"]
        before = self.versions.setdefault(pinned, {} if pinned else paths.fresh(dice))
        if parameters["phase"] == "controller":
            worth = right(fixed(before, drawn[0]))
            self.pick.judged.append((drawn[0], worth))
            return Outcome(None, NOTHING_YET, NOTHING_YET, told=worth)
        weights = copied(before)

        def in_turn(step: int, pictures: task.Array) -> Any:
            return paths.scores(weights, drawn[step % len(drawn)], pictures)

        task.fit(weights, in_turn, self.steps, self.rate, dice, paths.SHARES)
        number = max(self.versions)
        self.versions[number + 1] = {
            name: one + (weights[name] - before[name]) / np.float32(self.together)
            for name, one in self.versions[number].items()
        }
        self.newest["omega"] = number + 1
        return Outcome(None, NOTHING_YET, NOTHING_YET)


@dataclass(frozen=True)
class SinglePath:
    """Trials of single path one-shot."""

    pick: Pick
    rate: float

    def cost(self, parameters: Mapping[str, Any]) -> float:
        if "supernet" in parameters:
            return cost.trained(parameters["supernet"]["steps"], paths.mean_size())
        return cost.judged(paths.size(paths.architecture_of(parameters)))

    def run(
        self, parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
    ) -> Outcome:
        self.pick.spent += self.cost(parameters)
        if "supernet" in parameters:
            return Outcome(self._supernet(parameters, dice), NOTHING_YET, NOTHING_YET)
        assert inherited is not None  # the supernet's
        architecture = paths.architecture_of(parameters)
        worth = right(fixed(inherited, architecture))
        self.pick.judged.append((architecture, worth))
        return Outcome(None, NOTHING_YET, NOTHING_YET, told=worth)

    def _supernet(self, parameters: Mapping[str, Any], dice: np.random.Generator) -> task.Weights:
        weights, choices = paths.fresh(dice), parameters["choices"]

        def drawn(_step: int, pictures: task.Array) -> Any:
            path = {name: some[int(dice.integers(len(some)))] for name, some in choices.items()}
            return paths.scores(weights, paths.architecture_of(path), pictures)

        task.fit(weights, drawn, parameters["supernet"]["steps"], self.rate, dice, paths.SHARES)
        return weights


def found(
    tuner: Tuner,
    trials: Shared | SinglePath,
    seed: int,
    budget: float,
    share: float,
    retraining: Alone,
) -> Found:
    """Searches with a share of the budget, and trains what was picked with all that is left."""
    versions = trials.newest if isinstance(trials, Shared) else None
    search(tuner, trials, seed, share * budget, workers=1, versions=versions)
    spent, path = trials.pick.spent, list[Better]()
    for number, picked in enumerate(trials.pick.ranked, 1):
        size = paths.size(picked)
        left = budget - spent - cost.judged(size)
        steps = min(retraining.steps, int(left / cost.trained(1, size)))
        if steps < 1:
            break
        spent += cost.trained(steps, size) + cost.judged(size)
        dice = np.random.default_rng([seed, number])
        outcome = alone(picked, steps, retraining.rate, dice)
        if not path or outcome.valid > path[-1].valid:
            path.append(Better(spent, outcome.valid, outcome.test))
    return Found(tuple(path))


def copied(weights: task.Weights) -> task.Weights:
    """Weights of one's own to train."""
    return {name: one.copy() for name, one in weights.items()}
