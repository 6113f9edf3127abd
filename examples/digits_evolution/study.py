"""Measures what inheritance is worth: sweep, baseline, evolution with and without it.

``python study.py`` runs every trial in this process, one after another on one core; with
``--dispatch`` each search is an experiment of bequeath, two trials at a time. Writes
``results.json`` and the table ``results.md``. See README.md for what the columns mean.
"""

from __future__ import annotations

import argparse
import json
import platform
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import report
import trial
import tuner

from trial_runtime import weights
from tuners import NoMoreTrialError, Tuner
from tuners.testing import with_gate

HERE = Path(__file__).resolve().parent
EVOLUTION = {"population_size": 8, "sample_size": 8}


def in_process(tuner_class: type[Tuner], arguments: dict[str, Any]) -> Iterator[dict[str, float]]:
    """Runs a search in this process; yields each trial's result in order."""
    asked = with_gate(tuner_class(**arguments))  # one after another: every parent has ended
    seed = arguments["seed"] * 100_000
    with tempfile.TemporaryDirectory() as root:
        parameter_id = 0
        while True:
            try:
                parameters = asked.generate_parameters(parameter_id)
            except NoMoreTrialError:
                return
            result = trial.run(
                parameters, seed + parameter_id, *_weights_of(parameters, Path(root))
            )
            asked.receive_trial_result(parameter_id, parameters, result)
            asked.trial_end(parameter_id, True)
            yield result
            parameter_id += 1


def _weights_of(parameters: dict[str, Any], root: Path) -> tuple[Any, Any]:
    def load() -> Any:
        source = parameters.get("restore_path")
        return weights.load(root / source, root=str(root)) if source else None

    def save(state: Any) -> None:
        weights.save(state, root / parameters["save_path"], root=str(root))

    return load, save


def dispatched(tuner_class: type[Tuner], arguments: dict[str, Any]) -> Iterator[dict[str, float]]:
    """Runs a search as an experiment of bequeath; yields results in the order of their ends."""
    from dispatcher import Experiment

    with tempfile.TemporaryDirectory() as folder:
        experiment = Experiment(
            {
                "experimentName": "digits-study",
                "experimentWorkingDirectory": folder,
                "trialFunction": "trial:train",
                "trialCodeDirectory": str(HERE),
                "tuner": {
                    "className": f"tuner:{tuner_class.__name__}",
                    "codeDirectory": str(HERE),
                    "classArgs": arguments,
                },
                "optimizeMode": "maximize",
                "seed": arguments["seed"],
                "trialConcurrency": 2,
                "trainingService": {
                    "platform": "local",
                    "reuseMode": "forked",
                    "preload": ["torch", "torch._dynamo", "sklearn.datasets"],
                },
            }
        )
        experiment.run(quiet=True)
        ended = [one for one in experiment.trials() if isinstance(one.result, dict)]
        for one in sorted(ended, key=lambda one: one.ended_at or 0.0):
            yield one.result


def search(runner: Any, tuner_class: type[Tuner], **arguments: Any) -> report.Search:
    """Runs one search and keeps, trial by trial, core-seconds so far and the best so far."""
    spent, best, test, path = 0.0, 0.0, 0.0, []
    for result in runner(tuner_class, arguments):
        spent += result["core_s"]
        if result["default"] > best:
            best, test = result["default"], result["test"]
        path.append((round(spent, 3), round(best, 4), round(test, 4)))
    return report.Search(arguments["seed"], path)


class Study:
    """The searches made so far; written down after each, so that a study cut short is not lost."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.runner = dispatched if options.dispatch else in_process
        self.sweep: dict[int, list[report.Search]] = {epochs: [] for epochs in options.epochs}
        self.inheriting: list[report.Search] = []
        self.from_scratch: list[report.Search] = []

    def run(self) -> None:
        """Runs all searches; seed by seed, so that a machine that slows down slows all alike.

        The first seeds are the sweep's: random search with each number of epochs. The others have
        it with the best of these only. Evolution from scratch, with as many, comes last: it
        explains the result and is not part of it.
        """
        first = self.options.first_seed
        sweeping = range(first, first + self.options.sweep_seeds)
        for seed in sweeping:
            for epochs in self.sweep:
                self.random(seed, epochs)
            self.evolve(seed)
        best = report.best_epochs(self.sweep, self.options.budget_s)
        for seed in range(sweeping.stop, first + self.options.seeds):
            self.random(seed, best)
            self.evolve(seed)
        for seed in range(first, first + self.options.seeds):
            self.evolve_from_scratch(seed, best)

    def random(self, seed: int, epochs: int) -> None:
        found = self._search(f"random, {epochs} epochs", seed, tuner.DigitsRandom, epochs=epochs)
        self._keep(self.sweep[epochs], found)

    def evolve(self, seed: int) -> None:
        found = self._search("evolution, inheriting", seed, tuner.DigitsEvolution, **EVOLUTION)
        self._keep(self.inheriting, found)

    def evolve_from_scratch(self, seed: int, epochs: int) -> None:
        scratch = {"inherit": False, "founder_epochs": epochs, "child_epochs": epochs, **EVOLUTION}
        found = self._search("evolution, from scratch", seed, tuner.DigitsEvolution, **scratch)
        self._keep(self.from_scratch, found)

    def results(self) -> dict[str, Any]:
        """What ``report.markdown`` reads."""
        budget, swept = self.options.budget_s, self.options.sweep_seeds
        first = {epochs: searches[:swept] for epochs, searches in self.sweep.items()}
        return {
            "budget_s": budget,
            "runner": self.runner.__name__,
            "machine": f"{platform.machine()}, Python {platform.python_version()}",
            "sweep_seeds": swept,
            "sweep": {str(epochs): _paths(searches) for epochs, searches in self.sweep.items()},
            "best_epochs": report.best_epochs(first, budget) if all(first.values()) else None,
            "inheriting": _paths(self.inheriting),
            "from_scratch": _paths(self.from_scratch),
        }

    def _search(self, name: str, seed: int, kind: type[Tuner], **arguments: Any) -> report.Search:
        budget_s = self.options.budget_s
        found = search(self.runner, kind, seed=seed, budget_s=budget_s, **arguments)
        print(f"{name}, seed {seed}: {report.brief(found)}", flush=True)
        return found

    def _keep(self, searches: list[report.Search], found: report.Search) -> None:
        searches.append(found)
        (self.options.out / "results.json").write_text(json.dumps(self.results()) + "\n")


def _paths(searches: list[report.Search]) -> list[report.Path]:
    return [one.path for one in searches]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=24)
    parser.add_argument("--sweep-seeds", type=int, default=5, help="how many of them sweep epochs")
    parser.add_argument("--first-seed", type=int, default=400, help="lower ones served for tuning")
    parser.add_argument("--budget-s", type=float, default=40.0, help="core-seconds a search")
    parser.add_argument("--epochs", type=int, nargs="+", default=[240, 480, 960, 1920])
    parser.add_argument("--dispatch", action="store_true", help="run as experiments of bequeath")
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    study = Study(options)
    study.run()
    table = report.markdown(study.results())
    (options.out / "results.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
