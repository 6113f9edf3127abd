"""BOHB: the budgets of Hyperband, and configurations by the densities of good and other results."""

from __future__ import annotations

import json
import math

import numpy as np
import pytest

from tests.unit.tuners import one_by_one
from tuners import NoMoreTrialError, TunerArgumentError, densities
from tuners import space as spaces
from tuners.bohb import BOHBTuner
from tuners.builtin import make_builtin
from tuners.nni import NniBOHBTuner
from tuners.space import coordinates

SPACE = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1]},
    "kind": {"_type": "choice", "_value": ["a", "b"]},
}
NESTED = {
    "net": {
        "_type": "choice",
        "_value": [
            {"_name": "wide", "units": {"_type": "randint", "_value": [1, 5]}},
            {"_name": "none"},
        ],
    },
    "x": {"_type": "normal", "_value": [2, 3]},
    "q": {"_type": "quniform", "_value": [0, 1, 0.25]},
}


def score(parameters, good=1e-2):
    return -abs(math.log10(parameters["lr"] / good)) - (parameters["kind"] != "b")


def run(tuner, numbers, value=score):
    return one_by_one.run(tuner, numbers, lambda n, parameters: value(parameters))


def bohb(space=SPACE, **arguments):
    tuner = NniBOHBTuner(**{"max_budget": 9, "seed": 2, **arguments})
    tuner.update_search_space(space)
    return tuner


def fresh(tuner, count=40, start=1300):
    """Configurations that the tuner draws: those of other rungs would have to wait."""
    drawn = []
    while len(drawn) < count:
        try:
            drawn.append(tuner.generate_parameters(start))
        except NoMoreTrialError:
            pass
        start += 1
    return drawn


def test_budgets_lie_between_the_smallest_and_the_largest():
    tuner = bohb(min_budget=2, max_budget=8, eta=2)  # s_max is 2: brackets of 4, 3 and 3
    budgets = [one["TRIAL_BUDGET"] for one in run(tuner, range(4 + 2 + 1 + 3 + 1 + 3)).values()]
    assert budgets == [2, 2, 2, 2, 4, 4, 8, 4, 4, 4, 8, 8, 8, 8]


def test_a_density_is_that_of_its_kernels():
    # By hand: a Gaussian for the number, 1 - h or h / (c - 1) for the choice, averaged.
    data = np.array([[0.25, 0.0], [0.75, 2.0]])
    one = densities.Density(data, np.array([0.5, 0.3]), (0, 3))
    bell = math.exp(-0.5) / (0.5 * math.sqrt(2 * math.pi))
    there = 1 / (0.5 * math.sqrt(2 * math.pi)) * 0.7
    assert one.at(np.array([[0.25, 0.0]]))[0] == pytest.approx((there + bell * 0.15) / 2)
    # 1.06 * 0.25 * 2 ** (-1 / 6), and no choice is spread more than evenly.
    fitted = densities.fit(data, (0, 3), 1e-3, np.random.default_rng(0))
    assert fitted.bandwidths == pytest.approx([0.265 * 2 ** (-1 / 6), 2 / 3])


def test_what_a_branch_has_not_is_taken_from_others_that_have_it():
    data = np.array([[0.1, math.nan], [0.2, 0.9], [math.nan, math.nan]])
    one = densities.fit(data[:, 1:], (0,), 1e-3, np.random.default_rng(0))
    assert one.data.tolist() == [[0.9], [0.9], [0.9]]
    nowhere = densities.fit(data[:1, 1:], (4,), 1e-3, np.random.default_rng(0))
    assert nowhere.data[0][0] in {0, 1, 2, 3}


def test_points_stand_for_parameters_and_back():
    space = spaces.parse(NESTED)
    axes = coordinates.axes_of(space)
    assert [axis.options for axis in axes] == [2, 0, 0, 0]
    wide = {"net": {"_name": "wide", "units": 3}, "x": 2.0, "q": 0.25}
    assert coordinates.locate(space, axes, wide) == [0, 0.625, 0.5, 0.25]
    back = coordinates.parameters_at(space, axes, [0, 0.625, 0.5, 0.3])
    assert back == {**wide, "x": pytest.approx(2.0)}
    none = {"net": {"_name": "none"}, "x": 2.0, "q": 1.0}
    point = coordinates.locate(space, axes, none)
    assert point[0] == 1
    assert math.isnan(point[1])
    for wrong in ({**wide, "q": 1.5}, {"x": 1}, {**wide, "net": {"_name": "deep"}}):
        with pytest.raises(ValueError, match=r"bounds|there is no|no option"):
            coordinates.locate(space, axes, wrong)


def test_fresh_configurations_lie_where_results_were_good():
    tuner = bohb(random_fraction=0.0)
    before = [score(one) for one in fresh(bohb(random_fraction=0.0))]
    run(tuner, range(66))
    after = [score(one) for one in fresh(tuner)]
    assert np.mean(after) > np.mean(before) + 0.8
    assert np.mean([score(one) for one in fresh(bohb(random_fraction=1.0))]) < -1


def test_the_model_is_of_the_largest_budget_that_has_results_enough():
    tuner = bohb(random_fraction=0.0, num_samples=8)
    rows = [
        {"parameter": {"lr": lr, "kind": kind, "TRIAL_BUDGET": budget}, "value": value}
        for budget, best in ((1, 1e-4), (9, 1.0))
        for lr in (1e-4, 1e-2, 1.0)
        for kind in ("a", "b")
        for value in [-abs(math.log10(lr / best))]
    ]
    assert tuner.import_data(rows[:6]) is None
    assert np.median([one["lr"] for one in fresh(tuner)]) < 1e-3
    assert tuner.import_data(rows[6:11]) is None  # five results: six are needed of two parameters
    assert np.median([one["lr"] for one in fresh(tuner)]) < 1e-3
    assert tuner.import_data(rows[11:]) is None
    assert np.median([one["lr"] for one in fresh(tuner)]) > 0.1
    said = tuner.import_data([{"parameter": {"lr": 0.1, "kind": "a"}, "value": 1}, *rows[:1]])
    assert said is not None
    assert said.startswith("1 of 2 imported results have no 'TRIAL_BUDGET'")


def test_a_worked_example_of_equation_3():
    # Falkner et al. (2018), section 4.1: two parameters, so that N_min is 3, and q of 15 %.
    tuner = BOHBTuner(seed=2, random_fraction=0.0, num_samples=8)
    tuner.update_search_space(SPACE)
    sides = {4: None, 5: (3, 3), 6: (3, 3), 20: (3, 17), 40: (6, 34)}
    assert {count: densities.split(count, 3, 15) for count in sides} == sides
    # In NNI, as in HpBandSter, nothing is on both sides: six results, not five.
    theirs = [densities.split(count, 3, 15, apart=True) for count in (5, 6, 40)]
    assert theirs == [None, (3, 3), (6, 34)]
    assert (bohb().sides_apart, tuner.sides_apart) == (True, False)
    # The best three are the good ones, the worst three the others: the middle one is both.
    rows = [
        {"parameter": {"lr": lr, "kind": "a", "budget": 3}, "value": -lr}
        for lr in (0.0001, 0.0003, 0.001, 0.1, 1.0)
    ]
    assert tuner.import_data(rows[:4]) is None
    untaught = BOHBTuner(seed=2, random_fraction=0.0)
    untaught.update_search_space(SPACE)
    assert fresh(tuner) == fresh(untaught)  # drawn at random
    assert tuner.import_data(rows[4:]) is None
    assert np.median([one["lr"] for one in fresh(tuner)]) < 1e-3


def test_a_restored_search_goes_on_as_it_would_have():
    tuner = bohb()
    run(tuner, range(40))
    again = bohb()
    again.restore(json.loads(json.dumps(tuner.state())))
    assert run(again, range(40, 80)) == run(tuner, range(40, 80))


def test_results_outside_of_a_new_space_are_not_looked_at():
    tuner = bohb(random_fraction=0.0)
    run(tuner, range(66))
    tuner.update_search_space({"lr": SPACE["lr"], "kind": {"_type": "choice", "_value": ["c"]}})
    assert fresh(tuner, 1)[0]["kind"] == "c"


@pytest.mark.parametrize(
    "wrong",
    [
        {"min_budget": 0},
        {"min_budget": 10},
        {"eta": 1},
        {"min_points_in_model": 0},
        {"top_n_percent": 100},
        {"num_samples": 0},
        {"random_fraction": 1.5},
        {"bandwidth_factor": 0},
        {"min_bandwidth": "small"},
        {"budget": 3},
    ],
)
def test_arguments_are_checked(wrong):
    with pytest.raises(TunerArgumentError):
        make_builtin("BOHB", {"max_budget": 9, **wrong})


def test_the_promoted_of_ours_go_on_from_their_weights():
    tuner = BOHBTuner(max_budget=3, random_fraction=0.5)
    tuner.update_search_space(SPACE)
    first = run(tuner, range(3), lambda one: one["lr"])
    assert {one["save_path"] for one in first.values()} == {f"trials/{n}" for n in range(3)}
