"""An architecture search by Ray Tune: ASHA, which its documentation recommends to begin with.

Networks are drawn at random and trained from scratch; bad ones are stopped early. Its own defaults
but for the number of lessons; ``reuse_actors`` as for population based training.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import ray_tune  # beside other peers' scripts
from ray import tune
from ray.tune.schedulers import ASHAScheduler

from benchmarks.races import clock, grown


class Network(tune.Trainable):  # type: ignore[misc]
    """A network; each step is a lesson."""

    def setup(self, config: dict[str, Any]) -> None:
        self.weights: Any = None

    def step(self) -> dict[str, Any]:
        number = int(self.trial_id.split("_")[-1])
        self.weights, accuracy = grown.lesson(self.config, self.weights, number, self.iteration)
        return {"accuracy": accuracy}

    def save_checkpoint(self, folder: str) -> None:
        np.savez(Path(folder) / "network.npz", **self.weights)

    def load_checkpoint(self, folder: str) -> None:
        with np.load(Path(folder) / "network.npz") as kept:
            self.weights = dict(kept)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.config, self.weights = new_config, None
        return True


class Listener(tune.Callback):  # type: ignore[misc]
    """Hears each result."""

    def on_trial_result(
        self, iteration: int, trials: Any, trial: Any, result: Any, **_: Any
    ) -> None:
        clock.hear(result["accuracy"], grown.TARGET)


def main() -> None:
    """Search until it is ended, or the target is reached."""
    ray_tune.leave_the_network()
    os.environ.update(ray_tune.SETTINGS)
    random.seed(clock.seed())  # Ray draws from the global generators
    np.random.seed(clock.seed())
    with ray_tune.cluster(Path.cwd()):
        tune.Tuner(
            Network,
            param_space={
                name: tune.randint(*one["_value"])
                if one["_type"] == "randint"
                else tune.choice(one["_value"])
                for name, one in grown.SPACE.items()
            },
            tune_config=tune.TuneConfig(
                metric="accuracy",
                mode="max",
                num_samples=-1,
                max_concurrent_trials=grown.WORKERS,
                reuse_actors=True,
                scheduler=ASHAScheduler(time_attr="training_iteration", max_t=grown.LESSONS),
            ),
            run_config=tune.RunConfig(
                storage_path=str(Path.cwd() / "results"),
                stop={"accuracy": grown.TARGET},
                callbacks=[Listener()],
                verbose=0,
                checkpoint_config=tune.CheckpointConfig(checkpoint_at_end=False),
            ),
        ).fit()


if __name__ == "__main__":
    main()
