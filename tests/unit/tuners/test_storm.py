"""Every built-in tuner: 200 trials that end in any order, a tenth of them failing, and a restart.

None hangs, none inherits from a trial that failed (the storm checks each proposal), and one that
was restored in between proposes to the letter what the other does.
"""

from __future__ import annotations

import pytest

from tests.support.lengths import first
from tests.unit.tuners.storm import Storm
from tuners import builtin, make_builtin

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
    "units": {"_type": "randint", "_value": [8, 64]},
    "depth": {"_type": "quniform", "_value": [1, 9, 1]},
}
BLOCKS = [{"width": 4, "kernel": 3}, {"width": 4, "kernel": 3}]

#: For those that cannot search any space.
SPACES = {"SPOS": {f"block {n}": {"_type": "randint", "_value": [0, 4]} for n in range(6)}}

CASES = {
    "Random": ("Random", {}),
    "GridSearch": ("GridSearch", {}),
    "RegularizedEvolution": ("RegularizedEvolution", {"population_size": 12, "sample_size": 4}),
    "in order": (
        "RegularizedEvolution",
        {"population_size": 12, "sample_size": 4, "asynchronous": False},
    ),
    "MorphingEvolution": (
        "MorphingEvolution",
        {"blocks": BLOCKS, "population_size": 12, "asynchronous": False},
    ),
    "crossover": (
        "MorphingEvolution",
        {"blocks": BLOCKS, "population_size": 12, "asynchronous": False, "crossover": 0.5},
    ),
    "NetworkMorphism": ("NetworkMorphism", {"blocks": BLOCKS, "neighbours": 6}),
    "PBT": ("PBT", {"population_size": 9}),
    "PBT by tournament": ("PBT", {"population_size": 9, "exploit": "tournament"}),
    "PBT in generations": ("PBT", {"population_size": 9, "asynchronous": False}),
    "Hyperband": ("Hyperband", {"max_budget": 27}),
    "successive halving": ("Hyperband", {"max_budget": 27, "bracket": 2}),
    "BOHB": ("BOHB", {"max_budget": 27}),
    "ASHA": ("ASHA", {"max_budget": 64}),
    "ENAS": (
        "ENAS",
        {"operations": ["a", "b"], "layers": 2, "hidden": 4, "samples": 1, "learning_rate": 0.01},
    ),
    "SPOS": ("SPOS", {"population_size": 16, "top": 4}),
    "Optuna": ("Optuna", {"sampler": "RandomSampler"}),
    "TPE": ("TPE", {"n_ei_candidates": 4}),
    "TPE that forgets": ("TPE", {"n_ei_candidates": 4, "history": 48}),
    "CMA-ES": ("CMA-ES", {"history": 48}),
    "GP": ("GP", {"n_startup_trials": 170}),  # a fit costs too much to make a hundred
    "QMC": ("QMC", {"history": 48}),
    "NSGA-II": ("NSGA-II", {"population_size": 12, "history": 48}),
    "NSGA-III": ("NSGA-III", {"population_size": 12, "history": 48}),
}

#: Here the place of a founder that failed goes to whichever waiting request wakes first.
RACING = {"RegularizedEvolution"}


def make(case, more=()):
    name, arguments = CASES[case]
    arguments = {**arguments, **dict(more)}
    tuner = make_builtin(name, {**arguments} if name == "GridSearch" else {**arguments, "seed": 5})
    tuner.update_search_space(SPACES.get(name, SPACE))
    return tuner


def test_no_tuner_is_left_out():
    # Schedule ends with the first trial that fails, and has tests of its own.
    assert {name for name, _ in CASES.values()} == set(builtin.BUILTIN_NAMES) - {"Schedule"}


@pytest.mark.parametrize("case", first(8, CASES))
def test_a_storm_with_and_without_a_restart(case):
    calm = Storm(lambda: make(case))
    proposals = calm.blow()
    assert len(proposals) + len(calm.abandoned) == 200
    assert len(proposals) > 180
    paths = [one["save_path"] for one in proposals.values() if "save_path" in one]
    assert len(set(paths)) == len(paths)
    restarted = Storm(lambda: make(case), restart_at=90, stale=12)
    again = restarted.blow()
    assert len(again) + len(restarted.abandoned) == 200
    if case not in RACING:
        assert again == proposals
