"""Search spaces: what is refused, and that samples follow the distributions they are named for."""

from __future__ import annotations

import json
import math
from collections import Counter
from itertools import islice
from statistics import NormalDist

import numpy as np
import pytest

from tuners.space import grid, mutate, parse, sample, size

NESTED = {
    "lr": {"_type": "loguniform", "_value": [1e-4, 1e-1]},
    "net": {
        "_type": "choice",
        "_value": [
            {"_name": "empty"},
            {
                "_name": "conv",
                "width": {"_type": "choice", "_value": [8, 16]},
                "act": {
                    "_type": "choice",
                    "_value": [
                        {"_name": "relu"},
                        {"_name": "elu", "alpha": {"_type": "uniform", "_value": [0.5, 2]}},
                    ],
                },
            },
        ],
    },
}


def draws(kind, value, n=4000):
    rng = np.random.default_rng(1)
    space = parse({"x": {"_type": kind, "_value": value}})
    return [sample(space, rng)["x"] for _ in range(n)]


def ks_distance(values, cdf):
    values = sorted(values)
    n = len(values)
    return max(max(abs(cdf(x) - i / n), abs(cdf(x) - (i + 1) / n)) for i, x in enumerate(values))


@pytest.mark.parametrize(
    "kind, value, cdf",
    [
        ("uniform", [-2, 6], lambda x: (x + 2) / 8),
        ("loguniform", [1e-3, 10], lambda x: math.log(x / 1e-3) / math.log(1e4)),
        ("normal", [3, 2], NormalDist(3, 2).cdf),
        ("lognormal", [0.5, 0.25], lambda x: NormalDist(0.5, 0.25).cdf(math.log(x))),
    ],
)
def test_continuous_samples_follow_their_distribution(kind, value, cdf):
    # The 0.1 % point of the Kolmogorov-Smirnov distance is 1.95 / sqrt(n).
    assert ks_distance(draws(kind, value), cdf) < 1.95 / math.sqrt(4000)


@pytest.mark.parametrize(
    "kind, value, options",
    [("choice", ["a", "b", "c"], ["a", "b", "c"]), ("randint", [-1, 3], [-1, 0, 1, 2])],
)
def test_discrete_samples_are_even(kind, value, options):
    counts = Counter(draws(kind, value))
    assert set(counts) == set(options)
    expected = 4000 / len(options)
    chi_square = sum((counts[option] - expected) ** 2 / expected for option in options)
    assert chi_square < 16.3  # the 0.1 % point at 3 degrees of freedom


@pytest.mark.parametrize(
    "kind, value, legal",
    [
        ("quniform", [0, 10, 2.5], {0.0, 2.5, 5.0, 7.5, 10.0}),
        ("quniform", [1.2, 3.6, 1], {1.2, 2.0, 3.0, 3.6}),
        ("qloguniform", [1, 8, 2], {2.0, 4.0, 6.0, 8.0}),
    ],
)
def test_quantised_ranges_are_multiples_clipped_to_the_bounds(kind, value, legal):
    assert set(draws(kind, value)) == legal


@pytest.mark.parametrize("kind", ["qnormal", "qlognormal"])
def test_quantised_bells_are_multiples_and_not_clipped(kind):
    seen = draws(kind, [1, 1, 0.5])
    assert all(x / 0.5 == round(x / 0.5) for x in seen)
    assert len(set(seen)) > 5


def test_quniform_gives_its_end_points_half_the_mass():
    counts = Counter(draws("quniform", [0, 4, 1]))
    expected = {0.0: 500, 1.0: 1000, 2.0: 1000, 3.0: 1000, 4.0: 500}
    assert sum((counts[x] - e) ** 2 / e for x, e in expected.items()) < 18.5  # 0.1 % at 4


@pytest.mark.parametrize(
    "kind, value, plain",
    [
        ("randint", [0, 9], int),
        ("uniform", [0, 9], float),
        ("quniform", [0, 9, 1], float),
        ("loguniform", [1, 9], float),
        ("normal", [0, 1], float),
        ("choice", [1], int),
    ],
)
def test_values_are_plain_python(kind, value, plain):
    assert {type(x) for x in draws(kind, value, 20)} == {plain}


def test_nested_choices_show_the_chosen_branch_only():
    rng = np.random.default_rng(0)
    shapes = {json.dumps(sorted(sample(NESTED, rng)["net"])) for _ in range(50)}
    assert shapes == {'["_name"]', '["_name", "act", "width"]'}


def test_the_same_generator_gives_the_same_parameters():
    assert sample(NESTED, np.random.default_rng(5)) == sample(NESTED, np.random.default_rng(5))


def test_parameters_never_alias_the_space():
    space = {"x": {"_type": "choice", "_value": [[1, 2]]}}
    sample(space, np.random.default_rng(0))["x"].append(3)
    next(grid(space))["x"].append(3)
    assert sample(space, np.random.default_rng(0)) == {"x": [1, 2]}


def leaves(values, path=()):
    for key, value in values.items():
        if isinstance(value, dict):
            yield (*path, key), value["_name"]
            yield from leaves({k: v for k, v in value.items() if k != "_name"}, (*path, key))
        else:
            yield (*path, key), value


def test_mutation_changes_one_dimension_and_reaches_all_of_them():
    rng = np.random.default_rng(2)
    parent = {
        "lr": 0.01,
        "net": {"_name": "conv", "width": 8, "act": {"_name": "elu", "alpha": 1.0}},
    }
    touched = Counter()
    for _ in range(400):
        child = mutate(NESTED, {**parent, "save_path": "trials/1"}, rng)
        before, after = dict(leaves(parent)), dict(leaves(child))
        changed = [path for path in before if path in after and before[path] != after[path]]
        assert len(changed) == 1, (child, changed)
        touched[changed[0]] += 1
    assert set(touched) == set(dict(leaves(parent)))
    assert min(touched.values()) > 50  # 80 expected of each of five
    assert parent["net"]["width"] == 8


def test_mutation_copes_with_a_changed_space():
    rng = np.random.default_rng(0)
    space = {"a": {"_type": "choice", "_value": [1]}, "b": {"_type": "randint", "_value": [0, 3]}}
    child = mutate(space, {"a": 99, "gone": 1}, rng)
    assert child["a"] == 1
    assert child["b"] in (0, 1, 2)
    assert set(child) == {"a", "b"}


def test_mutation_of_an_empty_space_and_of_a_single_option():
    rng = np.random.default_rng(0)
    assert mutate({}, {}, rng) == {}
    assert mutate({"a": {"_type": "choice", "_value": [1]}}, {"a": 1}, rng) == {"a": 1}


def test_true_and_one_are_two_options():
    space = {"a": {"_type": "choice", "_value": [True, 1]}}
    child = mutate(space, {"a": True}, np.random.default_rng(0))
    assert child["a"] == 1
    assert child["a"] is not True


FINITE = {
    "a": {
        "_type": "choice",
        "_value": ["x", {"_name": "y", "n": {"_type": "randint", "_value": [0, 3]}}],
    },
    "q": {"_type": "quniform", "_value": [0.5, 3, 1]},
    "l": {"_type": "qloguniform", "_value": [1, 4, 1]},
}


def test_the_grid_of_a_finite_space_is_all_of_it_once():
    points = [json.dumps(point) for point in grid(FINITE)]
    assert len(points) == len(set(points)) == size(FINITE) == 4 * 3 * 4


def test_continuous_axes_are_refined_level_by_level():
    space = {
        "x": {"_type": "uniform", "_value": [0, 8]},
        "c": {"_type": "choice", "_value": [1, 2]},
    }
    points = [(point["x"], point["c"]) for point in islice(grid(space), 14)]
    assert points[:2] == [(4, 1), (4, 2)]
    assert [x for x, c in points[2:6]] == [2, 2, 6, 6]
    assert sorted(x for x, c in points[6:] if c == 1) == [1, 3, 5, 7]
    assert size(space) is None


def test_a_grid_that_is_spread_has_the_same_points_and_no_holes_on_the_way():
    spread = [json.dumps(point) for point in grid(FINITE, spread=True)]
    assert sorted(spread) == sorted(json.dumps(point) for point in grid(FINITE))
    sizes = {"lr": 6, "width": 5, "depth": 4, "norm": 4}
    space = {name: {"_type": "choice", "_value": list(range(n))} for name, n in sizes.items()}
    quarter = list(islice(grid(space, spread=True), 120))
    for name, n in sizes.items():
        seen = [sum(point[name] == value for point in quarter) for value in range(n)]
        assert min(seen) >= 0.8 * 120 / n, name  # in the order of the file the first has two values


def test_what_is_spread_is_coarse_before_fine_as_well():
    space = {name: {"_type": "uniform", "_value": [0, 8]} for name in "xy"}
    points = list(islice(grid(space, spread=True), 9))
    assert points[0] == {"x": 4, "y": 4}
    assert {tuple(point.values()) for point in points} == {
        (x, y) for x in (2, 4, 6) for y in (2, 4, 6)
    }


def test_two_continuous_axes_never_repeat_a_point():
    space = {name: {"_type": "normal", "_value": [0, 1]} for name in "xy"}
    points = [tuple(point.values()) for point in islice(grid(space), 49)]
    assert len(set(points)) == 49
    assert points[0] == (0.0, 0.0)


def test_a_grid_of_a_million_integers_begins_at_once():
    space = {"n": {"_type": "randint", "_value": [0, 10**9]}}
    assert [point["n"] for point in islice(grid(space), 3)] == [5 * 10**8, 25 * 10**7, 75 * 10**7]


def test_the_empty_space_has_one_point():
    assert list(grid({})) == [{}]
    assert size("") == 1
