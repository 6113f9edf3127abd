"""Two objectives with inheritance, once more: accuracy and size of chains, on fresh seeds.

The task, the networks, the budget and the rule for the baseline are those of
:mod:`benchmarks.tuner_nas`. What differs is evolution: it may train a parent on, keeps the best by
rank, and begins with networks from small to large. Its settings were chosen on seeds from 100 on
and committed before these seeds ran. Seeds 40 to 44 ran before, with all founders the smallest
network and 2,000 steps a trial: better than random search on 3 of 5.
"""

from __future__ import annotations

from benchmarks.rows import Row
from benchmarks.tuner_nas import study
from benchmarks.tuner_nas.contestants import SMALL, Contestant, shortened

STUDY = "fronts"

#: Random search has a shorter length than in the study before: small networks need few steps.
SETTING = study.Setting(8.0, range(80, 85), (1000, 2000, 4000, 8000))

CONTESTANT = Contestant(
    "MorphingEvolution, from small to large",
    "MorphingEvolution",
    "fronts",
    1000,
    {
        **SMALL,
        "population_size": 12,
        "sample_size": 2,
        "survival": "rank",
        "trained_on": 0.5,
        "founder_steps": 4,
        "objectives": {"default": "maximize", "size": "minimize"},
    },
)


def run(*, quick: bool = False) -> list[Row]:
    """One row; ``quick`` takes a small part of it all, gives no verdict, writes nothing."""
    setting, contestant = SETTING, CONTESTANT
    if quick:
        setting = SETTING.shortened(study.QUICK)
        contestant = shortened(CONTESTANT, study.QUICK)
    settings = {"chains": setting, "fronts": setting}
    results = study.searched([contestant], settings)
    rows = [each for one in results for each in study.rows_of(one, setting.budget)]
    if quick:
        return [Row({**row, "ok": None}) for row in rows]
    study.document(results, settings, STUDY)
    return rows
