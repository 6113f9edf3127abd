"""All searches of the study, their rows, tables and pictures."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Iterable, Mapping, Sequence
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
BUDGET = 8.0  # core-seconds of a search, as ``cost`` counts them
SEEDS = range(10, 15)
QUICK, QUICK_SEEDS = 32, range(100, 101)
SWEEP = (2000, 4000, 8000, 16000)  # steps of each trial of random search
VALUES = {
    "chains": "best validation accuracy",
    "fronts": "dominated area",
    "paths": "best validation accuracy",
}


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
        rows = [
            each
            for result in searched(
                [shortened(one, QUICK) for one in CONTESTANTS],
                [steps // QUICK for steps in SWEEP],
                QUICK_SEEDS,
                BUDGET / QUICK,
            )
            for each in rows_of(result, BUDGET / QUICK)
        ]
        return [{**row, "ok": None} for row in rows]
    results = searched(CONTESTANTS, SWEEP, SEEDS, BUDGET)
    document(results, SEEDS)
    return [each for result in results for each in rows_of(result, BUDGET)]


def searched(
    contestants: Sequence[Contestant], lengths: Sequence[int], seeds: Iterable[int], budget: float
) -> list[Result]:
    """A search for each contestant, each length of the baseline and each seed, on all cores."""
    seeds = list(seeds)
    everybody = [
        *(random_search(space, steps) for space in ("chains", "paths") for steps in lengths),
        *contestants,
    ]
    jobs = [(one, seed, budget) for one in everybody for seed in seeds]
    context = multiprocessing.get_context("spawn")  # a fork would copy BLAS with its threads
    with ProcessPoolExecutor(os.cpu_count(), context, initializer=_prepare) as pool:
        done = list(pool.map(search_of, *zip(*jobs, strict=True)))
    by_contestant = [done[at : at + len(seeds)] for at in range(0, len(done), len(seeds))]
    pairs = list(zip(everybody, by_contestant, strict=True))
    return [result(space, pairs) for space in VALUES]


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
    task.data()


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


def document(results: Sequence[Result], seeds: Sequence[int]) -> None:
    """Writes tables and pictures into the documentation."""
    lines: list[str] = []
    for result in results:
        image = page.IMAGES / f"tuner-nas-{result.space}.png"
        lines += [
            f"### {TITLES[result.space]}",
            "",
            *page.verdicts(result.ours, result.sweep.best, result.baseline_name, BUDGET),
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
            budget=BUDGET,
            spent_label="core-seconds, as counted",
            baseline_name=result.baseline_name,
            value_label=_value(result),
        )
    page.write(STUDY, lines[:-1])


TITLES = {
    "chains": "Chains that grow: the best network",
    "fronts": "Chains that grow: accuracy and size",
    "paths": "One network with all weights: what is picked, trained from scratch",
}
