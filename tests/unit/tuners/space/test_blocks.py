"""Lists of blocks: how they are drawn, changed, listed and judged, and which tuners take them."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.tuners.space.written import PARAMETERS, SPACES, Forms, is_inside, is_of
from tuners import RandomTuner, make_builtin
from tuners.builtin import BUILTIN_NAMES, fold
from tuners.by_run import ByRunTuner
from tuners.catalogue import EXAMPLE_ARGUMENTS
from tuners.errors import NoMoreTrialError
from tuners.space import SpaceError, as_json, conform, grid, mutate, parse, perturb, sample, size
from tuners.space import parameters as bq
from tuners.space.constraints import Constraint
from tuners.space.sampling import is_legal

BLOCK = {"op": bq.choice("conv3", "conv5", "pool"), "width": bq.int(8, 64)}
CELLS = bq.blocks(1, 5, BLOCK)
SEEDS = st.integers(0, 2**32 - 1)


def block(op: str, width: int = 8) -> dict[str, Any]:
    return {"op": op, "width": width}


# -- every kind of parameter, and lists of all of them --------------------------------------------


@given(SPACES, SEEDS)
def test_what_is_drawn_or_changed_is_of_the_space(space: dict[str, Forms], seed: int) -> None:
    """Mutation: a list that is shorter than its lower bound after a block was removed."""
    whole = parse({name: one.python for name, one in space.items()})
    rng = np.random.default_rng(seed)
    parent = sample(whole, rng)
    before = json.dumps(parent)
    for values in (parent, mutate(whole, parent, rng), perturb(whole, parent, rng)):
        assert is_inside(whole, values)
        assert json.loads(json.dumps(values)) == values
        assert all(is_legal(one, values[name]) for name, one in whole.dimensions)
        assert conform(whole, values, rng) == values
    assert json.dumps(parent) == before


@given(PARAMETERS, SEEDS)
def test_define_by_run_means_the_same(one: Forms, seed: int) -> None:
    """Mutation: a list is suggested by the number of its blocks alone."""
    ((_, read),) = parse({"p": one.short}).dimensions
    by_run = ByRunTuner(tuner="Random", seed=seed)
    by_run.generate_parameters(0)
    value = by_run.suggest(0, "p", one.python)
    assert is_of(read, value)
    assert RandomTuner(seed).suggest(0, "p", read) == value
    by_run.fix(0, "p", read, value)


# -- draws and changes ----------------------------------------------------------------------------


def test_every_length_is_as_likely_and_each_block_is_drawn_by_itself() -> None:
    """Mutation: the upper bound is left out, or all blocks are one."""
    rng = np.random.default_rng(1)
    drawn = [sample({"c": bq.blocks(2, 5, bq.choice("a", "b"))}, rng)["c"] for _ in range(2000)]
    lengths = Counter(map(len, drawn))
    assert set(lengths) == {2, 3, 4, 5}
    assert min(lengths.values()) > 420  # 500 expected, with a deviation of 19
    pairs = Counter(tuple(one) for one in drawn if len(one) == 2)
    assert len(pairs) == 4
    assert min(pairs.values()) > 80  # 125 expected, with a deviation of 10


def kind_of_change(old: list[Any], new: list[Any]) -> str:
    if len(new) == len(old) + 1:
        return "insert" if any(new[:at] + new[at + 1 :] == old for at in range(len(new))) else "?"
    if len(new) == len(old) - 1:
        return "remove" if any(old[:at] + old[at + 1 :] == new for at in range(len(old))) else "?"
    unlike = [at for at, (one, other) in enumerate(zip(old, new, strict=True)) if one != other]
    if len(unlike) == 1:
        before, after = old[unlike[0]], new[unlike[0]]
        return "change" if sum(before[name] != after[name] for name in before) == 1 else "?"
    first, second = unlike
    swapped = second == first + 1 and new[first] == old[second] and new[second] == old[first]
    return "swap" if swapped else "?"


@pytest.mark.parametrize("move", [mutate, perturb])
@pytest.mark.parametrize(
    "low, high, parent, kinds",
    [
        (1, 5, ["conv3", "conv5", "pool"], {"insert", "remove", "change", "swap"}),
        (3, 3, ["conv3", "conv5", "pool"], {"change", "swap"}),
        (1, 3, ["conv3", "conv5", "pool"], {"remove", "change", "swap"}),
        (1, 3, ["pool", "pool"], {"insert", "remove", "change"}),
        (1, 3, ["pool"], {"insert", "change"}),
        (0, 3, [], {"insert"}),
        (0, 3, ["pool"], {"insert", "remove", "change"}),
    ],
)
def test_a_list_gets_one_change_and_each_that_is_possible_is_as_likely(
    move: Any, low: int, high: int, parent: list[str], kinds: set[str]
) -> None:
    """Mutation: neighbours that are alike are swapped, or a block is removed from the end only."""
    space = {"cells": bq.blocks(low, high, BLOCK)}
    rng = np.random.default_rng(3)
    old = [block(op) for op in parent]
    found = Counter(
        kind_of_change(old, move(space, {"cells": old}, rng)["cells"]) for _ in range(400)
    )
    assert set(found) == kinds
    assert min(found.values()) > 400 / len(kinds) * 0.7
    assert old == [block(op) for op in parent]


def test_changes_reach_every_place_and_every_parameter() -> None:
    rng = np.random.default_rng(5)
    old = [block("conv3"), block("conv5"), block("pool")]
    grown, changed = Counter(), Counter()  # type: ignore[var-annotated]
    for _ in range(600):
        new = mutate({"cells": CELLS}, {"cells": old}, rng)["cells"]
        if len(new) == 4:
            grown.update(at for at in range(4) if new[:at] + new[at + 1 :] == old)
        elif kind_of_change(old, new) == "change":
            changed.update(
                (at, name) for at in range(3) for name in BLOCK if new[at][name] != old[at][name]
            )
    assert set(grown) == {0, 1, 2, 3}
    assert set(changed) == {(at, name) for at in range(3) for name in BLOCK}
    assert min(changed.values()) > 10  # 25 expected


def test_a_list_is_one_dimension_beside_the_others() -> None:
    """Mutation: each parameter of each block is a dimension of its own."""
    space = {"lr": bq.uniform(0, 1), "cells": CELLS}
    rng = np.random.default_rng(2)
    parent = {"lr": 0.5, "cells": [block("pool", 9)] * 5}
    same = sum(mutate(space, parent, rng)["cells"] == parent["cells"] for _ in range(400))
    assert 150 < same < 250


def test_blocks_may_be_choices_values_and_lists() -> None:
    nested = bq.choice({"conv": {"kernel": bq.choice(3, 5)}, "pool": {}})
    stages = bq.blocks(1, 2, {"ops": bq.blocks(0, 2, nested), "width": bq.int(1, 2)})
    rng = np.random.default_rng(0)
    space = parse({"s": stages})
    parent, seen = sample(space, rng), set()
    for _ in range(1500):
        parent = mutate(space, parent, rng)
        assert is_inside(space, parent)
        seen.add(json.dumps(parent["s"][0]["ops"]))
    # One of none, three of one block, nine of two.
    assert len(seen) == 13


def test_a_list_that_has_one_value_stays() -> None:
    space = {"c": bq.blocks(2, 2, bq.choice("a"))}
    rng = np.random.default_rng(0)
    assert mutate(space, {"c": ["a", "a"]}, rng) == {"c": ["a", "a"]}
    assert perturb(space, {"c": ["a", "a"]}, rng) == {"c": ["a", "a"]}


def test_lists_outlive_a_change_of_the_space() -> None:
    """Mutation: one block that is no longer legal costs the whole list."""
    rng = np.random.default_rng(0)
    old = {"cells": [block("conv3", 8), block("gone", 9), block("pool", 99)]}
    space = parse({"cells": bq.blocks(4, 5, BLOCK)})
    first, second, third, fourth = conform(space, old, rng)["cells"]
    assert first == block("conv3", 8)
    assert second["width"] == 9
    assert third["op"] == "pool"
    assert is_inside(space, {"cells": [first, second, third, fourth]})
    assert conform(parse({"cells": bq.blocks(1, 2, BLOCK)}), old, rng)["cells"][0] == first
    assert len(conform(parse({"cells": bq.blocks(1, 2, BLOCK)}), old, rng)["cells"]) == 2
    assert conform(parse({"cells": bq.blocks(1, 1, bq.int(1, 1))}), old, rng) == {"cells": [1]}
    assert is_inside(space, conform(space, {"cells": "conv3"}, rng))


@pytest.mark.parametrize(
    "value, legal",
    [
        ([block("pool")], True),
        ((block("pool"),), True),
        ([], False),
        ([block("pool")] * 6, False),
        ([block("gone")], False),
        ([block("pool", 7)], False),
        ([{"op": "pool"}], False),
        ([{**block("pool"), "more": 1}], False),
        (["pool"], False),
        ("pool", False),
        (3, False),
        (None, False),
    ],
)
def test_what_is_legal(value: object, legal: bool) -> None:
    assert is_legal(CELLS, value) is legal


def test_options_within_blocks_are_legal_as_a_whole() -> None:
    layers = bq.blocks(1, 2, bq.choice({"conv": {"kernel": bq.choice(3, 5)}, "pool": {}}))
    assert is_legal(layers, [{"_name": "conv", "kernel": 5}, {"_name": "pool"}])
    assert not is_legal(layers, [{"_name": "conv", "kernel": 4}])
    assert not is_legal(layers, [{"_name": "conv"}])
    assert not is_legal(layers, [{"_name": "pool", "kernel": 3}])


# -- grids and conditions -------------------------------------------------------------------------


def test_a_grid_has_every_list_once() -> None:
    space = {"c": bq.blocks(0, 2, bq.choice("a", "b")), "n": bq.int(1, 2)}
    assert [point["c"] for point in grid(space) if point["n"] == 1] == [
        [], ["a"], ["b"], ["a", "a"], ["a", "b"], ["b", "a"], ["b", "b"],
    ]  # fmt: skip
    assert size(space) == 14
    steps = {"c": bq.blocks(1, 2, {"w": bq.quniform(0, 1, 0.5)})}
    points = list(grid(steps, spread=True))
    assert len(points) == len({json.dumps(point) for point in points}) == size(steps) == 12


@pytest.mark.parametrize(
    "blocks, words",
    [
        (bq.blocks(1, 2, bq.uniform(0, 1)), "numbers without steps"),
        (bq.blocks(1, 1000, bq.choice(1, 2, 3)), "too many combinations"),
        (bq.blocks(1, 5, BLOCK), "too many combinations"),
    ],
)
def test_a_grid_of_endless_lists_is_refused(blocks: Any, words: str) -> None:
    """Mutation: the lists are made before they are counted, which takes all memory."""
    below = {"o": bq.choice({"a": {"cells": blocks}, "b": {}})}
    for space in ({"cells": blocks}, below):
        assert words in make_builtin("GridSearch").handles(space)
        with pytest.raises(SpaceError, match=f"'cells' is a list of blocks with {words}"):
            next(grid(space))


@pytest.mark.parametrize(
    "text, holds",
    [
        ("len(layers) == 2", True),
        ("len(layers) * 8 <= 15", False),
        ("'pool' in layers", True),
        ("'conv' not in layers", False),
        ("layers == ['conv', 'pool']", True),
        ("max(widths) - min(widths) == 56", True),
        ("16 in widths", False),
        # What cannot be computed.
        ("layers < 3", False),
        ("len(n) < 3", False),
        ("layers * 2 == layers", False),
    ],
)
def test_conditions_about_lists(text: str, holds: bool) -> None:
    layers = [{"_name": "conv", "kernel": 3}, {"_name": "pool"}]
    values = {"layers": layers, "widths": [8, 64], "n": 3}
    assert Constraint.of(text).holds(values) is holds


def test_no_condition_names_what_is_in_a_block() -> None:
    with pytest.raises(SpaceError, match=r"names 'cells\.op', which is no parameter"):
        bq.space({"cells": CELLS}, ["cells.op != 'pool'"])


# -- tuners ---------------------------------------------------------------------------------------

SEARCHED = {"cells": bq.blocks(1, 4, {"op": bq.choice("conv3", "conv5", "pool")})}
MODELS = {"BOHB", "SPOS", "TPE", "CMA-ES", "GP", "QMC", "NSGA-II", "NSGA-III", "Optuna"}
NO_SPACE = {"ENAS", "Schedule"}


@pytest.mark.parametrize("name", sorted({*BUILTIN_NAMES} - NO_SPACE))
def test_each_tuner_searches_lists_or_says_that_it_cannot(name: str) -> None:
    """Mutation: a sampler takes a list for a choice."""
    tuner = make_builtin(name, EXAMPLE_ARGUMENTS.get(fold(name), {}))
    written = as_json(bq.space({**SEARCHED, "n": bq.int(1, 8)}, ["len(cells) * n <= 16"]))
    if name in MODELS:
        assert "cells" in tuner.handles(written)
        below = {"o": bq.choice({"a": SEARCHED, "b": {}}), "x": bq.uniform(0, 1)}
        assert tuner.handles(as_json(below))
        return
    assert tuner.handles(written) == ""
    tuner.update_search_space(written)
    for number in range(8):
        try:
            parameters = tuner.generate_parameters(number)
        except NoMoreTrialError:
            continue
        assert is_inside(parse(written), parameters), parameters
        assert len(parameters["cells"]) * parameters["n"] <= 16
        tuner.receive_trial_result(number, parameters, float(len(parameters["cells"])))
        tuner.trial_end(number, True)


def test_evolution_finds_an_architecture_that_chance_does_not() -> None:
    """One in 3**8 lists of eight blocks, and every eighth list has eight."""
    space = {"cells": bq.blocks(1, 8, bq.choice("conv3", "conv5", "pool"))}

    def worth(cells: list[str]) -> float:
        wanted = ["conv3", "conv5"] * 4
        return sum(one == other for one, other in zip(cells, wanted, strict=False)) - abs(
            len(cells) - 8
        )

    def best(name: str, arguments: dict[str, Any]) -> float:
        tuner = make_builtin(name, arguments)
        tuner.update_search_space(space)
        found = []
        for number in range(300):
            parameters = tuner.generate_parameters(number)
            found.append(worth(parameters["cells"]))
            tuner.receive_trial_result(number, parameters, found[-1])
            tuner.trial_end(number, True)
        return max(found)

    evolved = best("RegularizedEvolution", {"population_size": 20, "sample_size": 8})
    assert evolved > best("Random", {})
    assert evolved >= 7
