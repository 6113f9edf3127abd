"""Tuners of architectures beside random search: networks, inheritance, costs, short searches."""

from dataclasses import replace

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from benchmarks.tuner_digits.searching import Better, Found, Outcome, search
from benchmarks.tuner_nas import (
    chains,
    contestants,
    cost,
    filling,
    fronts,
    growing,
    one_shot,
    paths,
    study,
    task,
)
from tuners import make_builtin

CHAIN = [
    {"id": 1, "width": 4, "kernel": 0, "skips": []},
    {"id": 2, "width": 3, "kernel": 0, "skips": []},
    {"id": 3, "width": 5, "kernel": 0, "skips": [1]},
]
EVERY_OPERATION = [
    {"operation": operation, "skips": skips}
    for operation, skips in zip(
        [*paths.OPERATIONS, "whole"], [[], [], [0], [0, 1], [2]], strict=True
    )
]


@pytest.fixture
def little_data(monkeypatch):
    """The same task with fewer copies of its pictures."""
    monkeypatch.setattr(task, "COPIES", 2)
    task.data.cache_clear()
    with threadpool_limits(1):  # threads that wait for one another take minutes on a busy machine
        yield
    task.data.cache_clear()


def pictures(count=7):
    return np.random.default_rng(5).normal(size=(count, task.PIXELS)).astype(np.float32)


def doubles(weights):
    return {name: one.astype(np.float64) for name, one in weights.items()}


def slopes_by_difference(weights, scores, wanted):
    """Of ``sum(scores * wanted)``, for the middle element of each of the weights."""
    for name, one in weights.items():
        at = tuple(length // 2 for length in one.shape)
        before, found = one[at], []
        for step in (1e-5, -1e-5):
            one[at] = before + step
            found.append(float((scores() * wanted).sum()))
        one[at] = before
        yield name, at, (found[0] - found[1]) / 2e-5


@pytest.mark.parametrize("network", ["chain", "path"])
def test_the_way_back_is_the_slope_of_the_way_there(network):
    dice = np.random.default_rng(3)
    seen = pictures().astype(np.float64)
    if network == "chain":
        weights = doubles(chains.fresh(CHAIN, dice))
        run = chains.through(weights, CHAIN)
    else:
        weights = doubles(paths.fresh(dice))
        run = one_shot.fixed(weights, EVERY_OPERATION)
    scores, back = run(0, seen)
    wanted = dice.normal(size=scores.shape)

    found = back(wanted)

    for name, at, slope in slopes_by_difference(weights, lambda: run(0, seen)[0], wanted):
        assert found.get(name, np.zeros_like(weights[name]))[at] == pytest.approx(slope, abs=1e-5)


def test_a_child_that_only_grew_computes_what_its_parent_did():
    dice = np.random.default_rng(4)
    weights = chains.fresh(CHAIN, dice)
    grown = [dict(block, width=block["width"] + 3) for block in CHAIN]
    grown[2]["skips"] = [1]
    grown.append({"id": 4, "width": 9, "kernel": 0, "skips": [2]})

    child = chains.taken_over(chains.fresh(grown, dice), grown, CHAIN, weights)

    before, _ = chains.through(weights, CHAIN)(0, pictures())
    after, _ = chains.through(child, grown)(0, pictures())
    assert np.allclose(before, after, atol=1e-5)


def test_a_child_that_shrank_keeps_a_part():
    dice = np.random.default_rng(4)
    weights = chains.fresh(CHAIN, dice)
    small = [dict(CHAIN[0], width=2), CHAIN[1]]

    child = chains.taken_over(chains.fresh(small, dice), small, CHAIN, weights)

    assert np.array_equal(child["blocks.1.weight"], weights["blocks.1.weight"][:2])
    assert np.array_equal(child["blocks.2.weight"], weights["blocks.2.weight"][:, :2])


def test_what_is_named_by_the_space_is_a_chain():
    named = {"depth": 3, "width1": 8, "width2": 16, "width3": 8, "skip3": 1, "width4": 64}

    blocks = chains.blocks_of(named)

    assert [(one["id"], one["width"], one["skips"]) for one in blocks] == [
        (1, 8, []),
        (2, 16, []),
        (3, 8, [1]),
    ]


def test_a_mean_path_costs_the_mean_of_all_paths():
    dice = np.random.default_rng(0)
    names = list(paths.OPERATIONS)
    drawn = [
        paths.size(
            [
                {"operation": names[int(n)], "skips": []}
                for n in dice.integers(len(names), size=paths.LAYERS)
            ]
        )
        for _ in range(3000)
    ]

    assert paths.mean_size().layers == pytest.approx(
        np.mean([one.layers for one in drawn]), rel=0.03
    )
    assert paths.mean_size().multiplications == pytest.approx(
        np.mean([one.multiplications for one in drawn]), rel=0.03
    )


def test_twice_the_steps_cost_twice():
    size = chains.size(CHAIN)

    assert cost.trained(200, size) == pytest.approx(2 * cost.trained(100, size))
    assert size.multiplications == 64 * 4 + 4 * 3 + (3 + 4) * 5 + 5 * 10


def test_trials_of_one_round_come_to_the_mean_of_what_they_changed(little_data):
    trials = one_shot.Shared(one_shot.Pick(1), steps=3, rate=0.1, together=2)
    told = {"phase": "weights", "architectures": [EVERY_OPERATION]}

    trials.run(told, None, np.random.default_rng(1))
    first = trials.versions[1]
    trials.run(told, None, np.random.default_rng(2))

    start = trials.versions[0]
    alone = one_shot.Shared(one_shot.Pick(1), steps=3, rate=0.1, together=1, versions={0: start})
    alone.run(told, None, np.random.default_rng(2))
    second = start["head"] + (alone.versions[1]["head"] - start["head"]) / 2
    assert np.allclose(
        trials.versions[2]["head"], first["head"] + second - start["head"], atol=1e-6
    )
    assert trials.newest == {"omega": 2}


@pytest.mark.parametrize("shares", [task.FEW, task.MANY], ids=["few", "many"])
def test_everybody_is_judged_by_digits_that_are_in_no_other_part(shares, little_data):
    found = task.data(shares)

    assert task.data(shares) is found
    counts = {name: len(digits) for name, (_, digits) in found.items()}
    rest = 1797 - shares.train - shares.validation
    assert counts == {
        "train": task.COPIES * shares.train,
        "validation": shares.shown * shares.validation,
        "test": shares.shown * rest,
    }
    assert counts["validation"] == cost.JUDGED  # what a look is counted as


def test_a_path_is_told_by_the_weights_of_its_own_operations():
    weights = paths.fresh(np.random.default_rng(1))
    spared = [{"operation": "two", "skips": []}] * paths.LAYERS
    before, _ = paths.scores(weights, spared, pictures())
    for name, one in weights.items():
        if ".two" not in name and name not in ("stem", "head"):
            one[:] = 7.0

    after, back = paths.scores(weights, spared, pictures())

    assert np.array_equal(before, after)
    trained = {f"{layer}.two{end}" for layer in range(paths.LAYERS) for end in ("", ".in")}
    assert set(back(after)) == trained | {"stem", "head"}


def test_what_a_bottleneck_costs_is_told_by_its_units():
    whole, eight = (
        paths.size([{"operation": name, "skips": []}] * paths.LAYERS) for name in ("whole", "eight")
    )

    saved = paths.LAYERS * (paths.WIDTH * paths.WIDTH - 2 * 8 * paths.WIDTH)
    assert whole.multiplications - eight.multiplications == saved
    assert (whole.layers, eight.layers) == (1 + paths.LAYERS, 1 + 2 * paths.LAYERS)


def test_pictures_turn_about_their_middle():
    cross = np.zeros((200, 8, 8))
    cross[:, 3:5, 3:5] = 1.0

    shown = task.distorted(cross, np.random.default_rng(0)).mean(0)

    assert shown[3:5, 3:5].min() > 0.2
    assert abs(shown[0].mean()) < 0.1


def test_what_was_judged_best_is_trained_first_and_each_but_once():
    relu, tanh, same = ([{"operation": name, "skips": []}] for name in ("relu", "tanh", "same"))
    pick = one_shot.Pick(
        4, judged=[(same, 0.9), (tanh, 0.5), (relu, 0.6), (tanh, 0.7), (relu, 0.6)]
    )

    assert pick.ranked == [tanh, relu]


# ---- the study in a short form -----------------------------------------------------------------


@pytest.mark.parametrize("one", contestants.CONTESTANTS, ids=lambda one: one.label)
def test_every_search_of_the_study_spends_its_budget_and_finds_something(one, little_data):
    fewer = {
        "SPOS": {"supernet": {"steps": 60}},
        "ENAS": {"samples": 4, "controller_trials": 16, "batch": 8},
    }
    arguments = {**one.arguments, **fewer.get(one.tuner, {})}
    short = replace(one, steps=20, retrained=200, arguments=arguments)

    done = contestants.search_of(short, seed=100, budget=0.12)

    assert 0.06 < done.counted_s <= 0.12
    assert done.found.valid > 0.12  # told by chance: 0.1


class Lengths:
    """Trials that cost a unit a step, and a quarter to be judged."""

    def __init__(self):
        self.run_for = []

    def of(self, steps):
        return self.Some(self, steps)

    class Some:
        def __init__(self, owner, steps):
            self.owner, self.steps = owner, steps

        def cost(self, parameters):
            return self.steps + 0.25

        def run(self, parameters, inherited, dice):
            self.owner.run_for.append(self.steps)
            return Outcome(None, 0.5, 0.5)


@pytest.mark.parametrize("budget, run_for", [(25.0, [10, 10, 4]), (21.0, [10, 10])])
def test_the_last_trial_is_as_long_as_what_is_left(budget, run_for):
    lengths = Lengths()
    tuner = make_builtin("Random", {"seed": 1})
    tuner.update_search_space({"x": {"_type": "uniform", "_value": [0, 1]}})

    search(tuner, filling.Filling(lengths.of, 10, budget), seed=1, budget=budget, workers=1)

    assert lengths.run_for == run_for


def test_children_go_on_from_their_parents(little_data):
    cheap = {"depth": 1, "width1": 8, "skip3": 0}
    first = growing.Training(steps=30, rate=0.1).run(cheap, None, np.random.default_rng(1))

    heir = growing.Training(steps=1, rate=0.0).run(cheap, first.state, np.random.default_rng(2))

    assert heir.valid == first.valid
    assert np.array_equal(heir.state[1]["head.weight"], first.state[1]["head.weight"])


def test_two_objectives_are_worth_the_area_of_what_is_not_dominated(little_data):
    trials = fronts.TwoObjectives(growing.Training(steps=10, rate=0.1))
    small, large = ({"depth": 1, "width1": width} for width in (8, 64))

    first = trials.run(large, None, np.random.default_rng(1))
    both = trials.run(small, None, np.random.default_rng(1))

    assert fronts.smallness(chains.SMALLEST) == 1.0
    first_area, both_area = (one.valid for one in trials.path)
    assert first_area == pytest.approx(first.valid * fronts.smallness(chains.blocks_of(large)))
    assert both_area > first_area
    assert both.told["size"] < first.told["size"]


def test_the_baseline_is_taken_from_its_own_space():
    found = [Found((Better(1.0, value, value),)) for value in (0.5, 0.7)]
    pairs = [
        (contestants.random_search("chains", 10), [contestants.Done(found[0], 2.0, 3.0)]),
        (contestants.random_search("chains", 20), [contestants.Done(found[1], 2.0, 5.0)]),
        (contestants.CONTESTANTS[0], [contestants.Done(found[1], 2.0, 2.0)]),
    ]

    result = study.result("chains", pairs)

    assert result.baseline_name == "random search, 20 steps"
    assert result.took == {"random search": 2.0, "RegularizedEvolution": 1.0}
    (row,) = study.rows_of(result, 2.0)
    assert row["measured"] == "better on 0 of 1"
    assert "1.00 × that against 2.00 ×" in row["detail"]
