"""A search: a tuner, the trials of a task, and a budget that all trials share.

Time is virtual and the budget is a sum of costs, not of seconds: what a search finds is the same
on every machine, and on one that is busy.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from benchmarks.peers.virtual_time import Piece, lead
from benchmarks.tuner_searches import Led
from tuners import Tuner

WORKERS = 4


@dataclass(frozen=True)
class Outcome:
    """What a trial came to; ``state`` is what its children inherit."""

    state: Any
    valid: float  #: what the search sees and chooses by; larger is better
    test: float  #: the same on pictures that no search sees
    told: Any = None  #: what the tuner is told instead of ``valid``, several objectives for one


class Task(Protocol):
    """Trials, without a tuner."""

    def cost(self, parameters: Mapping[str, Any]) -> float:
        """Core-seconds of a trial, or what stands for them, before it begins."""

    def run(
        self, parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
    ) -> Outcome:
        """Trains; what was inherited stays as it is. None: begin anew."""


@dataclass(frozen=True)
class Better:
    """From here on the search would hand out this one."""

    spent: float
    valid: float
    test: float


@dataclass(frozen=True)
class Found:
    """What a search found: each network that was its best by validation, in order."""

    path: tuple[Better, ...]

    @property
    def valid(self) -> float:
        """The best that it saw."""
        return self.path[-1].valid

    @property
    def test(self) -> float:
        """That network's, on pictures unseen."""
        return self.path[-1].test

    def at(self, spent: float) -> Better | None:
        """What it would have handed out after so much; None: nothing yet."""
        return next((one for one in reversed(self.path) if one.spent <= spent), None)


class Search:
    """A tuner on a task, as ``virtual_time.lead`` leads it."""

    def __init__(self, led: Led, task: Task, seed: int) -> None:
        self.led, self.task, self.seed = led, task, seed
        self.saved: dict[str, Any] = {}
        self.spent = 0.0
        self.path: list[Better] = []

    def next(self) -> Piece | None:
        found = self.led.proposal()
        return None if found is None else Piece(self.task.cost(found[1]), found)

    def done(self, piece: Piece) -> None:
        trial, parameters = piece.what
        inherited = self.saved.get(parameters.get("restore_path", ""))
        outcome = self.task.run(parameters, inherited, np.random.default_rng([self.seed, trial]))
        if "save_path" in parameters:
            self.saved[parameters["save_path"]] = outcome.state
        self.spent += piece.length
        if not self.path or outcome.valid > self.path[-1].valid:
            self.path.append(Better(self.spent, outcome.valid, outcome.test))
        self.led.over(trial, parameters, outcome.valid if outcome.told is None else outcome.told)


def search(
    tuner: Tuner,
    task: Task,
    seed: int,
    budget: float,
    lookahead: int = 0,
    workers: int = WORKERS,
    versions: dict[str, int] | None = None,
) -> Found:
    """Leads a tuner, which has its search space, until no trial fits into the budget any more.

    Args:
        tuner: the tuner.
        task: what its trials do.
        seed: of the noise, and of who ends when.
        budget: of all trials.
        lookahead: how many requests may wait at once.
        workers: how many trials run at once.
        versions: the newest version of each shared store, which trials add to.
    """
    one = Search(Led(tuner, lookahead, versions), task, seed)
    lead(one, seed=seed, workers=workers, budget=budget)
    return Found(tuple(one.path))
