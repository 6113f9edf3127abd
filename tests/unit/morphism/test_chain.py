"""Steps that do not fit a chain, and linear blocks."""

from __future__ import annotations

import numpy as np
import pytest

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism import chain

BLOCKS = [
    {"id": 0, "width": 4, "kernel": 3},
    {"id": 1, "width": 4, "kernel": 3, "skips": []},
    {"id": 2, "width": 5, "kernel": 0, "skips": []},
    {"id": 3, "width": 5, "kernel": 0, "skips": []},
]


@pytest.mark.parametrize(
    "step, words",
    [
        ({"op": "wider", "block": 0, "width": 4}, "as wide already"),
        ({"op": "wider", "block": 9, "width": 4}, "no block 9"),
        ({"op": "kernel", "block": 0, "kernel": 4}, "does not fit"),
        ({"op": "kernel", "block": 0, "kernel": 1}, "does not fit"),
        ({"op": "kernel", "block": 2, "kernel": 2}, "does not fit"),
        ({"op": "deeper", "after": 0, "block": 1}, "a block of that id"),
        ({"op": "skip", "from": 0, "into": 1}, "nothing lies between"),
        ({"op": "skip", "from": 1, "into": 0}, "nothing lies between"),
        ({"op": "skip", "from": 1, "into": 3}, "cannot be joined"),
        ({"op": "narrower"}, "there are wider, kernel, deeper, skip"),
    ],
)
def test_steps_that_do_not_fit_are_refused(step, words):
    with pytest.raises(WeightsMismatch, match=words):
        chain.grown(BLOCKS, step)


def test_a_step_leaves_the_parent_as_it_is():
    before = [dict(block) for block in BLOCKS]
    chain.grown(BLOCKS, {"op": "wider", "block": 1, "width": 9})
    chain.grown(BLOCKS, {"op": "deeper", "after": 1, "block": 9})
    assert before == BLOCKS


def test_flattened_pictures_into_a_linear_block_and_skips_between_linear_ones():
    rng = np.random.default_rng(0)
    weights = {
        "blocks.1.weight": rng.normal(size=(4, 4, 3, 3)),
        "blocks.2.weight": rng.normal(size=(5, 4 * 6)),
        "blocks.3.weight": rng.normal(size=(5, 5)),
        "head.weight": rng.normal(size=(2, 5)),
    }
    steps = [
        {"op": "wider", "block": 1, "width": 7},
        {"op": "deeper", "after": 2, "block": 4},
        {"op": "skip", "from": 2, "into": 3},
        {"op": "wider", "block": 2, "width": 6},
    ]
    child = chain.inherit(weights, BLOCKS, steps)

    def run(w, x, grown):
        x = np.maximum(x @ w["blocks.2.weight"].T, 0)
        skip = x
        if grown:
            x = np.concatenate([np.maximum(x @ w["blocks.4.weight"].T, 0), skip], 1)
        return np.maximum(x @ w["blocks.3.weight"].T, 0) @ w["head.weight"].T

    channels = rng.normal(size=(9, 4, 6))
    copies = [0, 1, 2, 3, *np.random.default_rng((0, 0)).integers(4, size=3)]
    wide = channels[:, copies]
    np.testing.assert_allclose(
        run(child, wide.reshape(9, -1), True), run(weights, channels.reshape(9, -1), False)
    )


def test_inputs_count_the_block_before_and_the_skips():
    blocks = [{"id": n, "width": n + 1, "kernel": 3, "skips": []} for n in range(4)]
    blocks[3]["skips"] = [0, 1]
    assert [chain.inputs(blocks, place, 3) for place in range(4)] == [3, 1, 2, 3 + 1 + 2]
