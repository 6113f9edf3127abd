"""Population based training by Ray Tune, as its own example with a class has it.

That example pauses members when there are more of them than workers, takes ``reuse_actors``, a
checkpoint at each perturbation, and keeps four. In Ray's favour: a step is a whole interval, so
that nothing is reported in between; no dashboard; nothing is printed.
"""

from __future__ import annotations

import os
import random
from pathlib import Path
from typing import Any

import numpy as np
import ray_tune  # beside other peers' scripts
from ray import tune
from ray.tune.schedulers import PopulationBasedTraining

from benchmarks.races import clock, member


class Member(tune.Trainable):  # type: ignore[misc]
    """A member; each step is a generation."""

    def setup(self, config: dict[str, Any]) -> None:
        self.state: Any = None

    def step(self) -> dict[str, Any]:
        number = int(self.trial_id.split("_")[-1])
        self.state, accuracy = member.generation(self.config, self.state, number, self.iteration)
        return {"accuracy": accuracy}

    def save_checkpoint(self, folder: str) -> None:
        member.write(self.state, folder)

    def load_checkpoint(self, folder: str) -> None:
        self.state = member.read(folder)

    def reset_config(self, new_config: dict[str, Any]) -> bool:
        self.config, self.state = new_config, None
        return True


class Listener(tune.Callback):  # type: ignore[misc]
    """Hears each result."""

    def on_trial_result(
        self, iteration: int, trials: Any, trial: Any, result: Any, **_: Any
    ) -> None:
        clock.hear(result["accuracy"], member.TARGET)


def main() -> None:
    """Search until it is ended, or the target is reached."""
    ray_tune.leave_the_network()
    os.environ.update(ray_tune.SETTINGS)
    random.seed(clock.seed())  # Ray draws from the global generators
    np.random.seed(clock.seed())
    space = {
        name: (tune.loguniform if log else tune.uniform)(low, high)
        for name, (log, low, high) in member.SPACE.items()
    }
    with ray_tune.cluster(Path.cwd()):
        tune.Tuner(
            Member,
            param_space=space,
            tune_config=tune.TuneConfig(
                metric="accuracy",
                mode="max",
                num_samples=member.POPULATION,
                reuse_actors=True,
                scheduler=PopulationBasedTraining(
                    time_attr="training_iteration",
                    perturbation_interval=1,
                    quantile_fraction=member.FRACTION,
                    resample_probability=member.RESAMPLED,
                    hyperparam_mutations=space,
                ),
            ),
            run_config=tune.RunConfig(
                storage_path=str(Path.cwd() / "results"),
                stop={"accuracy": member.TARGET},
                callbacks=[Listener()],
                verbose=0,
                checkpoint_config=tune.CheckpointConfig(checkpoint_frequency=1, num_to_keep=4),
            ),
        ).fit()


if __name__ == "__main__":
    main()
