"""What plots show of known functions, and of everything that trials may hold."""

from __future__ import annotations

import math
import random
import statistics
from typing import Any

import msgspec
import pytest

from dispatcher import queries
from dispatcher.errors import UserError
from dispatcher.plots import sampling
from dispatcher.plots.axes import MOST_CHOICES, placed, scaled, unscaled
from dispatcher.plots.contour import PLACES, REACH, WIDTH, contour, surface
from dispatcher.plots.front import front_of, pareto_front
from dispatcher.plots.kinds import KINDS, data_of
from dispatcher.plots.parallel import parallel
from dispatcher.plots.sampling import by_result, sample_of, spread
from dispatcher.plots.slices import slices
from dispatcher.queries import OptimizeMode
from tests.support.made_store import Told
from tests.unit.plots.conftest import Open


def two(many: int = 60) -> list[Told]:
    draw = random.Random(1)
    made: list[Told] = []
    for _ in range(many):
        own = {
            "x": draw.random(),
            "y": draw.choice(["a", "b", "c"]),
            "z": 10 ** draw.uniform(-4, 0),
        }
        made.append((own, 2 * own["x"] + 0.5, None))
    return made


# -- axes ------------------------------------------------------------------------------------


def test_axes_of_numbers_magnitudes_and_choices() -> None:
    linear = placed("a", [0.0, 1.0, 2.0, 3.0, 4.0, 5.0, 10.0, None])
    assert (linear.axis.kind, linear.axis.low, linear.axis.high) == ("number", 0.0, 10.0)
    assert linear.axis.missing == 1
    assert scaled(linear.axis, [0.0, 5.0, 10.0]).tolist() == [0.0, 0.5, 1.0]
    wide = placed("b", [1e-4, 1e-3, 1e-2, 1e-1, 0.5, 0.6, 1.0])
    assert wide.axis.kind == "log"
    assert scaled(wide.axis, [1e-4, 1e-2, 1.0]).tolist() == pytest.approx([0.0, 0.5, 1.0])
    assert unscaled(wide.axis, 0.5) == pytest.approx(1e-2)
    declared = placed("c", [1, 2, 3, 4, 5, 6, 7], logarithmic=True)
    assert declared.axis.kind == "log"
    few = placed("d", [64, 16, 128, 16])
    assert (few.axis.kind, few.axis.choices, few.at) == (
        "choice",
        ["16", "64", "128"],
        [1, 0, 2, 0],
    )


@pytest.mark.parametrize(
    "values",
    [
        [10**400, 1, 2],
        [-1e308, 1e308, 0, 1, 2, 3, 4, 5],
        ["a", 1, None, True, [1, 2], {"deep": 1}],
        [None, None],
        [0.5] * 7,
        [-1, 0, 1, 2, 3, 4, 5, 6],
        [float(f"1e-{at}") for at in range(300)],
    ],
    ids=["huge", "far", "mixed", "none", "one", "signed", "tiny"],
)
def test_any_values_have_places(values: list[Any]) -> None:
    axis, at = placed("p", values)
    shares = scaled(axis, at)
    for value, share in zip(values, shares, strict=True):
        assert math.isnan(share) if value is None else 0.0 <= share <= 1.0


def test_choices_beyond_the_bound_share_a_place() -> None:
    values = [f"word {at:03}" for at in range(100)] + ["word 007"] * 5
    axis, at = placed("p", values)
    assert len(axis.choices) == MOST_CHOICES
    assert axis.choices[-1] == "61 others"
    assert axis.choices[int(at[7] or 0)] == "word 007"


def test_a_part_of_many_trials_holds_the_best() -> None:
    values = [float(at % 1000) for at in range(5000)]
    taken = spread(by_result(values, OptimizeMode.MAXIMIZE), 100, 20)
    assert len(taken) == len(set(taken)) == 100
    assert [values[at] for at in taken[:5]] == [999.0] * 5
    assert min(values[at] for at in taken) < 20


# -- contour -----------------------------------------------------------------------------------


def test_the_means_of_a_contour_are_those_of_the_formula(opened: Open) -> None:
    reader = opened([({"x": one["x"], "z": one["z"]}, value, None) for one, value, _ in two(40)])
    found = contour(reader, x="x", y="z")
    assert found.x is not None
    assert found.y is not None
    assert (found.x.kind, found.y.kind) == ("number", "log")
    across = scaled(found.x, found.at_x)
    up = scaled(found.y, found.at_y)
    blank = 0
    for row in range(0, PLACES, 4):
        for column in range(0, PLACES, 4):
            here = (column / (PLACES - 1), row / (PLACES - 1))
            weights = [
                math.exp(-((a - here[0]) ** 2 + (b - here[1]) ** 2) / (2 * WIDTH**2))
                for a, b in zip(across, up, strict=True)
            ]
            mean = found.grid[row][column]
            if mean is None:
                assert sum(weights) < math.exp(-(REACH**2) / 2)
                blank += 1
            else:
                total = sum(w * v for w, v in zip(weights, found.values, strict=True))
                assert mean == pytest.approx(total / sum(weights), rel=1e-9)
    assert 0 < blank < 81


def test_a_constant_stays_one_and_choices_do_not_mix(opened: Open) -> None:
    trials: list[Told] = [
        ({"kind": kind, "depth": depth}, 10.0 * depth + (kind == "b") + extra, None)
        for kind in ("a", "b")
        for depth in (1, 2, 3)
        for extra in (0.0, 0.5)
        if (kind, depth) != ("b", 3)
    ]
    found = contour(opened(trials), x="kind", y="depth")
    assert found.grid == [[10.25, 11.25], [20.25, 21.25], [30.25, None]]
    assert found.lines == []
    x, y = placed("x", [at / 9 for at in range(10)]), placed("y", [at**2 for at in range(10)])
    _, _, means = surface(x, y, [1e9] * 10)
    assert {one for one in means.flatten() if not math.isnan(one)} == {1e9}


def test_lines_lie_where_the_mean_is_their_level(opened: Open) -> None:
    pytest.importorskip("contourpy")
    trials: list[Told] = [
        ({"x": x / 20, "y": y / 20}, x / 20, None) for x in range(21) for y in range(21)
    ]
    found = contour(opened(trials), x="x", y="y")
    assert len(found.lines) >= 7
    for line in found.lines:
        if 0.2 < line.level < 0.8:
            assert line.x == pytest.approx([line.level] * len(line.x), abs=0.01)


def test_a_contour_needs_two_parameters(opened: Open) -> None:
    reader = opened(two(12))
    with pytest.raises(UserError, match="two different parameters"):
        contour(reader, x="x", y="x")
    with pytest.raises(UserError, match="do not differ in a parameter 'nope'") as refused:
        contour(reader, x="nope")
    assert "they differ in: x, y, z" in refused.value.hint
    alone = contour(opened([({"x": at}, at, None) for at in range(12)]))
    assert (alone.x, alone.grid) == (None, [])
    assert "fewer than two parameters" in alone.notes[-1]


# -- slices, parallel --------------------------------------------------------------------------


def test_medians_of_a_slice_are_exact(opened: Open) -> None:
    trials = two(200)
    found = slices(opened(trials), parameters=["y", "x"])
    by_kind = found.slices[0]
    assert by_kind.axis.choices == ["a", "b", "c"]
    for point in by_kind.trend:
        there = [
            value for own, value, _ in trials if own["y"] == by_kind.axis.choices[int(point.at)]
        ]
        assert (point.median, point.count) == (statistics.median(there), len(there))
    line = found.slices[1]
    assert sum(point.count for point in line.trend) == 200
    assert all(abs(point.median - (2 * point.at + 0.5)) < 2 / 12 for point in line.trend)
    assert found.rest == ["z"]
    assert found.chosen_by == "named"


def test_lines_of_parallel_coordinates_end_with_the_best(opened: Open) -> None:
    reader = opened(two(40), optimizeMode="minimize")
    found = parallel(reader, parameters=["z", "x"])
    assert [axis.name for axis in found.axes] == ["z", "x"]
    assert found.values[-1] == min(found.values)
    assert found.trials[-1] == found.best
    assert [len(one) for one in found.at] == [40, 40]
    by_trial = dict(zip(found.trials, found.at[1], strict=True))
    assert all(by_trial[at] == own["x"] for at, (own, _, _) in enumerate(two(40)))


def test_missing_parameters_have_no_place(opened: Open) -> None:
    trials: list[Told] = [
        ({"a": at, **({"deep": {"b": at}} if at % 3 == 0 else {})}, at, None) for at in range(30)
    ]
    found = parallel(opened(trials), parameters=["deep.b"])
    assert found.axes[0].missing == 20
    assert sum(one is None for one in found.at[0]) == 20


def test_of_lists_of_blocks_the_length_is_shown(opened: Open) -> None:
    """Mutation: each list is a choice of its own, and a plot shows forty of them."""
    trials: list[Told] = [
        ({"cells": [{"op": "conv", "width": at}] * (1 + at % 9), "n": [at]}, float(at), None)
        for at in range(45)
    ]
    space = {"cells": {"_type": "blocks", "_value": [1, 9, {}]}}
    reader = opened(trials, searchSpace=space)
    found = parallel(reader, parameters=["cells", "n"])
    cells, others = found.axes[0], found.axes[1]
    assert (cells.name, cells.kind, cells.low, cells.high) == ("cells", "number", 1.0, 9.0)
    assert others.kind == "choice"
    assert found.notes[-1] == "of cells the number of blocks is shown"
    assert "blocks" not in " ".join(sample_of(opened(trials)).notes)


# -- results -----------------------------------------------------------------------------------


def test_results_that_are_no_numbers_are_left_out(opened: Open) -> None:
    told: list[Any] = [1.0, {"default": 2.0, "loss": 5, "deep": {"size": 1}}, "NaN", {"loss": "x"}]
    reader = opened([({"x": at}, one, None) for at, one in enumerate(told)])
    assert sample_of(reader).trials == [0, 1]
    by_loss = sample_of(reader, "loss")
    assert (by_loss.trials, by_loss.values) == ([1], [5.0])
    assert sample_of(reader, "deep.size").trials == [1]
    assert by_loss.metrics == ["default", "loss", "deep.size"]
    with pytest.raises(UserError, match="no result holds a number 'accuracy'") as refused:
        sample_of(reader, "accuracy")
    assert refused.value.hint == "there are: default, loss, deep.size"


def test_bounds_on_trials_and_names(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sampling, "MOST_TRIALS", 20)
    monkeypatch.setattr(sampling, "MOST_NAMES", 5)
    trials: list[Told] = [
        ({f"p{name}": at + name for name in range(8)} | {"n" * 300: at}, at, None)
        for at in range(60)
    ]
    sample = sample_of(opened(trials))
    assert (sample.results, len(sample.trials), len(sample.columns)) == (60, 20, 5)
    assert sample.trials[-1] == 59
    assert "20 of 60 results" in sample.notes[0]
    assert "4 more parameters are left out" in sample.notes[1]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("many", [0, 1, 2])
def test_any_plot_of_almost_nothing(opened: Open, kind: str, many: int) -> None:
    if kind in ("importance",):
        pytest.importorskip("sklearn")
    reader = opened(two(many))
    found = data_of(reader, kind, {"objectives": ("default",) if kind == "x" else ()})
    assert msgspec.json.decode(msgspec.json.encode(found))["experiment"] == reader.id


def test_a_kind_that_is_not_there(opened: Open) -> None:
    with pytest.raises(UserError, match="there is no plot 'pie'"):
        data_of(opened([]), "pie", {})


# -- front -------------------------------------------------------------------------------------


def objectives(many: int, seed: int = 1) -> list[Told]:
    draw = random.Random(seed)
    return [
        (
            {"x": at},
            {name: draw.randint(0, 9) for name in ("default", "accuracy", "size")},
            None,
        )
        for at in range(many)
    ]  # fmt: skip


def test_the_front_is_what_no_other_one_beats(opened: Open) -> None:
    trials = objectives(80)
    found = pareto_front(
        opened(trials), objectives=("accuracy:maximize", "size:minimize", "default")
    )
    points = [(t["accuracy"], -t["size"], t["default"]) for _, t, _ in trials]

    def beaten(at: int) -> bool:
        here = points[at]
        return any(
            all(a >= b for a, b in zip(other, here, strict=True)) and (other != here or n < at)
            for n, other in enumerate(points)
            if n != at
        )

    expected = {at for at in range(80) if not beaten(at)}
    assert set(found.trials[: found.front]) == expected
    assert found.on_front == len(expected)
    assert len(found.trials) == 80
    firsts = [point[0] for point in found.points[: found.front]]
    assert firsts == sorted(firsts, reverse=True)


def test_the_front_of_the_tuners_objectives_is_that_of_best(opened: Open) -> None:
    wanted = {"accuracy": "maximize", "size": "minimize"}
    reader = opened(objectives(60), tuner={"classArgs": {"objectives": wanted}})
    found = pareto_front(reader)
    assert found.trials[: found.front] == [one.id for one in queries.front(reader)]
    assert [one.name for one in found.objectives] == ["accuracy", "size"]


def test_what_is_no_front(opened: Open) -> None:
    reader = opened(objectives(5))
    assert pareto_front(reader).objectives == []
    assert "name several" in pareto_front(reader).notes[0]
    with pytest.raises(UserError, match="2 to 6 objectives, not of 1"):
        pareto_front(reader, objectives=("size",))
    with pytest.raises(UserError, match="no result holds a number 'nope'"):
        pareto_front(reader, objectives=("size", "nope"))
    import numpy as np

    assert front_of(np.empty((0, 2))) == []
