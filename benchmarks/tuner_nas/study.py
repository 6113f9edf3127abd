"""All searches of the study, their rows, tables and pictures."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass

from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from benchmarks.rows import Row
from benchmarks.tuner_digits import page, picture
from benchmarks.tuner_digits.baseline import Sweep, mean_valid
from benchmarks.tuner_digits.searching import Found
from benchmarks.tuner_digits.verdict import judged
from benchmarks.tuner_nas import task
from benchmarks.tuner_nas.contestants import (
    CONTESTANTS,
    Contestant,
    Done,
    random_search,
    search_of,
    shortened,
)

STUDY = "architectures"
QUICK, QUICK_SEEDS = 32, range(100, 101)
VALUES = {
    "chains": "best validation accuracy",
    "fronts": "dominated area",
    "paths": "best validation accuracy",
}


@dataclass(frozen=True)
class Setting:
    """Of the searches in one space: core-seconds as ``cost`` counts them, seeds, the baseline's.

    ``sweep``: the steps of each trial of random search, of which the best is the baseline.
    """

    budget: float
    seeds: Sequence[int]
    sweep: Sequence[int]

    def shortened(self, by: int) -> Setting:
        """A part of the budget, with trials of a part of the length, on one seed of no report."""
        return Setting(self.budget / by, QUICK_SEEDS, [steps // by for steps in self.sweep])


CHAINS = Setting(8.0, range(10, 15), (2000, 4000, 8000, 16000))
#: Some three trainings of the longest kind: no room for many trials, and shared weights cost one.
PATHS = Setting(14.0, range(30, 35), (2000, 4000, 8000, 12000, 16000))
SETTINGS = {"chains": CHAINS, "fronts": CHAINS, "paths": PATHS}


@dataclass(frozen=True)
class Result:
    """All searches in one space: the baseline's by steps a trial, and those of each tuner."""

    space: str
    sweep: Sweep
    ours: Mapping[str, Sequence[Found]]
    took: Mapping[str, float]  # measured core-seconds for each one counted

    @property
    def baseline_name(self) -> str:
        """With how long its trials were."""
        return f"random search, {self.sweep.chosen} steps"


def run(*, quick: bool = False) -> list[Row]:
    """One row a tuner; ``quick`` takes a small part of it all, gives no verdict, writes nothing."""
    if quick:
        settings = {space: setting.shortened(QUICK) for space, setting in SETTINGS.items()}
        results = searched([shortened(one, QUICK) for one in CONTESTANTS], settings)
        rows = [each for one in results for each in rows_of(one, settings[one.space].budget)]
        return [{**row, "ok": None} for row in rows]
    results = searched(CONTESTANTS, SETTINGS)
    document(results, SETTINGS)
    return [each for one in results for each in rows_of(one, SETTINGS[one.space].budget)]


def searched(contestants: Sequence[Contestant], settings: Mapping[str, Setting]) -> list[Result]:
    """A search for each contestant, each length of the baseline and each seed, on all cores."""
    everybody = [
        *(
            random_search(space, n)
            for space in ("chains", "paths")
            if space in settings
            for n in settings[space].sweep
        ),
        *contestants,
    ]
    jobs = [
        (one, seed, settings[one.space].budget)
        for one in everybody
        for seed in settings[one.space].seeds
    ]
    context = multiprocessing.get_context("spawn")  # a fork would copy BLAS with its threads
    with ProcessPoolExecutor(os.cpu_count(), context, initializer=_prepare) as pool:
        done = iter(list(pool.map(search_of, *zip(*jobs, strict=True))))
    pairs = [(one, [next(done) for _ in settings[one.space].seeds]) for one in everybody]
    spaces = {one.space for one in contestants}
    return [result(space, pairs) for space in VALUES if space in spaces]


def result(space: str, pairs: Sequence[tuple[Contestant, Sequence[Done]]]) -> Result:
    """The searches in one space; those by accuracy and by dominated area have one baseline."""
    drawn_from = "chains" if space == "fronts" else space
    mine = [
        (one, done)
        for one, done in pairs
        if one.space == (drawn_from if one.tuner == "Random" else space)
    ]

    def found(done: Sequence[Done]) -> list[Found]:
        return [one.front if space == "fronts" and one.front else one.found for one in done]

    by_label: dict[str, list[Done]] = {}
    for one, done in mine:
        by_label.setdefault(one.label, []).extend(done)
    return Result(
        space,
        Sweep({one.steps: found(done) for one, done in mine if one.tuner == "Random"}),
        {one.label: found(done) for one, done in mine if one.tuner != "Random"},
        {label: _took(done) for label, done in by_label.items()},
    )


def _took(done: Sequence[Done]) -> float:
    return sum(one.measured_s for one in done) / sum(one.counted_s for one in done)


def _prepare() -> None:
    """A core-second is one core's, so matrices are multiplied by one thread; pictures are there."""
    threadpool_limits(1)
    for shares in (task.FEW, task.MANY):
        task.data(shares)


# ---- what is told of it ------------------------------------------------------------------------


def rows_of(result: Result, budget: float) -> list[Row]:
    """One row a tuner."""
    lengths = ", ".join(
        f"{steps}: {mean_valid(found):.3f}" for steps, found in result.sweep.found.items()
    )
    rows = []
    for label, found in result.ours.items():
        one = judged(
            label,
            found,
            result.sweep.best,
            f"; {budget:g} core-seconds a search as counted, measured {result.took[label]:.2f} × "
            f"that against {result.took['random search']:.2f} ×; random search by steps a trial: "
            f"{lengths}",
        )
        rows.append(Row({**one, "what": one["what"].replace("best validation", _value(result))}))
    return rows


def _value(result: Result) -> str:
    return VALUES[result.space]


def document(
    results: Sequence[Result], settings: Mapping[str, Setting], study: str = STUDY
) -> None:
    """Writes tables and pictures into the documentation, between the marks of the study."""
    lines: list[str] = []
    for result in results:
        budget, seeds = settings[result.space].budget, settings[result.space].seeds
        name = "nas" if study == STUDY else study
        image = page.IMAGES / f"tuner-{name}-{result.space}.png"
        lines += [
            f"### {TITLES[result.space]}",
            "",
            *page.verdicts(result.ours, result.sweep.best, result.baseline_name, budget),
            "",
            f"![{_value(result)} against core-seconds](images/{image.name})",
            "",
            *page.by_seed(result.ours, result.sweep.best, result.baseline_name, seeds),
            "",
            *page.lengths(result.sweep, "steps"),
            "",
        ]
        picture.draw(
            result.ours,
            result.sweep.best,
            image,
            budget=budget,
            spent_label="core-seconds, as counted",
            baseline_name=result.baseline_name,
            value_label=_value(result),
        )
    page.write(study, lines[:-1])


TITLES = {
    "chains": "Chains that grow: the best network",
    "fronts": "Chains that grow: accuracy and size",
    "paths": "One network with all weights: what is picked, trained from scratch",
}
