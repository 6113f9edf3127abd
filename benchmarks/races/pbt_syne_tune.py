"""Population based training by Syne Tune's local backend, as its own example has it.

It does not pause members, so that example has a worker for each: here eight processes share the
machine. A member that is replaced is a new process, which begins with a copy of another's
checkpoint. In Syne Tune's favour: a tenth of a second between polls instead of five, a report
for each interval only, no results table, and the tuner is not saved.
"""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

from syne_tune import StoppingCriterion, Tuner
from syne_tune.backend import LocalBackend
from syne_tune.config_space import loguniform, uniform
from syne_tune.optimizer.schedulers import PopulationBasedTraining
from syne_tune.tuner_callback import TunerCallback

from benchmarks.races import clock, member

ENDLESS = 1_000_000


class Listener(TunerCallback):  # type: ignore[misc]
    """Hears each result."""

    def on_trial_result(self, *_: Any, result: dict[str, Any], **__: Any) -> None:
        clock.hear(result["accuracy"], member.TARGET)


def main() -> None:
    """Search until it is ended, or the target is reached."""
    logging.disable(logging.WARNING)
    scheduler = PopulationBasedTraining(
        {
            name: (loguniform if log else uniform)(low, high)
            for name, (log, low, high) in member.SPACE.items()
        },
        metric="accuracy",
        time_attr="generation",
        do_minimize=False,
        population_size=member.POPULATION,
        perturbation_interval=1,
        quantile_fraction=member.FRACTION,
        resample_probability=member.RESAMPLED,
        max_t=ENDLESS,
        random_seed=clock.seed(),
    )
    Tuner(
        trial_backend=LocalBackend(
            entry_point=str(Path(__file__).with_name("pbt_syne_tune_trial.py"))
        ),
        scheduler=scheduler,
        stop_criterion=StoppingCriterion(max_metric_value={"accuracy": member.TARGET}),
        n_workers=member.POPULATION,
        sleep_time=0.1,
        callbacks=[Listener()],
        save_tuner=False,
        print_update_interval=1e9,
        results_update_interval=1e9,
    ).run()


if __name__ == "__main__":
    main()
