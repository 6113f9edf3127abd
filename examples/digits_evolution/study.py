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
import tuner as tuners_here

from trial_runtime import weights
from tuners import NoMoreTrialError, Tuner

HERE = Path(__file__).resolve().parent
EVOLUTION = {"population_size": 10, "sample_size": 5}


class EndedGate:
    """The gate of a search whose trials run one after another: every parent has ended."""

    def wait(self, parents: tuple[int, ...], mode: str, timeout: float | None) -> list[int]:
        return list(parents)


def in_process(tuner_class: type[Tuner], arguments: dict[str, Any]) -> Iterator[dict[str, float]]:
    """Runs a search in this process; yields each trial's result in order."""
    tuner = tuner_class(**arguments)
    tuner._bequeath_gate = EndedGate()
    seed = arguments["seed"] * 100_000
    with tempfile.TemporaryDirectory() as root:
        parameter_id = 0
        while True:
            try:
                parameters = tuner.generate_parameters(parameter_id)
            except NoMoreTrialError:
                return
            result = trial.run(
                parameters, seed + parameter_id, *_weights_of(parameters, Path(root))
            )
            tuner.receive_trial_result(parameter_id, parameters, result)
            tuner.trial_end(parameter_id, True)
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


def study(options: argparse.Namespace) -> dict[str, Any]:
    """Runs all searches; seed by seed, so that a machine that slows down slows all kinds alike."""
    runner = dispatched if options.dispatch else in_process
    sweep: dict[int, list[report.Search]] = {epochs: [] for epochs in options.epochs}
    inheriting, from_scratch = [], []

    def found(name: str, seed: int, tuner_class: type[Tuner], **arguments: Any) -> report.Search:
        result = search(runner, tuner_class, seed=seed, budget_s=options.budget_s, **arguments)
        print(f"{name}, seed {seed}: {report.brief(result)}", flush=True)
        return result

    seeds = range(options.first_seed, options.first_seed + options.seeds)
    evolve = tuners_here.DigitsEvolution
    for seed in seeds:
        for epochs, searches in sweep.items():
            name = f"random, {epochs} epochs"
            searches.append(found(name, seed, tuners_here.DigitsRandom, epochs=epochs))
        inheriting.append(found("evolution, inheriting", seed, evolve, **EVOLUTION))
    best = report.best_epochs(sweep, options.budget_s)
    scratch = {"inherit": False, "founder_epochs": best, "child_epochs": best, **EVOLUTION}
    for seed in seeds:
        from_scratch.append(found("evolution, from scratch", seed, evolve, **scratch))
    return {
        "budget_s": options.budget_s,
        "runner": runner.__name__,
        "machine": f"{platform.machine()}, Python {platform.python_version()}",
        "sweep": {str(epochs): [one.path for one in all_] for epochs, all_ in sweep.items()},
        "best_epochs": best,
        "inheriting": [one.path for one in inheriting],
        "from_scratch": [one.path for one in from_scratch],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=8)
    parser.add_argument("--first-seed", type=int, default=200, help="lower ones served for tuning")
    parser.add_argument("--budget-s", type=float, default=20.0, help="core-seconds a search")
    parser.add_argument("--epochs", type=int, nargs="+", default=[60, 120, 240, 480])
    parser.add_argument("--dispatch", action="store_true", help="run as experiments of bequeath")
    parser.add_argument("--out", type=Path, default=HERE)
    options = parser.parse_args()
    results = study(options)
    (options.out / "results.json").write_text(json.dumps(results) + "\n")
    table = report.markdown(results)
    (options.out / "results.md").write_text(table)
    print(table)


if __name__ == "__main__":
    main()
