"""An architecture search with inheritance by bequeath: networks that grow, in two workers."""

from __future__ import annotations

from typing import Any

import numpy as np

import bequeath as bq
from benchmarks.races import clock, grown
from benchmarks.tuner_nas import chains
from trial_runtime.morphism import chain

#: Of the copies that a wider block gets: equal ones would stay equal for ever.
PARTING = 0.05

#: Those of ``benchmarks.tuner_nas.contestants``, chosen long before this race.
MORPHING = {
    "blocks": [{"width": 32, "kernel": 0}, {"width": 32, "kernel": 0}],
    "operations": ["wider", "deeper", "skip"],
    "max_blocks": chains.MOST_BLOCKS,
    "max_width": max(chains.WIDTHS),
    "population_size": 8,
    "sample_size": 8,
    "steps": 3,
}


def trial(parameters: dict[str, Any]) -> float:
    """A lesson of a network that has its parent's weights."""
    weights = bq.load_weights()
    if weights is not None:
        morphed = chain.inherit(
            weights, parameters["inherited"], parameters["steps"], seed=bq.seed(), noise=PARTING
        )
        weights = {name: np.array(one) for name, one in morphed.items()}
    weights, accuracy = grown.lesson(parameters, weights, bq.trial_id())
    bq.save_weights(weights)
    return accuracy


def main() -> None:
    """Search until it is ended, or the target is reached."""
    bq.Experiment(
        trial=trial,
        tuner="MorphingEvolution",
        tuner_args={**MORPHING, "seed": clock.seed()},
        seed=clock.seed(),
        trial_concurrency=grown.WORKERS,
        max_trial_number=10_000,
        stop_when={"target": grown.TARGET},
        training_service={"platform": "local", "reuse_mode": "inProcess"},
    ).run(quiet=True, on_new_best=lambda best: clock.hear(best.value or 0.0, grown.TARGET))


if __name__ == "__main__":
    main()
