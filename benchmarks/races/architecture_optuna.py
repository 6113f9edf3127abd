"""An architecture search by Optuna: TPE with Hyperband, the pair that its documentation recommends.

Networks are trained from scratch; bad ones are pruned. Two processes share a journal file, as its
documentation has it for one machine; ``constant_liar`` is its advice for more than one worker. In
Optuna's favour: a result counts as known in the process that reports it.
"""

from __future__ import annotations

import multiprocessing
from pathlib import Path

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from benchmarks.races import clock, grown

NAME = "race"


def objective(trial: optuna.Trial) -> float:
    """A network, lesson by lesson."""
    parameters = {
        name: trial.suggest_int(name, one["_value"][0], one["_value"][1] - 1)
        if one["_type"] == "randint"
        else trial.suggest_categorical(name, one["_value"])
        for name, one in grown.SPACE.items()
    }
    weights, accuracy = None, 0.0
    for number in range(1, grown.LESSONS + 1):
        weights, accuracy = grown.lesson(parameters, weights, trial.number, number)
        trial.report(accuracy, number)
        clock.hear(accuracy, grown.TARGET)
        if trial.should_prune():
            raise optuna.TrialPruned
    return accuracy


def storage() -> JournalStorage:
    """The journal that both processes append to."""
    return JournalStorage(JournalFileBackend(str(Path.cwd() / "journal.log")))


def work(number: int) -> None:
    """What each process does until it is ended."""
    optuna.logging.set_verbosity(optuna.logging.ERROR)
    study = optuna.create_study(
        study_name=NAME,
        storage=storage(),
        direction="maximize",
        load_if_exists=True,
        sampler=optuna.samplers.TPESampler(seed=2 * clock.seed() + number, constant_liar=True),
        pruner=optuna.pruners.HyperbandPruner(min_resource=1, max_resource=grown.LESSONS),
    )
    study.optimize(objective)


def main() -> None:
    """Search until it is ended."""
    with multiprocessing.Pool(grown.WORKERS) as pool:
        pool.map(work, range(grown.WORKERS))


if __name__ == "__main__":
    main()
