"""Population based training by bequeath, in two workers that stay, as Ray Tune's do."""

from __future__ import annotations

from typing import Any

import bequeath as bq
from benchmarks.races import clock, member


def trial(parameters: dict[str, Any]) -> float:
    """A generation of a member."""
    kept = bq.load_weights()
    state = None if kept is None else (kept["weights"], kept["speeds"])
    state, accuracy = member.generation(parameters, state, bq.trial_id())
    bq.save_weights({"weights": state[0], "speeds": state[1]})
    return accuracy


def main() -> None:
    """Search until it is ended, or the target is reached."""
    bq.Experiment(
        trial=trial,
        tuner="PBT",
        tuner_args={
            "population_size": member.POPULATION,
            "fraction": member.FRACTION,
            "resample_probability": member.RESAMPLED,
            "seed": clock.seed(),
        },
        search_space={
            name: (bq.loguniform if log else bq.uniform)(low, high)
            for name, (log, low, high) in member.SPACE.items()
        },
        seed=clock.seed(),
        trial_concurrency=member.WORKERS,
        max_trial_number=10_000,
        stop_when={"target": member.TARGET},
        training_service={"platform": "local", "reuse_mode": "inProcess"},
    ).run(quiet=True, on_new_best=lambda best: clock.hear(best.value or 0.0, member.TARGET))


if __name__ == "__main__":
    main()
