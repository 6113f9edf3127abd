"""Exploring around parameters: 1.2 and 0.8, bounds, steps, choices, drawing anew."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tuners import space as spaces


def moves(entry, value, draws=300, **arguments):
    rng = np.random.default_rng(1)
    space = {"x": entry}
    return Counter(spaces.perturb(space, {"x": value}, rng, **arguments)["x"] for _ in range(draws))


def test_a_number_is_multiplied_by_1_2_or_0_8_with_even_odds():
    counts = moves({"_type": "uniform", "_value": [0, 10]}, 2.0)
    assert sorted(counts) == pytest.approx([1.6, 2.4])
    assert min(counts.values()) > 120
    assert sorted(moves({"_type": "normal", "_value": [0, 1]}, -1.0, factor=0.5)) == [-1.5, -0.5]


def test_bounds_hold():
    assert set(moves({"_type": "loguniform", "_value": [0.1, 1]}, 1.0)) == {0.8, 1.0}
    assert set(moves({"_type": "randint", "_value": [1, 4]}, 3)) == {2, 3}


@pytest.mark.parametrize(
    "entry, value, reached",
    [
        ({"_type": "randint", "_value": [-9, 99]}, 10, {8, 12}),
        ({"_type": "randint", "_value": [-9, 99]}, 2, {1, 3}),  # 1.6 and 2.4 round back to 2
        ({"_type": "randint", "_value": [-9, 99]}, -2, {-3, -1}),
        ({"_type": "randint", "_value": [-9, 99]}, 0, {-1, 1}),
        ({"_type": "quniform", "_value": [0, 8, 2]}, 4.0, {2.0, 6.0}),
        ({"_type": "choice", "_value": ["a", "b", "c"]}, "b", {"a", "c"}),
        ({"_type": "choice", "_value": ["a", "b", "c"]}, "a", {"a", "b"}),
    ],
)
def test_what_has_steps_goes_one_step_at_least(entry, value, reached):
    counts = moves(entry, value)
    assert set(counts) == reached
    assert all(type(one) is type(value) for one in counts)


def test_of_a_nested_choice_the_branch_stays():
    space = {
        "layer": {
            "_type": "choice",
            "_value": [
                {"_name": "conv", "size": {"_type": "uniform", "_value": [1, 9]}},
                {"_name": "pool"},
            ],
        }
    }
    rng = np.random.default_rng(0)
    seen = [spaces.perturb(space, {"layer": {"_name": "conv", "size": 5.0}}, rng) for _ in "12345"]
    assert {one["layer"]["_name"] for one in seen} == {"conv"}
    assert {one["layer"]["size"] for one in seen} == {4.0, 6.0}
    anew = [
        spaces.perturb(
            space, {"layer": {"_name": "conv", "size": 5.0}}, rng, resample_probability=1.0
        )
        for _ in range(50)
    ]
    assert {one["layer"]["_name"] for one in anew} == {"conv", "pool"}


def test_drawing_anew_happens_as_often_as_asked():
    counts = moves(
        {"_type": "uniform", "_value": [0, 1e6]}, 2.0, 2000, factor=0.5, resample_probability=0.25
    )
    assert abs(2000 - counts[1.0] - counts[3.0] - 500) < 80


def test_what_is_moved_is_a_copy_that_fits_the_space():
    before = {"x": 2.0, "gone": 1}
    after = spaces.perturb(
        {"x": {"_type": "uniform", "_value": [0, 9]}, "y": {"_type": "randint", "_value": [0, 3]}},
        before,
        np.random.default_rng(0),
    )
    assert before == {"x": 2.0, "gone": 1}
    assert set(after) == {"x", "y"}
