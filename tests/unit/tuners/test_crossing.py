"""Crossover of chains: which pairs have a child, what it takes over, and whose function it has."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.unit.tuners.one_by_one import finish
from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism import chain
from tuners import MorphingEvolutionTuner, RegularizedEvolutionTuner, TunerArgumentError
from tuners.crossing import crossed, obstacle, toward
from tuners.growth import Growth, applied
from tuners.testing import OpenGate, with_gate

INPUTS, CLASSES = 5, 3
LINEAR = [{"width": 4, "kernel": 0}, {"width": 3, "kernel": 0}, {"width": 4, "kernel": 0}]


def block(identity, width=4, kernel=3, skips=()):
    return {"id": identity, "width": width, "kernel": kernel, "skips": list(skips)}


def every(fitter, other, max_blocks=99):
    return toward(fitter, other, lambda: True, max_blocks)


def fresh_weights(blocks, rng):
    weights = {"head.weight": rng.normal(size=(CLASSES, blocks[-1]["width"]))}
    for place, one in enumerate(blocks):
        shape = (one["width"], chain.inputs(blocks, place, INPUTS))
        weights[f"blocks.{one['id']}.weight"] = rng.normal(size=shape)
        weights[f"blocks.{one['id']}.bias"] = rng.normal(size=one["width"])
    return weights


def outputs(blocks, weights, x):
    seen = {}
    for one in blocks:
        x = np.concatenate([x, *(seen[skip] for skip in one["skips"])], 1)
        name = f"blocks.{one['id']}"
        assert weights[f"{name}.weight"].shape == (one["width"], x.shape[1])
        x = np.maximum(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"], 0)
        seen[one["id"]] = x
    return x @ weights["head.weight"].T


def test_a_child_that_takes_everything_over():
    fitter = [block(0, 8), block(1), block(5)]
    other = [block(0, 4, 5), block(2, 6, 3), block(3, 6, 3), block(1, 7, 3, [0])]
    assert every(fitter, other) == [
        {"op": "kernel", "block": 0, "kernel": 5},
        {"op": "deeper", "after": 0, "block": 2},  # as wide as block 0 of the fitter one: 8
        {"op": "deeper", "after": 2, "block": 3},
        {"op": "wider", "block": 1, "width": 7},
        {"op": "skip", "from": 0, "into": 1},
    ]
    child = applied(fitter, every(fitter, other))
    assert [(one["id"], one["width"], one["kernel"], one["skips"]) for one in child] == [
        (0, 8, 5, []), (2, 8, 5, []), (3, 8, 5, []), (1, 7, 3, [0]), (5, 4, 3, []),
    ]  # fmt: skip


def test_nothing_is_taken_over_that_the_other_has_less_of():
    fitter = [block(0, 8, 5), block(1, 8, 4), block(2, 8, 3, [0])]
    assert every(fitter, [block(0, 4, 3), block(1, 4, 3), block(2, 4, 1)]) == []
    assert every(fitter, [block(0, 8, 5), block(1, 8, 7)]) == []  # an odd difference


def test_blocks_are_not_added_beyond_the_bound_and_skips_need_something_between():
    fitter = [block(0), block(1)]
    other = [block(0), block(2), block(3), block(1, skips=[0])]
    assert [one["op"] for one in every(fitter, other, 3)] == ["deeper", "skip"]
    assert every(fitter, other, 2) == []


def test_each_thing_is_taken_over_with_even_odds():
    fitter, other = [block(0), block(1)], [block(0, 8, 5), block(2, 6), block(1, 8)]
    rng = np.random.default_rng(0)
    drawn = [crossed(fitter, other, rng, 9) for _ in range(800)]
    for wanted in [("wider", 0), ("kernel", 0), ("deeper", 2), ("wider", 1)]:
        count = sum((one["op"], one["block"]) in [wanted] for steps in drawn for one in steps)
        assert 340 < count < 460
    again = np.random.default_rng(0)
    assert [crossed(fitter, other, again, 9) for _ in range(800)] == drawn


@pytest.mark.parametrize(
    "other, words",
    [
        ([block(7), block(0), block(1)], "the first block of the other one is not in both"),
        ([block(0, 4, 0), block(1)], "the first block of the other one is not in both"),
        ([block(0), block(1), block(2, 4, 0)], "block 2 is new, and of another kind than the one"),
        ([], "the first block"),
    ],
)
def test_pairs_without_a_child_are_refused(other, words):
    fitter = [block(0), block(1)]
    assert words in obstacle(fitter, other)
    with pytest.raises(WeightsMismatch, match=words):
        every(fitter, other)


@pytest.mark.parametrize("seed", range(40))
def test_the_child_computes_what_its_fitter_parent_computes(seed):
    rng = np.random.default_rng(seed)
    growth = Growth(LINEAR, steps=4, max_blocks=8, max_width=32)
    trunk = applied(growth.founder(), growth.child(growth.founder(), rng))
    fitter, other = (applied(trunk, growth.child(trunk, rng)) for _ in range(2))
    weights = fresh_weights(fitter, rng)
    x = rng.normal(size=(20, INPUTS))
    expected = outputs(fitter, weights, x)
    for steps in (every(fitter, other, 8), crossed(fitter, other, rng, 8)):
        child = applied(fitter, steps)
        inherited = chain.inherit(weights, fitter, steps, seed=seed)
        np.testing.assert_allclose(outputs(child, inherited, x), expected, atol=1e-9)
        mine = {one["id"]: one for one in child}
        assert len(child) <= 8
        assert all(mine[one["id"]]["width"] >= one["width"] for one in fitter)


def test_blocks_of_one_id_in_another_order_are_two_and_get_two_ids():
    fitter, other = [block(0), block(1), block(2)], [block(0), block(2), block(1), block(3)]
    steps = every(fitter, other)
    assert steps == [
        {"op": "deeper", "after": 2, "block": 4},  # a 1 of the other one's own
        {"op": "deeper", "after": 4, "block": 3},
    ]
    skipping = [*other, block(9, skips=[1])]
    assert every(fitter, skipping)[-1] == {"op": "skip", "from": 10, "into": 9}


def test_all_pairs_of_one_founder_have_a_child():
    rng = np.random.default_rng(0)
    growth = Growth(LINEAR, steps=6, max_blocks=9, max_width=32)
    for _ in range(100):
        one, other = (applied(growth.founder(), growth.child(growth.founder(), rng)) for _ in "ab")
        assert obstacle(one, other) == ""
        assert applied(one, every(one, other)) is not None


# ---- in the tuner -----------------------------------------------------------------------------


def test_evolution_crosses_the_best_of_two_samples_and_the_fitter_one_bequeaths():
    tuner = with_gate(
        MorphingEvolutionTuner(
            LINEAR, population_size=2, sample_size=1, crossover=1.0, operations=["deeper"], seed=2
        )
    )
    one = [*applied(tuner.growth.founder(), []), {**block(3, 6, 0)}]
    other = applied(tuner.growth.founder(), [{"op": "wider", "block": 1, "width": 9}])
    for n, (blocks, value) in enumerate([(one, 0.9), (other, 0.2)]):
        tuner.generate_parameters(n)
        finish(tuner, n, {"blocks": blocks, "steps": [], "save_path": f"trials/{n}"}, value)
    children = [tuner.generate_parameters(n) for n in range(2, 102)]
    of_two = [child for child in children if {"op": "wider", "block": 1, "width": 9} in
              child["steps"]]  # fmt: skip
    assert len(of_two) > 12
    for child in of_two:
        assert child["restore_path"] == "trials/0"  # however the two were drawn
        assert child["inherited"] == one
        assert applied(one, child["steps"]) == child["blocks"]
    rest = [child for child in children if child not in of_two]
    assert all([step["op"] for step in child["steps"]] == ["deeper"] for child in rest)


def test_a_pair_without_a_child_is_mutated():
    tuner = MorphingEvolutionTuner(LINEAR, crossover=1.0)
    rng = np.random.default_rng(0)
    here, there = ({"blocks": [block(0), block(1)]}, {"blocks": [block(7), block(0)]})
    assert tuner.cross(here, there, rng) is None
    assert tuner.cross(here, here, rng) is None


SPACE = {name: {"_type": "randint", "_value": [0, 100]} for name in "abcdef"}


def evolution(**arguments):
    tuner = with_gate(
        RegularizedEvolutionTuner(population_size=6, sample_size=2, seed=3, **arguments), OpenGate()
    )
    tuner.update_search_space(SPACE)
    return tuner


def test_of_a_plain_space_each_parameter_is_from_either_parent():
    tuner = evolution(crossover=1.0)
    one, other = dict.fromkeys("abcdef", 1), dict.fromkeys("abcdef", 2)
    rng = np.random.default_rng(0)
    child = tuner.cross(one, other, rng)
    assert set(child.values()) == {1, 2}
    assert tuner.cross(one, dict(one), rng) is None


def test_without_crossover_every_draw_is_as_it_was_and_with_it_a_restart_changes_nothing():
    def run(tuner, ids):
        found = {}
        for n in ids:
            found[n] = tuner.generate_parameters(n)
            finish(tuner, n, found[n], sum(found[n][name] for name in SPACE))
        return found

    assert run(evolution(), range(30)) == run(evolution(crossover=0.0), range(30))
    assert run(evolution(), range(30)) != run(evolution(crossover=0.5), range(30))
    one, stopped = evolution(crossover=0.5), evolution(crossover=0.5)
    run(one, range(15))
    stopped.restore(json.loads(json.dumps(one.state())))
    assert run(stopped, range(15, 40)) == run(one, range(15, 40))


@pytest.mark.parametrize("crossover", [-0.1, 1.5, "much"])
def test_the_share_of_crossover_is_checked(crossover):
    with pytest.raises(TunerArgumentError, match="crossover is a number"):
        evolution(crossover=crossover)
