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
from benchmarks.races.judging import raced
from benchmarks.races.running import Racer
from benchmarks.rows import Row

RACERS = (
    Racer("bequeath", OWN, "architecture_ours.py"),
    Racer("Ray Tune", "ray", "architecture_ray.py"),
    Racer("Optuna", "optuna", "architecture_optuna.py"),
)
BUDGET_S = 60.0
LEAST = 3.0
SEEDS = range(60, 70)
QUICK_SEEDS = range(100, 102)


def run(*, quick: bool = False) -> list[Row]:
    """A row a peer; ``quick`` has two seeds, and gives no verdict."""
    rows = raced(
        RACERS,
        QUICK_SEEDS if quick else SEEDS,
        what=f"architecture search on digits until {grown.TARGET:g} is known, wall clock, with "
        "inheritance, against {peer} without",
        least=LEAST,
        budget_s=BUDGET_S,
        more=f"lessons of {grown.STEPS} steps, from scratch {grown.LESSONS} at most; two "
        "workers; ours begins with two blocks of 32 units",
    )
    return [Row({**each, "ok": None}) for each in rows] if quick else rows
