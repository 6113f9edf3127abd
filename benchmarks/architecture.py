"""An architecture search on digits, on the clock: with inheritance, and the best of others without.

From the start of a program until it knows of a validation accuracy of 0.65 on distorted digits. All
import one trial (``races/grown.py``), of the task, space and settings of ``tuner_nas``: ours grows
networks that inherit their parents' weights by morphisms; Ray Tune (ASHA) and Optuna (TPE with
Hyperband) train from scratch and stop early (``races/architecture_*.py``). Seeds are the next ten
that no study here had used.
"""

from __future__ import annotations

from benchmarks.environments import OWN
from benchmarks.races import grown
from benchmarks.races.judging import judged
from benchmarks.races.running import Racer, race
from benchmarks.rows import Row

OURS = "bequeath"
RACERS = (
    Racer(OURS, OWN, "architecture_ours.py"),
    Racer("Ray Tune", "ray", "architecture_ray.py"),
    Racer("Optuna", "optuna", "architecture_optuna.py"),
)
BUDGET_S = 30.0
LEAST = 3.0
SEEDS = range(60, 70)
QUICK_SEEDS = range(100, 102)


def run(*, quick: bool = False) -> list[Row]:
    """A row a peer; ``quick`` has two seeds, and gives no verdict."""
    found = race(RACERS, QUICK_SEEDS if quick else SEEDS, BUDGET_S)
    rows = [
        judged(
            f"architecture search on digits until {grown.TARGET:g} is known, wall clock, with "
            f"inheritance, against {one.name} without",
            found[OURS],
            found[one.name],
            least=LEAST,
            budget_s=BUDGET_S,
            more=f"lessons of {grown.STEPS} steps, from scratch {grown.LESSONS} at most; two "
            "workers; ours begins with two blocks of 32 units",
        )
        for one in RACERS[1:]
    ]
    return [Row({**each, "ok": None}) for each in rows] if quick else rows
