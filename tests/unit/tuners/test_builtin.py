"""Random and grid search, and finding tuners by name."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tuners import (
    ASHATuner,
    GridSearchTuner,
    HyperbandTuner,
    MorphingEvolutionTuner,
    NetworkMorphismTuner,
    NoMoreTrialError,
    PBTTuner,
    RandomTuner,
    RegularizedEvolutionTuner,
    ScheduleTuner,
    Tuner,
    TunerArgumentError,
    builtin_tuner,
    make_builtin,
)
from tuners.builtin import check_class_args

SPACE = {
    "a": {"_type": "choice", "_value": [1, 2, 3]},
    "b": {"_type": "randint", "_value": [0, 2]},
}
IN_ORDER = [{"a": a, "b": b} for a in (1, 2, 3) for b in (0, 1)]
#: Of six points every fifth: the nearest number to 6 times the golden ratio that shares no divisor.
POINTS = [IN_ORDER[n] for n in (0, 5, 4, 3, 2, 1)]


def test_random_search_depends_on_seed_and_id_alone():
    one, other = RandomTuner(seed=3), RandomTuner(seed=3)
    for tuner in (one, other):
        tuner.update_search_space(SPACE)
    forwards = [one.generate_parameters(n) for n in range(20)]
    backwards = [other.generate_parameters(n) for n in reversed(range(20))]
    assert forwards == backwards[::-1]
    assert len({json.dumps(parameters) for parameters in forwards}) == 6
    one.receive_trial_result(0, forwards[0], 1.0)


def test_a_fresh_seed_is_kept_in_the_state():
    one, other = RandomTuner(seed=None), RandomTuner(seed=None)
    assert one.seed != other.seed
    other.restore(json.loads(json.dumps(one.state())))
    assert other.seed == one.seed


def test_grid_search_issues_each_point_once_then_says_so():
    tuner = GridSearchTuner()
    tuner.update_search_space(SPACE)
    points = [tuner.generate_parameters(n) for n in range(6)]
    assert points == POINTS
    for n in (6, 7):
        with pytest.raises(NoMoreTrialError, match="all 6 points"):
            tuner.generate_parameters(n)


def test_a_restored_grid_goes_on_where_it_was():
    one, other = GridSearchTuner(), GridSearchTuner()
    for tuner in (one, other):
        tuner.update_search_space(SPACE)
    [one.generate_parameters(n) for n in range(4)]
    other.restore(json.loads(json.dumps(one.state())))
    assert other.generate_parameters(4) == one.generate_parameters(4) == POINTS[4]


def test_a_request_has_its_own_point_of_the_grid_whoever_is_faster():
    tuner = GridSearchTuner()
    tuner.update_search_space(SPACE)
    order = [1, 0, 3, 5, 4]  # 2 was a trial by hand
    answers = {n: tuner.generate_parameters(n) for n in order}
    assert answers == {n: POINTS[n] for n in order}
    assert tuner.generate_parameters(6) == POINTS[2]
    with pytest.raises(NoMoreTrialError, match="all 6 points"):
        tuner.generate_parameters(7)


def test_a_restored_grid_knows_what_was_left_out_and_what_was_proposed_since():
    one, other = GridSearchTuner(), GridSearchTuner()
    for tuner in (one, other):
        tuner.update_search_space(SPACE)
    for n in (0, 3):
        one.generate_parameters(n)
    other.restore(json.loads(json.dumps(one.state())))
    other.restore_proposal(4, one.generate_parameters(4))
    for n in (2, 1, 5):
        assert other.generate_parameters(n) == one.generate_parameters(n)


@pytest.mark.parametrize("kept", [{"issued": 4}, {"first": 0, "next": 4, "left": []}])
def test_a_grid_of_an_older_version_goes_on_in_its_order(kept):
    older = GridSearchTuner()
    older.update_search_space(SPACE)
    older.restore(kept)
    assert older.generate_parameters(4) == IN_ORDER[4]
    again = GridSearchTuner()
    again.update_search_space(SPACE)
    again.restore(json.loads(json.dumps(older.state())))
    assert again.generate_parameters(5) == IN_ORDER[5]


def test_a_changed_space_starts_the_grid_anew_and_the_same_one_does_not():
    tuner = GridSearchTuner()
    tuner.update_search_space(SPACE)
    tuner.generate_parameters(0)
    tuner.update_search_space(SPACE)
    assert tuner.generate_parameters(1) == POINTS[1]
    tuner.update_search_space({"c": {"_type": "choice", "_value": ["x"]}})
    assert tuner.generate_parameters(2) == {"c": "x"}


@pytest.mark.parametrize(
    "name, tuner",
    [
        ("Random", RandomTuner),
        ("gridsearch", GridSearchTuner),
        ("asha", ASHATuner),
        ("Hyperband", HyperbandTuner),
        ("networkmorphism", NetworkMorphismTuner),
        ("MorphingEvolutionTuner", MorphingEvolutionTuner),
        ("PBT", PBTTuner),
        ("schedule", ScheduleTuner),
        ("RegularizedEvolution", RegularizedEvolutionTuner),
        ("RegularizedEvolutionTuner", RegularizedEvolutionTuner),
    ],
)
def test_names_are_found_whatever_their_case(name, tuner):
    assert builtin_tuner(name) is tuner
    needed = {
        NetworkMorphismTuner: {"blocks": [{"width": 8}]},
        MorphingEvolutionTuner: {"blocks": [{"width": 8}]},
        ScheduleTuner: {"schedule": [{"lr": 0.1}]},
    }
    assert isinstance(make_builtin(name, needed.get(tuner)), Tuner)


def test_an_unknown_name_gets_the_nearest_or_all():
    with pytest.raises(TunerArgumentError, match="Did you mean 'RegularizedEvolution'"):
        builtin_tuner("RegularisedEvolution")
    with pytest.raises(
        TunerArgumentError,
        match=r"Random, GridSearch, .*, RegularizedEvolution, SPOS, Schedule, Optuna, TPE, .*NSGA",
    ):
        builtin_tuner("Alchemy")


def test_class_arguments_are_checked_by_name():
    with pytest.raises(TunerArgumentError, match="Did you mean 'population_size'"):
        make_builtin("RegularizedEvolution", {"populatonSize": 3})
    spelled = make_builtin("RegularizedEvolution", {"populationSize": 30})
    assert spelled.population_size == 30  # as other keys of a file are written
    with pytest.raises(TunerArgumentError, match="It takes: none"):
        make_builtin("GridSearch", {"anything": 1})
    with pytest.raises(TunerArgumentError, match="optimize_mode"):
        make_builtin("Random", {"optimize_mode": "best"})


def test_class_arguments_that_are_missing_or_swallowed():
    class Needs(Tuner):
        def __init__(self, budget):
            self.budget = budget

    class Swallows(Tuner):
        def __init__(self, **anything):
            self.anything = anything

    with pytest.raises(TunerArgumentError, match="needs the argument 'budget'"):
        check_class_args(Needs, {})
    check_class_args(Swallows, {"whatever": 1})


def test_importing_the_package_loads_no_numpy():
    script = "import sys, tuners, tuners.builtin; sys.exit('numpy' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", script], check=False).returncode == 0
