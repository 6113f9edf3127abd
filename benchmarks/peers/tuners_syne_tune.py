"""Syne Tune's schedulers, led as its own loop leads them, in virtual time.

``tuners_syne_tune.py JOBS``: JOBS is JSON, see ``answers.py``. ``algorithm`` is ``REA``,
``RandomSearch``, ``ASHA`` or ``PopulationBasedTraining``. A trial that is stopped makes way for
what the scheduler suggests next; what a suggestion says of a checkpoint is honoured.
"""

from __future__ import annotations

import datetime
import logging
import random
from collections import deque
from typing import Any

import numpy as np
from answers import Job, say_scores
from surrogates import PROBLEMS, Best, BlackBox, Curves, Population, Space
from syne_tune import config_space as kinds
from syne_tune.backend.trial_status import Trial
from syne_tune.optimizer import baselines
from syne_tune.optimizer.scheduler import SchedulerDecision
from syne_tune.optimizer.schedulers.pbt import PopulationBasedTraining
from virtual_time import Piece, lead

NOW = datetime.datetime(2026, 1, 1, tzinfo=datetime.timezone.utc)  # noqa: UP017
FOREVER = 10**6


def config_space(space: Space) -> dict[str, Any]:
    """A search space in Syne Tune's terms."""
    found: dict[str, Any] = {}
    for name, dimension in space.items():
        kind, bounds = dimension["_type"], dimension["_value"]
        if kind == "choice":
            found[name] = kinds.choice(bounds)
        elif kind == "randint":
            found[name] = kinds.randint(bounds[0], bounds[1] - 1)
        else:
            found[name] = getattr(kinds, kind)(*bounds)
    return found


class Search:
    """A scheduler with its trials; ``report`` says what a trial reports after one more epoch."""

    def __init__(self, job: Job, seed: int) -> None:
        self.problem = PROBLEMS[job["problem"]]
        common = {
            "config_space": config_space(self.problem.space),
            "do_minimize": False,
            "random_seed": seed,
            **job["arguments"],
        }
        if job["algorithm"] == "PopulationBasedTraining":
            self.scheduler: Any = PopulationBasedTraining(
                **common, metric="value", time_attr="epoch", max_t=FOREVER
            )
        elif job["algorithm"] == "ASHA":
            self.scheduler = baselines.ASHA(**common, metric="value", time_attr="epoch")
        elif job["algorithm"] == "REA":
            self.scheduler = baselines.REA(**common, metric="value")
        else:
            self.scheduler = baselines.RandomSearch(**common, metrics=["value"])
        self.best = Best()
        self.dice = random.Random(f"noise of seed {seed}")
        self.going_on: deque[Trial] = deque()
        self.epochs: dict[int, int] = {}
        self.states: dict[int, tuple[float, ...]] = {}
        self.begun = 0

    def next(self) -> Piece | None:
        if self.going_on:
            return Piece(1.0, self.going_on.popleft())
        suggestion = self.scheduler.suggest()
        if suggestion is None:
            return None
        trial = Trial(self.begun, suggestion.config, NOW)
        self.begun += 1
        source = suggestion.checkpoint_trial_id
        self.epochs[trial.trial_id] = self.epochs.get(source, 0)
        if isinstance(self.problem, Population):
            self.states[trial.trial_id] = self.states.get(source, self.problem.start)
        self.scheduler.on_trial_add(trial)
        return Piece(1.0, trial)

    def done(self, piece: Piece) -> None:
        trial: Trial = piece.what
        self.epochs[trial.trial_id] += 1
        seen, true = self.after_an_epoch(trial)
        self.best.take(seen, true)
        result = {"value": seen, "epoch": self.epochs[trial.trial_id]}
        if isinstance(self.problem, BlackBox):
            self.scheduler.on_trial_complete(trial, result)
        elif self.scheduler.on_trial_result(trial, result) == SchedulerDecision.CONTINUE:
            self.going_on.append(trial)

    def after_an_epoch(self, trial: Trial) -> tuple[float, float]:
        """What is seen, and what is true."""
        one, number = self.problem, trial.trial_id
        if isinstance(one, BlackBox):
            value = one.value(trial.config)
            return value, value
        if isinstance(one, Curves):
            epoch = self.epochs[number]
            return one.seen(trial.config, epoch, self.dice), one.value(trial.config, epoch)
        self.states[number] = one.train(self.states[number], trial.config)
        return one.seen(self.states[number], self.dice), one.value(self.states[number])


def score(job: Job, seed: int) -> float:
    """What a scheduler reaches."""
    np.random.seed(seed)  # its regularized evolution draws founders from the global generator
    random.seed(seed)
    search = Search(job, seed)
    lead(
        search,
        seed=seed,
        workers=job["workers"],
        pieces=job["pieces"],
        horizon=job["horizon"],
    )
    return search.best.true


if __name__ == "__main__":
    logging.disable(logging.WARNING)
    say_scores("syne-tune", score)
