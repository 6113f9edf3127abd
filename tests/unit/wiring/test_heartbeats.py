"""How often agents speak to a head that has many of them."""

from __future__ import annotations

import pytest

from dispatcher.experiment import build_experiment
from dispatcher.wiring.agents import MOST_BEATS, heartbeat_of
from dispatcher.wiring.settings import worker_count


@pytest.mark.parametrize(
    "workers, alive, period_s",
    [(4, "5s", 1.0), (4, "0.5s", 0.5), (250, "5s", 1.0), (1_000, "5s", 4.0), (4_000, "5s", 5.0)],
)
def test_a_crowd_speaks_as_often_as_one_head_can_bear(
    workers: int, alive: str, period_s: float
) -> None:
    """And within what the file allows. Mutation: a thousand agents take a quarter of a core."""
    config = build_experiment(
        {
            "tuner": {"name": "Random"},
            "searchSpace": {"lr": {"_type": "choice", "_value": [1]}},
            "trialCommand": "true",
            "trialConcurrency": workers,
            "leases": {"alive": alive},
            "trainingService": {"platform": "ray", "slots": 1, "allocations": workers},
        }
    )
    assert worker_count(config) == workers
    assert heartbeat_of(config) == period_s
    assert period_s == 5.0 or workers / heartbeat_of(config) <= MOST_BEATS
