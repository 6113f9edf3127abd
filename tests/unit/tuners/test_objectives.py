"""Objectives as people write them, bounds, and what tuners make of results beyond them."""

from __future__ import annotations

import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuners import MorphingEvolutionTuner, RegularizedEvolutionTuner, TunerArgumentError
from tuners.objectives import (
    Objective,
    known_objectives,
    number_of,
    read_objective,
    read_objectives,
    written_objectives,
)
from tuners.pareto import FARTHEST, Objectives, best_first, excess, fronts
from tuners.testing import with_gate

NUMBERS = st.floats(allow_nan=False, allow_infinity=False, width=32)
WRITTEN = st.builds(
    Objective,
    st.just("size"),
    st.sampled_from(["maximize", "minimize", None]),
    st.none() | NUMBERS,
    st.booleans(),
).filter(lambda one: one.mode is not None or one.bound is not None)
SPACE = {"width": {"_type": "randint", "_value": [1, 101]}}
BOTH = {"default": "maximize", "size": "minimize <= 10"}


@given(WRITTEN)
@settings(max_examples=100, deadline=None)
def test_what_is_written_is_read_again(one):
    """Mutation: a bound that is rounded, or a sign that turns."""
    again = read_objective("size", one.text)
    assert (again.mode, again.bound) == (one.mode, one.bound)
    assert again.is_most == (one.is_most or one.bound is None)
    assert read_objective("size", again.text) == again


@given(WRITTEN, NUMBERS)
@settings(max_examples=100, deadline=None)
def test_beyond_is_above_zero_exactly_where_the_bound_is_broken(one, number):
    broken = one.bound is not None and (number > one.bound if one.is_most else number < one.bound)
    assert (one.beyond(number) > 0) == broken


@pytest.mark.parametrize(
    "text, mode, bound, is_most",
    [
        ("maximize", "maximize", None, True),
        (" Minimize<=4e3 ", "minimize", 4000.0, True),
        ("maximize >= 0.9", "maximize", 0.9, False),
        ("<= 8", None, 8.0, True),
        (">=-1", None, -1.0, False),
    ],
)
def test_forms_that_people_write(text, mode, bound, is_most):
    assert read_objective("x", text) == Objective("x", mode, bound, is_most)


@pytest.mark.parametrize(
    "text",
    [
        *("", "max", "up <= 3", "minimize < 3", "minimize <=", "<= many", "<= nan", "<= inf", "3"),
        *(3, None, {"mode": "maximize"}, "minimize <= 1 <= 2", "maximize " * 40),
    ],
)
def test_texts_that_are_no_objective(text):
    with pytest.raises(ValueError, match=r"^(is|must|has) "):
        read_objective("x", text)


@pytest.mark.parametrize(
    "written, error",
    [
        ({}, "map numbers"),
        ([1], "map numbers"),
        ({"a": "<= 3"}, "bounds only"),
        ({"a": "maximise"}, "the objective 'a' is 'maximise'"),
        ({'a"b': "maximize"}, "quotes"),
        ({"": "maximize"}, "must be a name"),
        ({3: "maximize"}, "must be a name"),
        ({"a" * 201: "maximize"}, "letters"),
        ({str(n): "maximize" for n in range(17)}, "there are 17"),
    ],
)
def test_objectives_that_are_none(written, error):
    with pytest.raises(ValueError, match=error):
        read_objectives(written)


def test_readers_of_what_others_wrote_take_what_can_be_read():
    written = {"a": "maximize", "b": 3, "c": "<= 2", 'd"': "maximize", 4: "minimize"}
    assert [one.name for one in known_objectives(written)] == ["a", "c"]
    assert known_objectives(None) == ()


def test_an_experiments_own_come_before_those_of_its_tuners_arguments():
    arguments = {"objectives": {"b": "minimize", "c": 3}}
    assert [one.name for one in written_objectives({"a": "maximize"}, arguments)] == ["a"]
    assert [one.name for one in written_objectives({}, arguments)] == ["b"]
    assert written_objectives(None, "objectives") == ()


@pytest.mark.parametrize(
    "value, name, number",
    [
        (0.5, "default", 0.5),
        (0.5, "size", None),
        ({"default": 1}, "default", 1.0),
        ({"size": True}, "size", None),
        ({"size": "3"}, "size", None),
        ({"size": 10**400}, "size", math.inf),
        ({"size": -(10**400)}, "size", -math.inf),
        ("text", "default", None),
    ],
)
def test_a_number_of_a_result(value, name, number):
    assert number_of(value, name) == number


# -- tuners ----------------------------------------------------------------------------------

FEW = st.lists(st.tuples(*[st.integers(0, 4).map(float)] * 2), min_size=1, max_size=16)


@given(FEW, st.data())
@settings(max_examples=100, deadline=None)
def test_those_within_their_bounds_come_first_and_of_the_others_the_nearest(points, data):
    """Deb et al., section VI. Mutation: an infeasible point that dominates stands in front."""
    far = data.draw(
        st.lists(st.sampled_from([0.0, 1.0, 2.5]), min_size=len(points), max_size=len(points))
    )
    order = best_first(points, far)
    assert sorted(order) == list(range(len(points)))
    assert [far[one] for one in order] == sorted(far[one] for one in order)
    kept = [one for one in range(len(points)) if far[one] == 0]
    if kept:
        first = {kept[one] for one in fronts([points[one] for one in kept])[0]}
        assert set(order[: len(first)]) == first


def test_how_far_a_result_is_beyond_its_bounds_together():
    both = Objectives.of({"default": "maximize >= 0.5", "size": "minimize <= 10", "mem": "<= 8"})
    assert both.modes == (("default", "maximize"), ("size", "minimize"))
    beyond = both.beyond({"default": 0.4, "size": 12, "mem": 3})
    assert beyond == pytest.approx((0.1, 2.0, -5.0))
    assert excess(beyond) == pytest.approx(2.1)
    assert excess((-1.0, 0.0)) == 0.0
    assert excess((math.nan, -1.0)) == excess((math.inf,)) == FARTHEST
    with pytest.raises(ValueError, match="'mem'"):
        both.beyond({"default": 0.4, "size": 12})
    with pytest.raises(TunerArgumentError, match=r"bounds only.*Write 'maximize'"):
        Objectives.of({"size": "<= 3"})


def evolution(**arguments):
    given = {"population_size": 4, "sample_size": 4, "objectives": BOTH, **arguments}
    tuner = with_gate(RegularizedEvolutionTuner(**given))
    tuner.update_search_space(SPACE)
    return tuner


def feed(tuner, values, first=0):
    for n, (accuracy, size) in enumerate(values, first):
        parameters = tuner.generate_parameters(n)
        tuner.receive_trial_result(n, parameters, {"default": accuracy, "size": size})
        tuner.trial_end(n, True)


def living(tuner):
    return [one["parameter_id"] for one in tuner.state()["population"]]


def test_evolution_breeds_within_the_bounds_and_archives_nothing_beyond_them():
    """Mutation: the best accuracy is bred from although it is ten times too large."""
    tuner = evolution()
    feed(tuner, [(0.9, 100.0), (0.8, 50.0), (0.2, 9.0), (0.1, 90.0)])
    parents = {tuner.generate_parameters(n)["restore_path"] for n in range(4, 60)}
    assert "trials/2" in parents
    assert [one["parameter_id"] for _, one in tuner.archive.members()] == [2]
    # Of four draws with replacement the only good one is missing in one of three cases.
    picks = [tuner.generate_parameters(n)["restore_path"] for n in range(60, 260)]
    assert picks.count("trials/2") > 100
    assert picks.count("trials/1") > picks.count("trials/3") > picks.count("trials/0")


def test_by_rank_the_last_one_leaves_and_by_age_the_oldest():
    """NSGA-II's elitism. Mutation: the crowd is counted without the new one."""
    results = [(0.9, 9.0), (0.5, 1.0), (0.1, 8.0), (0.7, 5.0)]
    old, ranked = evolution(survival="age"), evolution(survival="rank")
    for tuner in (old, ranked):
        feed(tuner, [*results, (0.8, 6.0)])
    assert living(old) == [1, 2, 3, 4]
    assert living(ranked) == [0, 1, 3, 4]  # 2 is dominated
    feed(ranked, [(0.05, 9.5), (0.99, 11.0)], first=5)
    assert living(ranked) == [0, 1, 3, 4]  # dominated; beyond its bound
    feed(ranked, [(0.6, 0.5)], first=7)
    assert living(ranked) == [0, 3, 4, 7]
    again = evolution(survival="rank", seed=9)
    again.restore(json.loads(json.dumps(ranked.state())))
    assert living(again) == living(ranked)


def test_by_rank_of_one_objective_the_worst_leaves():
    tuner = evolution(survival="rank", objectives=None)
    feed(tuner, [(0.5, 0), (0.1, 0), (0.9, 0), (0.3, 0), (0.2, 0)])
    assert living(tuner) == [0, 2, 3, 4]
    with pytest.raises(TunerArgumentError, match="survival is 'age' or 'rank'"):
        evolution(survival="best")


def test_some_children_are_their_parent_trained_on():
    """Mutation: a child without steps that does not inherit."""
    made = {
        share: with_gate(
            MorphingEvolutionTuner(
                [{"width": 4, "kernel": 0}],
                ["wider", "deeper"],
                population_size=2,
                sample_size=2,
                trained_on=share,
            )
        )
        for share in (0.0, 0.5, 1.0)
    }
    unchanged = {}
    for share, tuner in made.items():
        tuner.update_search_space({})
        for n in range(2):
            tuner.receive_trial_result(n, tuner.generate_parameters(n), 0.5)
            tuner.trial_end(n, True)
        children = [tuner.generate_parameters(n) for n in range(2, 42)]
        assert all("restore_path" in one for one in children)
        unchanged[share] = sum(not one["steps"] for one in children)
        assert all(one["blocks"] == one["inherited"] for one in children if not one["steps"])
    assert (unchanged[0.0], unchanged[1.0]) == (0, 40)
    assert 10 < unchanged[0.5] < 30
