"""Syne Tune's local backend: a fresh process for each empty trial, two at once.

Counted: the time between the ends of trials, as Syne Tune's callback tells them, from after
the warm-up to the last. The trial is written as Syne Tune's documentation does it: it imports
the ``Reporter`` and reports one number, as ours imports ``trial_runtime`` and reports one.
What a trial costs that imports nothing and prints the reporter's line by itself is measured
as well and told beside the figure. In Syne Tune's favour: the loop's pause between polls is a
millisecond rather than the default of five seconds, no results table is kept, and the tuner
is not saved.
"""

from __future__ import annotations

import logging
import sys
import time
from pathlib import Path

from steady import Steady, say, steady

WORKERS = 2
POLL_S = 0.001
REPORTING = """from syne_tune import Reporter

Reporter()(loss=1.0)
"""
PRINTING = """print(
    '[tune-metric]: {"loss": 1.0, "st_worker_timestamp": 0.0, "st_worker_time": 0.0,'
    ' "st_worker_iter": 0}'
)
"""


def ends_of(trials: int, script: Path) -> list[float]:
    """Run them and return when each was over."""
    from syne_tune import StoppingCriterion, Tuner
    from syne_tune.backend import LocalBackend
    from syne_tune.config_space import uniform
    from syne_tune.optimizer.baselines import RandomSearch
    from syne_tune.tuner_callback import TunerCallback

    class Clock(TunerCallback):  # type: ignore[misc]
        def __init__(self) -> None:
            self.ends: list[float] = []

        def on_trial_complete(self, trial: object, result: object) -> None:
            self.ends.append(time.perf_counter())

    clock = Clock()
    Tuner(
        trial_backend=LocalBackend(entry_point=str(script)),
        scheduler=RandomSearch({"x": uniform(0.0, 1.0)}, metrics=["loss"], random_seed=0),
        stop_criterion=StoppingCriterion(max_num_trials_completed=trials),
        n_workers=WORKERS,
        sleep_time=POLL_S,
        callbacks=[clock],
        save_tuner=False,
        print_update_interval=1e9,
        results_update_interval=1e9,
    ).run()
    return clock.ends


def rate(trials: int, name: str, source: str) -> Steady:
    """One tuning run with this trial script."""
    script = Path.cwd() / f"{name}.py"
    script.write_text(source)
    return steady("Syne Tune local backend", "syne-tune", ends_of(trials, script), workers=WORKERS)


def main() -> None:
    """``syne_tune_local.py TRIALS [TRIALS_THAT_IMPORT_NOTHING]``."""
    logging.disable(logging.WARNING)
    reporting = rate(int(sys.argv[1]), "reporting", REPORTING)
    printing = rate(int(sys.argv[-1]), "printing", PRINTING)
    detail = (
        "each trial imports Syne Tune's Reporter, 1 ms between polls; "
        f"when it imports nothing: {printing['per_second']:.1f}/s"
    )
    say({**reporting, "detail": detail})


if __name__ == "__main__":
    main()
