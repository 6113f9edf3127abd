"""Non-dominated sorting, crowding and the archive against their definitions."""

from __future__ import annotations

import itertools
import json
import math

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tuners import TunerArgumentError
from tuners.pareto import Archive, Objectives, best_first, crowding, dominates, fronts

POINTS = st.lists(st.tuples(*[st.integers(0, 6).map(float)] * 2), max_size=25)


def test_dominance_is_nowhere_worse_and_somewhere_better():
    assert dominates((2.0, 1.0), (1.0, 1.0))
    assert not dominates((1.0, 1.0), (1.0, 1.0))
    assert not dominates((2.0, 0.0), (1.0, 1.0))


def test_a_worked_example_of_fronts():
    points = [(1.0, 5.0), (2.0, 4.0), (4.0, 2.0), (1.0, 4.0), (3.0, 1.0), (1.0, 1.0), (5.0, 1.0)]
    assert fronts(points) == [[0, 1, 2, 6], [3, 4], [5]]
    assert fronts([]) == []


@given(POINTS)
@settings(max_examples=60, deadline=None)
def test_fronts_are_those_of_the_definition(points):
    left, found = set(range(len(points))), []
    while left:
        free = {a for a in left if not any(dominates(points[b], points[a]) for b in left)}
        found.append(sorted(free))
        left -= free
    assert fronts(points) == found


def test_a_worked_example_of_crowding():
    # Ranges are 4 and 4; the cuboid of the second spans (0..3, 1..4), of the third (1..4, 0..3).
    points = [(0.0, 4.0), (1.0, 3.0), (3.0, 1.0), (4.0, 0.0)]
    assert crowding(points) == [math.inf, 3 / 4 + 3 / 4, 3 / 4 + 3 / 4, math.inf]
    assert crowding([(1.0, 1.0)]) == [math.inf]
    assert crowding([]) == []
    flat = crowding([(0.0, 1.0), (1.0, 1.0), (2.0, 1.0)])
    assert flat.count(math.inf) >= 2


def test_the_crowded_comparison_puts_the_front_first_then_the_lonely():
    points = [(0.0, 9.0), (1.0, 8.0), (2.0, 7.5), (6.0, 3.0), (9.0, 0.0), (0.0, 0.0)]
    assert best_first(points) == [0, 4, 3, 2, 1, 5]


@given(POINTS)
@settings(max_examples=60, deadline=None)
def test_the_archive_holds_the_first_front_whatever_the_order(points):
    archive = Archive(100)
    for number, point in enumerate(points):
        archive.add(point, number)
    first = {points[one] for one in fronts(points)[0]} if points else set()
    assert {point for point, _ in archive.members()} == first
    kept = [point for point, _ in archive.members()]
    assert kept == sorted(kept, reverse=True)
    assert not any(dominates(a, b) for a, b in itertools.permutations(kept, 2))


def test_a_full_archive_lets_the_most_crowded_go():
    archive = Archive(4)
    for place in (0.0, 4.0, 10.0):
        assert archive.add((place, -place), place)
    assert archive.add((9.0, -9.0), 9.0)
    assert not archive.add((9.5, -9.5), 9.5)  # between 9 and 10 it is narrowest
    assert [member for _, member in archive.members()] == [10.0, 9.0, 4.0, 0.0]
    assert archive.add((11.0, -11.0), 11.0)  # 10 stands between 9 and 11
    assert [member for _, member in archive.members()] == [11.0, 9.0, 4.0, 0.0]


def test_a_restored_archive_is_the_same():
    one, other = Archive(9), Archive(9)
    for number in range(5):
        one.add((float(number), float(-number)), {"id": number})
    other.restore(json.loads(json.dumps(one.state())))
    assert other.members() == one.members()
    assert len(other) == 5


def test_objectives_turn_results_into_points():
    objectives = Objectives.of({"default": "maximize", "latency_ms": "minimize"})
    assert objectives.point({"default": 0.9, "latency_ms": 12}) == (0.9, -12.0)
    assert objectives.point({"default": 0.9, "latency_ms": math.inf}) is None
    assert Objectives.of({"default": "minimize"}).point(3) == (-3.0,)
    with pytest.raises(ValueError, match="needs a number 'latency_ms'"):
        objectives.point(0.9)
    with pytest.raises(ValueError, match="'default'"):
        objectives.point({"default": True, "latency_ms": 1})


@pytest.mark.parametrize("wrong", [{}, None, {"default": "max"}])
def test_objectives_that_are_none_are_refused(wrong):
    with pytest.raises(TunerArgumentError, match="maximize"):
        Objectives.of(wrong)
