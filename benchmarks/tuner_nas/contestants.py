"""The searches of the study: which tuner, with which arguments, on which trials.

All of it was chosen on seeds from 100 on, and fixed before those of the report were run
(docs/decisions/0037 and 0039). Every search has one worker: core-seconds are compared, not hours.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.tuner_digits.searching import Found, Outcome, Task, search
from benchmarks.tuner_nas import chains, one_shot, paths
from benchmarks.tuner_nas.filling import Filling
from benchmarks.tuner_nas.fronts import TwoObjectives
from benchmarks.tuner_nas.growing import Training
from tuners import Tuner, make_builtin

RATE = 0.1
GROWTH = {
    "blocks": [{"width": 32, "kernel": 0}, {"width": 32, "kernel": 0}],
    "operations": ["wider", "deeper", "skip"],
    "max_blocks": chains.MOST_BLOCKS,
    "max_width": max(chains.WIDTHS),
}


@dataclass(frozen=True)
class Contestant:
    """A tuner of the study.

    ``space``: what its trials are, ``chains``, ``fronts`` of chains or ``paths``. ``steps``: of a
    trial. ``share``: of the budget for the search, where what is picked is trained afterwards, from
    scratch, for ``retrained`` steps.
    """

    label: str
    tuner: str
    space: str
    steps: int
    arguments: Mapping[str, Any] = field(default_factory=dict)
    share: float = 0.0
    retrained: int = 0


MORPHING = {**GROWTH, "population_size": 8, "sample_size": 8, "steps": 3}
#: Two objectives begin at the smallest network, since morphisms only grow.
SMALL = {
    **GROWTH,
    "blocks": chains.SMALLEST,
    "population_size": 6,
    "sample_size": 3,
    "steps": 1,
}
CONTESTANTS = (
    Contestant(
        "RegularizedEvolution",
        "RegularizedEvolution",
        "chains",
        500,
        {"population_size": 12, "sample_size": 6},
    ),
    Contestant("MorphingEvolution", "MorphingEvolution", "chains", 1000, MORPHING),
    Contestant(
        "MorphingEvolution, crossover",
        "MorphingEvolution",
        "chains",
        1000,
        {**MORPHING, "crossover": 0.3},
    ),
    Contestant(
        "NetworkMorphism",
        "NetworkMorphism",
        "chains",
        1000,
        {**GROWTH, "neighbours": 4, "steps": 3},
    ),
    Contestant(
        "MorphingEvolution, accuracy and size",
        "MorphingEvolution",
        "fronts",
        4000,
        {**SMALL, "objectives": {"default": "maximize", "size": "minimize"}},
    ),
    Contestant(
        "ENAS",
        "ENAS",
        "paths",
        2500,
        {
            "operations": list(paths.OPERATIONS),
            "layers": paths.LAYERS,
            "weights_trials": 1,
            "samples": 250,
            "controller_trials": 100,
            "batch": 20,
            "hidden": 32,
            "entropy_weight": 0.02,  # with less, the controller may settle on one operation
            "learning_rate": 0.005,
        },
        share=0.4,
        retrained=12000,
    ),
    Contestant(
        "SPOS",
        "SPOS",
        "paths",
        0,
        {
            "population_size": 50,
            "generations": 1000,  # the budget ends it
            "top": 10,
            "mutation_probability": 0.2,
            "supernet": {"steps": 16000},
        },
        share=0.4,
        retrained=12000,
    ),
)


def shortened(one: Contestant, by: int) -> Contestant:
    """The same search with trials of a part of the length, for a part of the budget."""
    arguments = dict(one.arguments)
    if "supernet" in arguments:
        arguments["supernet"] = {"steps": arguments["supernet"]["steps"] // by}
    return replace(one, steps=one.steps // by, retrained=one.retrained // by, arguments=arguments)


def random_search(space: str, steps: int) -> Contestant:
    """The baseline, with one number of steps a trial."""
    return Contestant("random search", "Random", space, steps)


@dataclass(frozen=True)
class Done:
    """What a search found, and the core-seconds of its trials: as counted, and as they took.

    ``front``: what it found by the area that it dominates (chains).
    """

    found: Found
    counted_s: float
    measured_s: float
    front: Found | None = None


@dataclass
class Measured:
    """Trials whose core-seconds are measured beside being counted."""

    trials: Task
    counted_s: float = 0.0
    measured_s: float = 0.0

    def cost(self, parameters: Mapping[str, Any]) -> float:
        return self.trials.cost(parameters)

    def run(
        self, parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
    ) -> Outcome:
        self.counted_s += self.trials.cost(parameters)
        begun = time.thread_time()
        outcome = self.trials.run(parameters, inherited, dice)
        self.measured_s += time.thread_time() - begun
        return outcome


def search_of(one: Contestant, seed: int, budget: float) -> Done:
    """What a tuner finds within so many core-seconds."""
    tuner = make_builtin(one.tuner, {**one.arguments, "seed": seed})
    begun = time.thread_time()
    if one.share:
        trials = _shared(one, tuner)
        retraining = one_shot.Alone(one.retrained, RATE)
        found = one_shot.found(tuner, trials, seed, budget, one.share, retraining)
        return Done(found, budget, time.thread_time() - begun)
    if one.space == "paths":
        tuner.update_search_space(paths.space())
        filling = Filling(lambda steps: one_shot.Alone(steps, RATE), one.steps, budget)
        measured = Measured(filling)
        found = search(tuner, measured, seed, budget, workers=1)
        return Done(found, measured.counted_s, measured.measured_s)
    if "blocks" not in one.arguments:
        tuner.update_search_space(chains.space())
    both = TwoObjectives(Filling(lambda steps: Training(steps, RATE), one.steps, budget))
    measured = Measured(both)
    found = search(tuner, measured, seed, budget, workers=1)
    return Done(found, measured.counted_s, measured.measured_s, Found(tuple(both.path)))


def _shared(one: Contestant, tuner: Tuner) -> one_shot.Shared | one_shot.SinglePath:
    """Trials that share weights."""
    if one.tuner == "SPOS":
        tuner.update_search_space(paths.space())
        return one_shot.SinglePath(one_shot.Pick(), RATE)
    pick = one_shot.Pick(one.arguments["controller_trials"])
    return one_shot.Shared(pick, one.steps, RATE, one.arguments["weights_trials"])
