"""Optuna's samplers by plain ask and tell, in virtual time.

``tuners_optuna.py JOBS``: JOBS is JSON, see ``answers.py``. ``algorithm`` is a class of
``optuna.samplers``, ``arguments`` are its own.
"""

from __future__ import annotations

import warnings
from typing import Any

import optuna
from answers import Job, say_scores
from surrogates import PROBLEMS, Best, BlackBox, Front, Space
from virtual_time import Piece, lead


def suggested(trial: Any, space: Space) -> dict[str, Any]:
    """The parameters of a trial, by Optuna's own names for them."""
    found: dict[str, Any] = {}
    for name, dimension in space.items():
        kind, bounds = dimension["_type"], dimension["_value"]
        if kind == "choice":
            found[name] = trial.suggest_categorical(name, bounds)
        elif kind == "randint":
            found[name] = trial.suggest_int(name, bounds[0], bounds[1] - 1)
        else:
            found[name] = trial.suggest_float(name, *bounds, log=kind == "loguniform")
    return found


class Search:
    """A study whose trials run abreast."""

    def __init__(self, job: Job, seed: int) -> None:
        problem = PROBLEMS[job["problem"]]
        assert isinstance(problem, BlackBox)
        self.problem = problem
        arguments = dict(job["arguments"])
        if job["algorithm"] == "GridSampler":
            arguments["search_space"] = {name: x["_value"] for name, x in problem.space.items()}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sampler = getattr(optuna.samplers, job["algorithm"])(**arguments, seed=seed)
        directions = ["maximize"] * problem.objectives
        self.study = optuna.create_study(sampler=sampler, directions=directions)
        self.best, self.front = Best(), Front()

    def next(self) -> Piece:
        trial = self.study.ask()
        return Piece(1.0, (trial, suggested(trial, self.problem.space)))

    def done(self, piece: Piece) -> None:
        trial, parameters = piece.what
        value = self.problem.value(parameters)
        if self.problem.objectives > 1:
            self.front.points.append(value)
        else:
            self.best.take(value, value)
        try:
            self.study.tell(trial, value)
        except RuntimeError:  # GridSampler stops a loop that is not there, at the end of its grid
            if not isinstance(self.study.sampler, optuna.samplers.GridSampler):
                raise


def score(job: Job, seed: int) -> float:
    """What a sampler reaches."""
    search = Search(job, seed)
    lead(search, seed=seed, workers=job["workers"], pieces=job["pieces"])
    return search.front.area() if search.problem.objectives > 1 else search.best.true


if __name__ == "__main__":
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    warnings.simplefilter("ignore")
    say_scores("optuna", score)
