"""Optuna with its storage in SQLite: empty trials, two at once or one.

Counted: the time between the ends of trials, as Optuna's own callback tells them, from after
the warm-up to the last. The objective returns a number and suggests no parameter, which is
the least that Optuna can journal (ours carries one parameter), and the sampler is random.
Both ``n_jobs=2`` and ``n_jobs=1`` are run, as threads that share one database may well be
slower than one; the faster of the two is the figure.
"""

from __future__ import annotations

import sys
import time

import optuna
from steady import Steady, say, steady


def rate(trials: int, jobs: int) -> Steady:
    """One study with so many threads."""
    ends: list[float] = []
    study = optuna.create_study(
        storage=f"sqlite:///jobs{jobs}.db", sampler=optuna.samplers.RandomSampler(seed=0)
    )
    study.optimize(
        lambda trial: 1.0,
        n_trials=trials,
        n_jobs=jobs,
        callbacks=[lambda study, trial: ends.append(time.perf_counter())],
    )
    return steady("Optuna on SQLite", "optuna", ends, workers=jobs, detail=f"n_jobs={jobs}")


def main() -> None:
    """``optuna_sqlite.py TRIALS``."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    rates = [rate(int(sys.argv[1]), jobs) for jobs in (2, 1)]
    best = max(rates, key=lambda one: one["per_second"])
    others = ", ".join(f"{one['detail']}: {one['per_second']:.0f}/s" for one in rates)
    say({**best, "detail": f"the faster of {others}"})


if __name__ == "__main__":
    main()
