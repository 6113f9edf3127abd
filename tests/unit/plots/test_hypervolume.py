"""The hypervolume: exact against counted cells, and how it grows with the results."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.errors import UserError
from dispatcher.plots import hypervolume as module
from dispatcher.plots.front import pareto_front
from dispatcher.plots.hypervolume import hypervolume
from dispatcher.plots.volume import sweeps, volume_of
from tests.support.made_store import Told
from tests.unit.plots.conftest import Open

_SIDE = 5


def cells(points: list[tuple[int, ...]], objectives: int) -> int:
    """Unit cells below at least one of the points: the volume by its definition."""
    return sum(
        any(all(at < high for at, high in zip(cell, point, strict=True)) for point in points)
        for cell in itertools.product(range(_SIDE), repeat=objectives)
    )


@given(st.data(), st.integers(1, 4))
@settings(max_examples=150, deadline=None)
def test_the_volume_is_the_number_of_cells_below_the_points(data: st.DataObject, many: int) -> None:
    """Mutation: equal heights counted twice, or a point on an axis that counts."""
    point = st.tuples(*[st.integers(0, _SIDE)] * many)
    points = data.draw(st.lists(point, max_size=9))
    heights = np.array(points, dtype=np.float64).reshape(len(points), many)
    assert volume_of(heights) == pytest.approx(cells(points, many))
    shuffled = data.draw(st.permutations(range(len(points))))
    assert volume_of(heights[list(shuffled)]) == pytest.approx(volume_of(heights))


def test_what_it_costs() -> None:
    assert [sweeps(100, many) for many in (1, 2, 3, 4)] == [1, 1, 100, 10_000]


# -- over time -------------------------------------------------------------------------------

RESULTS = [
    {"default": 1, "size": 8},
    {"default": 3, "size": 9},
    {"default": 2, "size": 8},
    {"default": 1, "size": 9},  # beaten
    {"default": 4, "size": 11},  # beyond the bound
    {"default": 1, "size": 4},
]
BOUNDED = {"default": "maximize", "size": "minimize <= 10"}


def told(results: list[dict[str, int]]) -> list[Told]:
    return [({"x": at}, dict(one), None) for at, one in enumerate(results)]


def test_it_grows_with_the_front_and_never_beyond_a_bound(opened: Open) -> None:
    """By hand, above default 0 and below size 10. Mutation: the worst result in place of the
    bound."""
    reader = opened(told(RESULTS), objectives=BOUNDED)
    found = hypervolume(reader, reference=("default:0",))
    assert found.reference == [0.0, 10.0]
    assert found.trials == [0, 1, 2, 5]
    assert found.counts == [1, 2, 3, 5]
    assert found.volumes == [2.0, 4.0, 5.0, 9.0]
    assert found.results == 5
    assert found.elapsed_s == sorted(found.elapsed_s)
    assert "1 of 6 trials are not within the bounds: size <= 10" in found.notes[0]


def test_without_a_reference_it_begins_at_the_worst_results(opened: Open) -> None:
    reader = opened(told(RESULTS), tuner={"classArgs": {"objectives": {
        "default": "maximize", "size": "minimize"}}})  # fmt: skip
    found = hypervolume(reader)
    assert found.reference == [1.0, 11.0]
    assert found.trials == [1, 2]  # what is as bad as the worst in one of them adds nothing
    assert hypervolume(reader, reference=("size:11", "default:0")).volumes[-1] == 12.0


@given(st.lists(st.tuples(st.integers(0, 6), st.integers(0, 6)), min_size=1, max_size=14))
@settings(max_examples=30, deadline=None)
def test_its_end_is_the_volume_of_the_front(
    tmp_path_factory: pytest.TempPathFactory, rows: list[tuple[int, int]]
) -> None:
    from dispatcher.queries import ExperimentReader
    from tests.support.made_store import made_store

    folder = made_store(
        tmp_path_factory.mktemp("volume"),
        told([{"default": a, "size": b} for a, b in rows]),
        objectives={"default": "maximize", "size": "minimize"},
    )
    with ExperimentReader.open(folder) as reader:
        found = hypervolume(reader, reference=("default:-1", "size:7"))
        front = pareto_front(reader)
    heights = np.array([[a + 1, 7 - b] for a, b in front.points[: front.front]], dtype=float)
    assert found.volumes[-1] == pytest.approx(volume_of(heights))
    assert found.volumes == sorted(found.volumes)


def test_of_many_steps_an_even_part_and_the_last_one(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_STEPS", 5)
    results = [{"default": at, "size": 9} for at in range(1, 41)]
    found = hypervolume(opened(told(results), objectives=BOUNDED), reference=("default:0",))
    assert len(found.trials) == 5
    assert (found.trials[-1], found.volumes[-1]) == (39, 40.0)
    assert "35 results at which it grew are left out" in found.notes[0]


def test_a_front_that_is_too_large_for_so_many_objectives(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(module, "MOST_SWEEPS", 20)
    results = [{"default": at, "size": at, "c": -at} for at in range(1, 30)]
    with pytest.raises(UserError, match="a front of 29 trials is too large for a volume of 3"):
        hypervolume(
            opened(told(results)),
            objectives=("default", "size:minimize", "c:minimize"),
            reference=("default:0", "size:99", "c:9"),
        )


@pytest.mark.parametrize(
    "reference, error",
    [
        (("default",), "'default' is no reference"),
        (("default:x",), "'default:x' is no reference"),
        (("default:nan",), "is no reference"),
        (("other:3",), "names 'other', which is no objective"),
    ],
)
def test_references_that_are_none(opened: Open, reference: tuple[str, ...], error: str) -> None:
    with pytest.raises(UserError, match=error):
        hypervolume(opened(told(RESULTS), objectives=BOUNDED), reference=reference)


def test_the_front_of_a_picture_is_within_the_bounds(opened: Open) -> None:
    """Mutation: a trial beyond a bound beats one that is within."""
    found = pareto_front(opened(told(RESULTS), objectives=BOUNDED))
    assert found.trials[: found.front] == [1, 2, 5]
    assert (found.results, found.on_front) == (6, 3)
    assert "not within the bounds" in found.notes[0]
