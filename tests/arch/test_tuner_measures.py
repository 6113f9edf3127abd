"""Every tuner and assessor of the catalogue is measured by everything that they are measured by.

One that is added fails here until it is in each place. A restart to the letter is tried by
``tests/unit/tuners/test_storm.py`` and 64 requests at once by ``test_at_once.py``, which takes the
same cases; wrong arguments by ``test_every_argument.py``, 200 trials with two deaths by
``tests/integration/tuners/test_rehearsed.py``: both take the catalogue as it is.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from benchmarks import tuners as benchmark
from tests.integration.tuners import test_assessed, test_rehearsed
from tests.unit.tuners import test_at_once, test_every_argument, test_growing, test_storm
from tests.unit.tuners.assessors import test_recalling
from tuners.builtin import BUILTIN_ASSESSORS, BUILTIN_NAMES, NNI_NAMES
from tuners.catalogue import describe

TESTS = Path(__file__).parents[1] / "unit" / "tuners"

_AS_OPTUNA = ("optuna/test_as_optuna.py", "test_the_same_suggestions_in_serial_use")

#: Where each rule is tried against numbers worked out by hand, or against the original.
WORKED = {
    "Random": ("test_space.py", "test_continuous_samples_follow_their_distribution"),
    "GridSearch": ("test_builtin.py", "test_grid_search_issues_each_point_once_then_says_so"),
    "ASHA": ("test_asha.py", "test_a_worked_example_one_of_three_goes_on_at_once"),
    "BOHB": ("test_bohb.py", "test_a_density_is_that_of_its_kernels"),
    "ENAS": ("test_enas.py", "test_the_rule_by_hand"),
    "Hyperband": (
        "test_hyperband.py",
        "test_a_worked_example_the_best_third_goes_on_from_its_own_weights",
    ),
    "MorphingEvolution": ("test_morphing.py", "test_evolution_by_morphisms"),
    "NetworkMorphism": ("test_morphing.py", "test_algorithm_1_of_the_paper"),
    "PBT": ("test_pbt.py", "test_a_worked_example_the_worst_of_five_copies_the_best_and_explores"),
    "RegularizedEvolution": (
        "test_evolution.py",
        "test_a_worked_example_the_oldest_dies_however_good",
    ),
    "SPOS": ("test_spos.py", "test_a_worked_example_of_one_generation"),
    "Schedule": ("test_schedules.py", "test_it_is_run_again_step_by_step"),
    "Optuna": (
        "optuna/test_as_optuna.py",
        "test_several_objectives_go_to_the_study_with_their_senses",
    ),
    **dict.fromkeys(("TPE", "CMA-ES", "GP", "QMC", "NSGA-II", "NSGA-III"), _AS_OPTUNA),
    "Medianstop": ("assessors/test_medianstop.py", "test_a_worked_example"),
    "Curvefitting": ("assessors/test_curvefitting.py", "test_a_curve_of_the_paper_is_continued"),
    "Threshold": (
        "assessors/test_bounds_and_pruners.py",
        "test_a_value_outside_stops_and_so_does_nan",
    ),
    "OptunaPruner": (
        "assessors/test_bounds_and_pruners.py",
        "test_a_pruner_prunes_what_it_prunes_in_optuna",
    ),
}

#: Nobody's paper.
OF_EVERYBODY = {"GridSearch", "Threshold"}


@pytest.mark.parametrize("name", [*BUILTIN_NAMES, *BUILTIN_ASSESSORS])
def test_its_rule_is_tried_against_a_worked_example(name: str) -> None:
    file, function = WORKED[name]
    tree = ast.parse((TESTS / file).read_text())
    assert function in {one.name for one in tree.body if isinstance(one, ast.FunctionDef)}


@pytest.mark.parametrize("name", [*BUILTIN_NAMES, *BUILTIN_ASSESSORS])
def test_its_paper_is_named(name: str) -> None:
    assert bool(describe(name).paper) == (name not in OF_EVERYBODY)


def test_no_tuner_is_left_out() -> None:
    everything = set(BUILTIN_NAMES)
    # Schedule ends with the first trial that fails, and has a restart of its own to be tried by.
    assert {name for name, _ in test_storm.CASES.values()} == everything - {"Schedule"}
    assert _parametrized(test_at_once.test_sixty_four_at_once) == set(test_storm.CASES)
    assert _parametrized(test_rehearsed.test_two_hundred_trials_and_two_deaths) == everything
    assert {name for name, _ in benchmark.CASES.values()} == everything
    tried = {name for name, _ in test_every_argument.owners()}
    assert tried == everything | set(NNI_NAMES) | set(BUILTIN_ASSESSORS)
    grown = _parametrized(test_growing.test_neither_work_nor_state_grows)
    assert grown | test_growing.ELSEWHERE == set(test_storm.CASES)


def test_no_assessor_is_left_out() -> None:
    assert set(test_recalling.CASES) == set(BUILTIN_ASSESSORS)
    assert set(test_assessed.CASES) == set(BUILTIN_ASSESSORS)


def _parametrized(test: object) -> set[object]:
    (mark,) = [one for one in test.pytestmark if one.name == "parametrize"]
    return {getattr(one, "values", (one,))[0] for one in mark.args[1]}
