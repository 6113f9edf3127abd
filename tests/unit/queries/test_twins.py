"""What stands twice, since the core imports no tuners and tuners import no store: both mean the
same."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import example, given
from hypothesis import strategies as st

from dispatcher.core.results import keeps
from dispatcher.queries.fronts import unbeaten
from dispatcher.queries.objectives import within
from tuners.objectives import Objective
from tuners.pareto import fronts

_NUMBERS = st.one_of(
    st.integers(-3, 3),
    st.floats(-3, 3),
    st.sampled_from([float("nan"), float("inf"), float("-inf"), 10**400, -(10**400), True]),
)
_VALUES = st.one_of(
    _NUMBERS,
    st.none(),
    st.text(max_size=2),
    st.dictionaries(st.sampled_from(["default", "size"]), _NUMBERS | st.none()),
)
_BOUNDS = st.dictionaries(st.sampled_from(["default", "size"]), st.floats(-3, 3))


@given(_VALUES, _BOUNDS, _BOUNDS)
@example(10**400, {}, {"default": 0.0})
@example({"size": float("nan")}, {"size": 1.0}, {})
def test_a_result_keeps_its_bounds_or_not(
    value: Any, at_most: dict[str, float], at_least: dict[str, float]
) -> None:
    """In ``core/results.py``, which ends a search, and in ``queries/objectives.py``, which finds
    the best. Mutation: one of them takes what is too large for a float for no number."""
    bounds = [Objective(name, None, bound) for name, bound in at_most.items()]
    bounds += [Objective(name, None, bound, is_most=False) for name, bound in at_least.items()]
    assert keeps(json.dumps(value), at_most, at_least) == within(value, tuple(bounds))


@given(st.lists(st.tuples(*[st.integers(0, 3).map(float)] * 3), max_size=12), st.integers(2, 3))
def test_a_front_has_the_same_points(points: list[tuple[float, ...]], axes: int) -> None:
    """``queries/fronts.py`` takes the first of equals of ten thousand, ``tuners/pareto.py`` all of
    a population, and the fronts behind. Mutation: either leaves one out."""
    ordered = sorted((point[:axes] for point in points), reverse=True)
    first = unbeaten(ordered)
    chosen = [ordered[at] for at in first]
    assert len(set(chosen)) == len(chosen)
    assert set(chosen) == {ordered[at] for at in (fronts(ordered) or [[]])[0]}
