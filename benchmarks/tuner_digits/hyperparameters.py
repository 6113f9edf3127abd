"""The study of tuners of hyperparameters: PBT, successive halving, Hyperband, ASHA.

The network is the same for all trials, so an epoch is an epoch's core-seconds: the budget is
counted in epochs, to which every trial adds what judging it costs. The setting was chosen on seeds
from 100 on and fixed before those of the report were run (docs/decisions/0036).
"""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.rows import Row
from benchmarks.tuner_digits import page, picture
from benchmarks.tuner_digits.baseline import Sweep, mean_valid
from benchmarks.tuner_digits.data import data
from benchmarks.tuner_digits.network import State, accuracy, fresh, train
from benchmarks.tuner_digits.searching import Found, Outcome, search
from benchmarks.tuner_digits.verdict import judged
from tuners import make_builtin

STUDY = "hyperparameters"
SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 3.0]},
    "momentum": {"_type": "uniform", "_value": [0.0, 0.99]},
    "decay": {"_type": "loguniform", "_value": [1e-6, 1e-1]},
    "noise": {"_type": "uniform", "_value": [0.0, 2.0]},
    "moved": {"_type": "uniform", "_value": [0.0, 1.0]},
    "dropout": {"_type": "uniform", "_value": [0.0, 0.7]},
}
BUDGET = 6000  # epochs of all trials of a search together
JUDGING = 2  # epochs that judging a trial costs, rounded up
SEEDS = range(10, 15)
QUICK_SEEDS = range(100, 102)
TRIALS = (100, 50, 24, 12, 6)  # of random search: few that are long, or many that are short


@dataclass(frozen=True)
class Contestant:
    """A tuner of the study.

    ``epochs``: of its trials that have no budget of their own. ``lookahead``: how many of its
    requests may wait, so that workers have something to do meanwhile.
    """

    label: str
    tuner: str
    arguments: Mapping[str, Any] = field(default_factory=dict)
    epochs: int = 0
    lookahead: int = 0


CONTESTANTS = (
    Contestant("PBT", "PBT", {"population_size": 16}, epochs=16, lookahead=32),
    Contestant(
        "successive halving",
        "Hyperband",
        {"max_budget": 512, "eta": 4, "bracket": 3},
        lookahead=200,
    ),
    Contestant("Hyperband", "Hyperband", {"max_budget": 512, "eta": 4}, lookahead=300),
    Contestant("ASHA", "ASHA", {"min_budget": 8, "max_budget": 512, "eta": 4}),
)


@dataclass
class Training:
    """The task; trials without a budget of their own train for ``epochs``."""

    epochs: int
    core_s: float = 0.0  #: what training and judging took

    def trained(self, parameters: Mapping[str, Any]) -> int:
        """Epochs of a trial."""
        if "budget" in parameters:
            return int(parameters["budget"] - parameters["budget_before"])
        return self.epochs

    def cost(self, parameters: Mapping[str, Any]) -> float:
        """In epochs."""
        return self.trained(parameters) + JUDGING

    def run(
        self, parameters: Mapping[str, Any], inherited: State | None, dice: np.random.Generator
    ) -> Outcome:
        """Trains, and judges twice; the second time is the study's and does not count."""
        with np.errstate(all="ignore"):  # a rate that is too high overflows: it reads nothing
            begun = time.thread_time()
            state = fresh(dice) if inherited is None else inherited
            state = train(state, parameters, self.trained(parameters), dice)
            valid = accuracy(state, data().valid)
            self.core_s += time.thread_time() - begun
            return Outcome(state, valid, accuracy(state, data().test))


@dataclass(frozen=True)
class Searches:
    """What one contestant found, seed by seed, and what a search took on the mean."""

    found: list[Found]
    core_s: float


def found_by(one: Contestant, seed: int, budget: float = BUDGET) -> tuple[Found, float]:
    """What a tuner finds within the budget, and the core-seconds that it took here."""
    tuner = make_builtin(one.tuner, {**one.arguments, "seed": seed})
    tuner.update_search_space(SPACE)
    task = Training(one.epochs)
    return search(tuner, task, seed, budget, one.lookahead), task.core_s


def all_searches(
    contestants: Sequence[Contestant], seeds: Sequence[int], budget: float
) -> list[Searches]:
    """A search for each contestant and seed, on all cores."""
    jobs = [(one, seed, budget) for one in contestants for seed in seeds]
    with ProcessPoolExecutor(os.cpu_count(), initializer=_prepare) as pool:
        done = list(pool.map(found_by, *zip(*jobs, strict=True)))
    each = [done[start : start + len(seeds)] for start in range(0, len(done), len(seeds))]
    return [
        Searches([found for found, _ in some], statistics.fmean(took for _, took in some))
        for some in each
    ]


def _prepare() -> None:
    """A core-second is one core's, so matrices are multiplied by one thread; pictures are there."""
    threadpool_limits(1)
    data()


def run(*, quick: bool = False) -> list[Row]:
    """One row a tuner; ``quick`` takes a tenth of the budget, gives no verdict, writes nothing."""
    budget, seeds = (BUDGET // 10, QUICK_SEEDS) if quick else (BUDGET, SEEDS)
    contestants = [*random_searches(budget), *CONTESTANTS]
    rows = reported(all_searches(contestants, seeds, budget), budget, document=not quick)
    return [{**row, "ok": None} for row in rows] if quick else rows


def random_searches(budget: int) -> list[Contestant]:
    """Random search by epochs a trial; each length fills the budget."""
    lengths = [budget // trials - JUDGING for trials in TRIALS]
    return [Contestant("random search", "Random", epochs=epochs) for epochs in lengths]


def reported(done: Sequence[Searches], budget: int, *, document: bool) -> list[Row]:
    """Rows from the searches of ``random_searches`` and then of ``CONTESTANTS``."""
    random = random_searches(budget)
    baseline = Sweep({one.epochs: what.found for one, what in zip(random, done, strict=False)})
    took = {one.epochs: what.core_s for one, what in zip(random, done, strict=False)}
    ours = {one.label: what for one, what in zip(CONTESTANTS, done[len(random) :], strict=True)}
    told = ", ".join(f"{length}: {mean_valid(of):.3f}" for length, of in baseline.found.items())
    if document:
        _document({label: one.found for label, one in ours.items()}, baseline)
    return [
        judged(
            label,
            one.found,
            baseline.best,
            f"; {budget} epochs a search, {one.core_s:.1f} core-seconds here against "
            f"{took[baseline.chosen]:.1f}; random search by epochs a trial: {told}",
        )
        for label, one in ours.items()
    ]


def _document(ours: Mapping[str, Sequence[Found]], baseline: Sweep) -> None:
    name = f"random search, {baseline.chosen} epochs"
    image = page.IMAGES / f"tuner-digits-{STUDY}.png"
    lines = [
        *page.verdicts(ours, baseline.best, name, BUDGET),
        "",
        f"![best validation accuracy against epochs spent](images/{image.name})",
        "",
        *page.by_seed(ours, baseline.best, name, SEEDS),
        "",
        *page.lengths(baseline, "epochs"),
    ]
    page.write(STUDY, lines)
    picture.draw(
        ours,
        baseline.best,
        image,
        budget=BUDGET,
        spent_label="epochs spent by the search",
        baseline_name=name,
    )
