"""Every built-in tuner in an experiment without trials: the real engine, journal and tuner host.

200 trials that end in any order, a tenth of them failing; the tuner's process is killed on the way,
and later head and tuner. The checker, which shares no rule with the core, finds nothing.
"""

from __future__ import annotations

import json

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import Phase
from dispatcher.tuner_host import TunerHostConfig
from dispatcher.tuner_tools.rehearsal import RehearsalPlan, rehearse
from tests.support.checker import check_journal
from tests.support.lengths import every
from trial_runtime.endpoint import Endpoint
from tuners.builtin import BUILTIN_NAMES, fold
from tuners.catalogue import EXAMPLE_ARGUMENTS

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
    "units": {"_type": "randint", "_value": [8, 64]},
    "depth": {"_type": "quniform", "_value": [1, 9, 1]},
}

#: For those that cannot search any space.
SPACES = {
    "SPOS": {f"block {n}": {"_type": "randint", "_value": [0, 4]} for n in range(6)},
    "ENAS": {},
}

ARGUMENTS = {
    "PBT": {"population_size": 12},
    "Hyperband": {"max_budget": 27},
    "RegularizedEvolution": {"population_size": 12, "sample_size": 4},
    "SPOS": {"population_size": 16, "top": 4},
    "Schedule": {"schedule": [{"lr": 0.1}] * 200},
    # Samplers of Optuna forget twice on the way.
    "Optuna": {"sampler": "RandomSampler", "history": 60},
    "TPE": {"n_ei_candidates": 4, "history": 60},
    "CMA-ES": {"history": 60},
    "QMC": {"history": 60},
    "NSGA-II": {"population_size": 12, "history": 60},
    "NSGA-III": {"population_size": 12, "history": 60},
    "GP": {"n_startup_trials": 170},  # a fit takes a second
}


#: A bound on a hang, for a machine on which much else runs (seconds).
PATIENCE_S = 400.0


@pytest.mark.timeout(2 * PATIENCE_S)
@pytest.mark.parametrize("name", every(5, BUILTIN_NAMES))
def test_two_hundred_trials_and_two_deaths(name: str) -> None:
    arguments = ARGUMENTS.get(name, EXAMPLE_ARGUMENTS.get(fold(name), {}))
    config = TunerHostConfig(
        endpoint=Endpoint(""),
        weights_root="",
        builtin=name,
        class_args=arguments,
        search_space=json.dumps(SPACES.get(name, SPACE)),
        seed=3,
        snapshot_every=10,
    )
    failing = 0.0 if name == "Schedule" else 0.1  # which ends with the first that fails
    seen = rehearse(
        config,
        RehearsalPlan(failing=failing, kill_tuner_at=40, kill_head_at=110, deadline_s=PATIENCE_S),
    )
    assert seen.state.phase is Phase.COMPLETED, (seen.state.phase_reason, seen.stuck)
    assert check_journal(seen.rows, over=True) == []
    assert [one for one in seen.notes if " before the restart" not in one] == []
    launches = [row for row in seen.rows if isinstance(row.event, e.TunerHostReady)]
    assert len(launches) == 3
    proposed = [row.event for row in seen.rows if isinstance(row.event, e.Proposed)]
    assert len(proposed) > 180
    ended = [row.event for row in seen.rows if isinstance(row.event, e.AttemptEnded)]
    assert name == "Schedule" or 5 < sum(one.exit_code == 1 for one in ended) < 40
