"""A loop of ask and tell: ``loop.py ours|memory|sqlite TRIALS`` prints its seconds."""

from __future__ import annotations

import sys
import time
from typing import Any

import optuna

import bequeath as bq


def value_of(parameters: dict[str, Any]) -> float:
    """A task that takes no time."""
    return float((parameters["x"] - 2) ** 2 + parameters["n"])


def ours(trials: int) -> None:
    """The loop of a study of ours."""
    space = {"x": bq.uniform(-10, 10), "lr": bq.loguniform(1e-4, 1), "n": bq.int(1, 8)}
    with bq.Study(space, tuner="TPE", optimize="minimize", seed=1) as study:
        for _ in range(trials):
            trial = study.ask()
            study.tell(trial, value_of(trial.parameters))


def theirs(trials: int, storage: str | None) -> None:
    """The loop of a study of Optuna's."""
    space: dict[str, Any] = {
        "x": optuna.distributions.FloatDistribution(-10, 10),
        "lr": optuna.distributions.FloatDistribution(1e-4, 1, log=True),
        "n": optuna.distributions.IntDistribution(1, 8),
    }
    study = optuna.create_study(sampler=optuna.samplers.TPESampler(seed=1), storage=storage)
    for _ in range(trials):
        trial = study.ask(space)
        study.tell(trial, value_of(trial.params))


def main() -> None:
    """Run one."""
    name, trials = sys.argv[1], int(sys.argv[2])
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    assert bq.Study  # imported now, as Optuna's study was above
    began = time.perf_counter()
    if name == "ours":
        ours(trials)
    else:
        theirs(trials, "sqlite:///loop.db" if name == "sqlite" else None)
    print(time.perf_counter() - began)


if __name__ == "__main__":
    main()
