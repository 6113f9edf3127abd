"""Curves with fewer points keep their ends and their peaks."""

from __future__ import annotations

import math

from hypothesis import given
from hypothesis import strategies as st

from dispatcher.web.curves import thinned


def test_short_curves_stay_as_they_are() -> None:
    assert thinned([1, 2, 3], [0.1, 0.2, 0.3], 3) == ([1, 2, 3], [0.1, 0.2, 0.3])


def test_a_peak_is_kept() -> None:
    values = [math.sin(step / 500) for step in range(10_000)]
    values[4_321] = 40.0
    steps, kept = thinned(list(range(10_000)), values, 100)
    assert len(steps) == 100
    assert 4_321 in steps
    assert max(kept) == 40.0


@given(st.lists(st.floats(-1e6, 1e6), min_size=1, max_size=300), st.integers(3, 50))
def test_points_are_some_of_those_there_are(values: list[float], points: int) -> None:
    steps, kept = thinned(list(range(len(values))), values, points)
    assert len(steps) == min(points, len(values))
    assert steps == sorted(set(steps))
    assert (steps[0], steps[-1]) == (0, len(values) - 1)
    assert kept == [values[step] for step in steps]
