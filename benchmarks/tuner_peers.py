"""Our tuners beside the same algorithms of Optuna, Ray Tune and Syne Tune, on problems in a table.

Both sides get the same problems, budgets, workers and seeds, and the same times that trials take:
``peers/virtual_time.py`` leads both. Ours are called by their public methods, theirs by theirs.
"""

from __future__ import annotations

import json
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from benchmarks.environments import OWN
from benchmarks.margins import shortfall
from benchmarks.peer_runs import PeerFailed, answer
from benchmarks.peers.surrogates import PROBLEMS
from benchmarks.rows import Row, row
from benchmarks.tuner_searches import score

SEEDS = 20
QUICK_SEEDS = 3
SHARE = 0.05
TARGET = "95 % bound ≤ 5 % of the range"
LIMIT_S = 300.0

SCRIPTS = {
    "optuna": ("Optuna", "tuners_optuna.py"),
    OWN: ("Optuna", "tuners_optuna.py"),
    "ray": ("Ray Tune", "tuners_ray.py"),
    "synetune": ("Syne Tune", "tuners_syne_tune.py"),
}


@dataclass(frozen=True)
class Budget:
    """What both sides get; ``lookahead`` is what our requests may wait ahead of free workers."""

    workers: int = 8
    pieces: int = 0
    horizon: float = 0.0
    lookahead: int = 0


@dataclass(frozen=True)
class Ours:
    """A built-in tuner with its arguments."""

    name: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Theirs:
    """An algorithm of a peer with its arguments; ``environment`` is a key of :data:`SCRIPTS`."""

    environment: str
    algorithm: str
    arguments: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Case:
    """One comparison; ``remark`` says what differs by design."""

    problem: str
    budget: Budget
    ours: Ours
    theirs: Theirs
    remark: str = ""


_FEW, _MORE, _MANY = Budget(pieces=100), Budget(pieces=150), Budget(pieces=400)
_RUNGS = {"max_t": 64, "grace_period": 1, "reduction_factor": 4}
_STOPS = "there a configuration goes on unless it is stopped, ours pauses until it is promoted"
_POPULATION = {"perturbation_interval": 1, "quantile_fraction": 0.2}
_LIVES = Budget(workers=20, pieces=600, lookahead=40)
_OBJECTIVES = {"default": "maximize", "second": "maximize"}
_AGING = {"population_size": 50, "sample_size": 10}

CASES = (
    Case("chain", _MANY, Ours("Random"), Theirs("optuna", "RandomSampler")),
    Case("chain", _MANY, Ours("Random"), Theirs("synetune", "RandomSearch")),
    Case("mixed", _FEW, Ours("TPE"), Theirs("optuna", "TPESampler")),
    Case("hartmann6", _MORE, Ours("CMA-ES"), Theirs("optuna", "CmaEsSampler")),
    Case(
        "hartmann6",
        _MORE,
        Ours("QMC", {"scramble": True}),
        Theirs("optuna", "QMCSampler", {"scramble": True}),
    ),
    # Thirty trials, twenty of them by the model: it takes a tenth of a second and more for each.
    Case("hartmann6", Budget(pieces=30), Ours("GP"), Theirs(OWN, "GPSampler")),
    Case(
        "grid",
        Budget(pieces=240),
        Ours("GridSearch"),
        Theirs("optuna", "GridSampler"),
        "half of the grid; of the whole both find the best. Ours has one order for all seeds",
    ),
    Case(
        "two",
        Budget(pieces=200),
        Ours("NSGA-II", {"objectives": _OBJECTIVES, "population_size": 20}),
        Theirs("optuna", "NSGAIISampler", {"population_size": 20}),
    ),
    Case(
        "chain",
        Budget(pieces=400, lookahead=8),
        Ours("RegularizedEvolution", _AGING),
        Theirs("synetune", "REA", _AGING),
    ),
    Case(
        "curves",
        Budget(horizon=200.0),
        Ours("ASHA", {"max_budget": 64, "eta": 4}),
        Theirs("ray", "ASHAScheduler", _RUNGS),
        _STOPS,
    ),
    Case(
        "curves",
        Budget(horizon=200.0),
        Ours("ASHA", {"max_budget": 64, "eta": 4}),
        Theirs("synetune", "ASHA", _RUNGS),
        _STOPS,
    ),
    Case(
        "curves",
        Budget(horizon=400.0, lookahead=120),
        Ours("Hyperband", {"max_budget": 81, "eta": 3}),
        Theirs("ray", "HyperBandScheduler", {"max_t": 81, "reduction_factor": 3, "ahead": 200}),
        "there the brackets begin with the smallest, ours with the largest, as in the paper",
    ),
    *(
        Case(
            problem,
            _LIVES,
            Ours("PBT", {"population_size": 20}),
            Theirs(environment, algorithm, arguments),
        )
        for problem in ("toy", "decay")
        for environment, algorithm, arguments in (
            ("ray", "PopulationBasedTraining", {**_POPULATION, "members": 20}),
            ("synetune", "PopulationBasedTraining", {**_POPULATION, "population_size": 20}),
        )
    ),
)


def run(*, quick: bool = False) -> list[Row]:
    """One row a comparison; ``quick`` takes three seeds, too few for a verdict."""
    return compared(list(range(QUICK_SEEDS if quick else SEEDS)))


def compared(seeds: list[int]) -> list[Row]:
    """The rows of all comparisons."""
    answers = {name: _answers(name, seeds) for name in SCRIPTS}
    known: dict[str, list[float]] = {}
    rows = []
    for case in CASES:
        told = answers[case.theirs.environment]
        if isinstance(told, PeerFailed):
            rows.append(row(_what(case, ""), TARGET, "not measured", None, str(told)))
            continue
        key = repr((case.ours, case.problem, case.budget))
        if key not in known:
            known[key] = [_score(case, seed) for seed in seeds]
        version, theirs = told[0], told[1].pop(0)
        rows.append(judged(case, version, known[key], theirs))
    return rows


def judged(case: Case, version: str, ours: Sequence[float], theirs: Sequence[float]) -> Row:
    """The row of a comparison from the scores of both sides."""
    problem = PROBLEMS[case.problem]
    found = shortfall(ours, theirs, problem.low, problem.high)
    equal = f"; the same in {found.equal} of {found.seeds} seeds" if found.equal else ""
    remark = f"; {case.remark}" if case.remark else ""
    return row(
        _what(case, version),
        TARGET,
        f"{found.mean:+.1%}, bound {found.bound:+.1%}",
        found.within(SHARE) if found.seeds >= SEEDS else None,
        f"{_share(case, ours)} of the range against {_share(case, theirs)}{equal}{remark}",
    )


def _what(case: Case, version: str) -> str:
    peer = f"{SCRIPTS[case.theirs.environment][0]} {version}".strip()
    return (
        f"{case.ours.name} on “{case.problem}” against {case.theirs.algorithm} ({peer}): shortfall"
    )


def _share(case: Case, scores: Sequence[float]) -> str:
    problem = PROBLEMS[case.problem]
    shares = [(one - problem.low) / (problem.high - problem.low) for one in scores]
    return f"{statistics.fmean(shares):.3f} ± {statistics.stdev(shares):.3f}"


def _score(case: Case, seed: int) -> float:
    budget = case.budget
    return score(
        case.ours.name,
        case.ours.arguments,
        case.problem,
        seed,
        workers=budget.workers,
        pieces=budget.pieces,
        horizon=budget.horizon,
        lookahead=budget.lookahead,
    )


def _answers(environment: str, seeds: list[int]) -> tuple[str, list[list[float]]] | PeerFailed:
    """A peer's version, and its scores in the order of the cases that it is in."""
    jobs = [
        {
            "algorithm": case.theirs.algorithm,
            "arguments": dict(case.theirs.arguments),
            "problem": case.problem,
            "seeds": seeds,
            "workers": case.budget.workers,
            "pieces": case.budget.pieces,
            "horizon": case.budget.horizon,
        }
        for case in CASES
        if case.theirs.environment == environment
    ]
    try:
        told = answer(environment, SCRIPTS[environment][1], [json.dumps(jobs)], LIMIT_S)
    except PeerFailed as failed:
        return failed
    return told["version"], told["scores"]
