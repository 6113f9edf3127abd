"""Ray Tune's schedulers, led by a controller that has workers in virtual time only.

``tuners_ray.py JOBS``: JOBS is JSON, see ``answers.py``. ``algorithm`` is ``ASHAScheduler``,
``HyperBandScheduler`` or ``PopulationBasedTraining``. The scheduler is Ray's own; of Ray's
controller it gets what it asks for: the trials with their status and configuration, a way to
pause, stop and save one. No cluster is started: it would add nothing to a decision but its time.
"""

from __future__ import annotations

import logging
import random
from collections import deque
from types import SimpleNamespace
from typing import Any

import numpy as np
from answers import Job, say_scores
from ray import tune
from ray.tune import schedulers
from ray.tune.experiment import Trial
from surrogates import PROBLEMS, Best, Curves, Population, Space
from virtual_time import Piece, lead


def domains(space: Space) -> dict[str, Any]:
    """A search space in Ray Tune's terms."""
    found: dict[str, Any] = {}
    for name, dimension in space.items():
        kind, bounds = dimension["_type"], dimension["_value"]
        found[name] = tune.choice(bounds) if kind == "choice" else getattr(tune, kind)(*bounds)
    return found


class OneTrial:
    """What a scheduler sees of a trial. ``checkpoint``: epochs trained, and the state then."""

    def __init__(self, number: int, config: dict[str, Any], start: tuple[float, ...]) -> None:
        self.trial_id = self.experiment_tag = f"{number:05}"
        self.config = config
        self.evaluated_params = dict(config)
        self.status = Trial.PENDING
        self.is_saving = False
        self.last_result: dict[str, Any] = {}
        self.epoch, self.state = 0, start
        self.temporary_state = SimpleNamespace(saving_to=None)
        manager = SimpleNamespace(
            checkpoint_config=SimpleNamespace(num_to_keep=None), _latest_checkpoint_result=None
        )
        self.run_metadata = SimpleNamespace(checkpoint_manager=manager)

    def is_finished(self) -> bool:
        return self.status in (Trial.TERMINATED, Trial.ERROR)

    def set_experiment_tag(self, tag: str) -> None:
        self.experiment_tag = tag

    def set_config(self, config: dict[str, Any]) -> None:
        self.config = config

    def resume(self) -> None:
        """Run; from a checkpoint that the scheduler has put in place meanwhile, if any."""
        self.status = Trial.RUNNING
        manager = self.run_metadata.checkpoint_manager
        if manager._latest_checkpoint_result is not None:
            self.epoch, self.state = manager._latest_checkpoint_result.checkpoint
            manager._latest_checkpoint_result = None


class Search:
    """Controller and workers. ``members``: so many trials and no more; 0: as many as it takes."""

    search_alg = None

    def __init__(self, job: Job, seed: int) -> None:
        one = PROBLEMS[job["problem"]]
        assert isinstance(one, Curves | Population)
        self.problem = one
        self.space = domains(one.space)
        arguments = dict(job["arguments"])
        self.members = arguments.pop("members", 0)
        # Hyperband's brackets take what is there: trials are added before there is a worker.
        self.ahead = arguments.pop("ahead", 0)
        own: dict[str, Any] = {"time_attr": "epoch", "metric": "value", "mode": "max"}
        if job["algorithm"] == "PopulationBasedTraining":
            own |= {"hyperparam_mutations": self.space, "log_config": False}
        self.scheduler = getattr(schedulers, job["algorithm"])(**own, **arguments)
        self.start = one.start if isinstance(one, Population) else ()
        self.trials: list[OneTrial] = []
        self.going_on: deque[OneTrial] = deque()
        self.best = Best()
        self.dice = random.Random(f"noise of seed {seed}")
        for _ in range(self.members):
            self.add()

    # ---- what schedulers ask of a controller --------------------------------------------------

    def get_trials(self) -> list[OneTrial]:
        return self.trials

    def get_live_trials(self) -> list[OneTrial]:
        return [trial for trial in self.trials if not trial.is_finished()]

    def pause_trial(self, trial: OneTrial, should_checkpoint: bool = True) -> None:
        trial.status = Trial.PAUSED

    def stop_trial(self, trial: OneTrial) -> None:
        trial.status = Trial.TERMINATED
        self.scheduler.on_trial_remove(self, trial)

    def _schedule_trial_save(self, trial: OneTrial, result: object = None) -> Any:
        return trial.epoch, trial.state

    # ---- the workers --------------------------------------------------------------------------

    def add(self) -> OneTrial:
        """One more trial, drawn from the space."""
        config = {name: domain.sample() for name, domain in self.space.items()}
        trial = OneTrial(len(self.trials), config, self.start)
        self.trials.append(trial)
        self.scheduler.on_trial_add(self, trial)
        return trial

    def next(self) -> Piece | None:
        if self.going_on:
            return Piece(1.0, self.going_on.popleft())
        chosen = self.choose()
        if chosen is None and not self.members:
            self.add()
            chosen = self.choose()
        if chosen is None:
            return None
        chosen.resume()
        return Piece(1.0, chosen)

    def choose(self) -> OneTrial | None:
        if self.ahead:
            pending = sum(trial.status == Trial.PENDING for trial in self.trials)
            for _ in range(self.ahead - pending):
                self.add()
        if isinstance(self.scheduler, schedulers.ASHAScheduler):
            # Its own choice goes through all trials so far, for the first that is pending.
            return self.trials[-1] if self.trials and self.is_new(self.trials[-1]) else None
        return self.scheduler.choose_trial_to_run(self)

    def is_new(self, trial: OneTrial) -> bool:
        return trial.status == Trial.PENDING

    def done(self, piece: Piece) -> None:
        trial: OneTrial = piece.what
        trial.epoch += 1
        seen, true = self.after_an_epoch(trial)
        self.best.take(seen, true)
        result = {"value": seen, "epoch": trial.epoch, "training_iteration": trial.epoch}
        decision = self.scheduler.on_trial_result(self, trial, result)
        trial.last_result = result
        actions = schedulers.TrialScheduler
        if decision == actions.CONTINUE:
            self.going_on.append(trial)
        elif decision == actions.PAUSE:
            trial.status = Trial.PAUSED
        elif decision == actions.STOP:
            trial.status = Trial.TERMINATED
            self.scheduler.on_trial_complete(self, trial, result)
        # NOOP: the scheduler has paused the trial itself.

    def after_an_epoch(self, trial: OneTrial) -> tuple[float, float]:
        """What is seen, and what is true."""
        one = self.problem
        if isinstance(one, Curves):
            value = one.value(trial.config, trial.epoch)
            return one.seen(trial.config, trial.epoch, self.dice), value
        trial.state = one.train(trial.state, trial.config)
        return one.seen(trial.state, self.dice), one.value(trial.state)


def score(job: Job, seed: int) -> float:
    """What a scheduler reaches; Ray draws from the global generators."""
    random.seed(seed)
    np.random.seed(seed)
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
    say_scores("ray", score)
