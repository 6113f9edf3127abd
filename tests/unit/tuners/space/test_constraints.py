"""Conditions between parameters: how they are read, and that every tuner meets them."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import islice
from typing import Any

import numpy as np
import pytest

from tuners import make_builtin
from tuners.space import SpaceError, as_json, grid, mutate, parse, perturb, problems, sample
from tuners.space import parameters as bq
from tuners.space.constraints import Constraint

NESTED = {"a": 2, "b": 3, "o": {"_name": "sgd", "m": 0.5}, "t": True, "w": "x"}


@pytest.mark.parametrize(
    "text, holds",
    [
        ("a * b <= 6", True),
        ("a * b < 6", False),
        ("1 < a < b", True),
        ("a ** b == 8 and b // a == 1", True),
        ("not t or b % 2 == 1", True),
        ("o == 'sgd' and o.m <= 0.5", True),
        ("o['m'] > 0.5", False),
        ("w in ['x', 'y'] and w not in ('z',)", True),
        ("max(a, b) - min(a, b) == abs(-1)", True),
        ("t == true and a != null", True),
        # A parameter below an option that was not chosen.
        ("o.beta > 3", True),
        # What cannot be computed.
        ("a / (b - 3) > 0", False),
        ("w < a", False),
        ("a ** (10 ** 9) > 0", False),
        ("w * 1000000000 == w", False),
        ("(0 - a) ** 0.5 < 1", False),
    ],
)
def test_a_condition_is_computed(text: str, holds: bool) -> None:
    assert Constraint.of(text).holds(NESTED) is holds


SPACE = {"a": bq.int(1, 8), "o": bq.choice({"sgd": {"m": bq.uniform(0, 1)}, "adam": {}})}


@pytest.mark.parametrize(
    "condition, words, hint",
    [
        ("b < 3", "names 'b', which is no parameter", "there are a, o"),
        ("o.n < 3", "names 'o.n', which is no parameter", "there are m"),
        ("a.m < 3", "names 'a.m', which is no parameter", ""),
        ("a = 3", "cannot be read", "write '==' to compare"),
        ("a <", "cannot be read", "layers * width"),
        ("a + 1", "compares nothing", "layers * width"),
        ("1 < 2", "names no parameter", "layers * width"),
        ("a.__class__.__mro__ < 3", "names 'a.__class__'", ""),
        ("__import__('os').system('true') < 3", "which conditions do not have", "abs, min and max"),
        ("[n for n in a] == 3", "which conditions do not have", "abs, min and max"),
        ("(lambda: 3)() < a", "which conditions do not have", "abs, min and max"),
        ("a < " + "(" * 90 + "1" + ")" * 90, None, ""),
        ("a < " + "-" * 90 + "1", "nested more than 40 deep", ""),
        ("a < 1 or " * 200 + "a < 1", "1,000 are the most", ""),
        ("a < 3\0", "cannot be read", ""),
        ("a < '\ud800'", "cannot be read", ""),
        (3, "must be a condition as text", ""),
    ],
)
def test_a_wrong_condition_has_one_error(condition: object, words: str | None, hint: str) -> None:
    found = problems({**SPACE, "_constraints": ["a < 9", condition]})
    if words is None:
        assert not found
        return
    (problem,) = found
    assert problem.path == ("_constraints", 1)
    assert words in problem.message
    assert hint in problem.hint


def test_conditions_are_a_list_for_the_whole_space() -> None:
    (problem,) = problems({**SPACE, "_constraints": "a < 3"})
    assert problem.message.startswith("must be a list of conditions")
    below = {"_name": "x", "n": "int(1, 2)", "_constraints": ["n < 2"]}
    (problem,) = problems({"p": {"_type": "choice", "_value": [below]}})
    assert problem.message.startswith("stands below an option")
    own = {"_constraints": {"of": "a tuner's own kind"}, "p": [1]}
    assert problems(own, strict=False) == ()


BOUND = bq.space(
    {
        "layers": bq.int(1, 8),
        "width": bq.int(64, 1024, 64),
        "lr": bq.loguniform(1e-4, 1e-1),
        "batch": bq.int(1, 256, log=True),
        "norm": bq.choice({"none": {}, "batch": {"rate": bq.uniform(0, 1)}}),
    },
    ["layers * width <= 1024", "norm != 'batch' or batch >= 8", "norm.rate < 0.5"],
)


BLOCKS = [{"width": 8}, {"width": 8}]


def holds(parameters: Mapping[str, Any]) -> bool:
    """The conditions of BOUND, in Python's own terms."""
    norm = parameters["norm"]
    return bool(
        parameters["layers"] * parameters["width"] <= 1024
        and (norm["_name"] != "batch" or parameters["batch"] >= 8)
        and norm.get("rate", 0) < 0.5
    )


def test_what_is_drawn_changed_and_enumerated_meets_them() -> None:
    """Mutation: ``perturb`` returns its first move, whatever it is."""
    rng = np.random.default_rng(0)
    parent = sample(BOUND, rng)
    for _ in range(60):
        assert holds(parent)
        assert holds(mutate(BOUND, parent, rng))
        parent = perturb(BOUND, parent, rng, factor=0.5)
    assert all(map(holds, islice(grid(BOUND, spread=True), 60)))
    whole = {"a": bq.int(1, 4), "b": bq.int(1, 4), "_constraints": ["a < b"]}
    assert [tuple(point.values()) for point in grid(whole)] == [
        (1, 2), (1, 3), (1, 4), (2, 3), (2, 4), (3, 4),
    ]  # fmt: skip


def test_conditions_that_leave_nothing_end_with_one_error() -> None:
    """Mutation: the draws have no bound."""
    nothing = bq.space({"a": bq.int(1, 8)}, ["a > 8"])
    with pytest.raises(SpaceError, match="leaves nothing: none of 5,000 draws meets 'a > 8'"):
        sample(nothing, np.random.default_rng(0))
    assert list(grid(nothing)) == []
    with pytest.raises(SpaceError, match="none of 100,000 points of the grid in a row"):
        next(grid(bq.space({"a": bq.uniform(0, 1)}, ["a > 1"])))


@pytest.mark.parametrize(
    "name, arguments",
    [
        ("Random", {}),
        ("GridSearch", {}),
        ("RegularizedEvolution", {"population_size": 4, "sample_size": 2, "crossover": 0.5}),
        ("PBT", {"population_size": 4}),
        ("Hyperband", {"max_budget": 9}),
        ("BOHB", {"max_budget": 9, "random_fraction": 0.1, "min_points_in_model": 6}),
        ("ASHA", {}),
        ("TPE", {"n_startup_trials": 4}),
        ("QMC", {}),
        ("CMA-ES", {}),
        ("MorphingEvolution", {"blocks": BLOCKS, "population_size": 4, "sample_size": 2}),
        ("NetworkMorphism", {"blocks": BLOCKS, "neighbours": 4}),
        ("NSGA-II", {"population_size": 4}),
    ],
)
@pytest.mark.parametrize("space", ["free", "bound"])
def test_every_tuner_proposes_inside(name: str, arguments: dict[str, Any], space: str) -> None:
    """Mutation: integers by logarithm are rounded up beyond their upper bound."""
    from tests.unit.tuners.space.written import is_inside
    from tuners.errors import NoMoreTrialError

    tuner = make_builtin(name, arguments)
    written = as_json(BOUND)
    if space == "free":
        del written["_constraints"]
    assert tuner.handles(written) == ""
    tuner.update_search_space(written)
    proposed = 0
    for number in range(40):
        try:
            parameters = tuner.generate_parameters(number)
        except NoMoreTrialError:
            continue
        proposed += 1
        assert is_inside(parse(written), parameters), parameters
        assert space == "free" or holds(parameters), parameters
        tuner.receive_trial_result(number, parameters, float(parameters["layers"]))
        tuner.trial_end(number, True)
    assert proposed >= 13


def test_a_sampler_that_was_restarted_goes_on_as_it_would_have() -> None:
    """Mutation: a proposal that misses the conditions is asked for again without being failed."""
    written = as_json(BOUND)
    first = make_builtin("TPE", {"n_startup_trials": 4})
    first.update_search_space(written)
    for number in range(12):
        parameters = first.generate_parameters(number)
        first.receive_trial_result(number, parameters, float(parameters["layers"]))
        first.trial_end(number, True)
    again = make_builtin("TPE", {"n_startup_trials": 4})
    again.update_search_space(written)
    again.restore(first.state())
    for number in range(12, 16):
        assert again.generate_parameters(number) == first.generate_parameters(number)


def test_paths_through_a_supernet_meet_them() -> None:
    """Mutation: SPOS asks its costs only."""
    names = {"a": bq.int(1, 9, 2), "b": bq.int(1, 64, log=True), "c": bq.choice("x", "y")}
    tuner = make_builtin("SPOS", {"population_size": 8, "supernet": {"epochs": 1}})
    written = as_json(bq.space(names, ["a * b <= 64", "c == 'x' or a < 5"]))
    assert tuner.handles(written) == ""
    tuner.update_search_space(written)
    for number in range(20):
        own = tuner.generate_parameters(number)
        tuner.receive_trial_result(number, own, float(number))
        tuner.trial_end(number, True)
        if number:
            assert own["a"] in range(1, 10, 2)
            assert own["a"] * own["b"] <= 64
            assert own["c"] == "x" or own["a"] < 5
