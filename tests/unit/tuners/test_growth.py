"""Which steps are drawn, and what is no block."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from tuners import TunerArgumentError
from tuners.growth import Growth, applied

TWO = [{"width": 4, "kernel": 3}, {"width": 8, "kernel": 3}, {"width": 8, "kernel": 5}]


def drawn(growth, blocks=None, count=600):
    rng = np.random.default_rng(0)
    blocks = growth.founder() if blocks is None else blocks
    return [growth.child(blocks, rng) for _ in range(count)]


def test_operations_are_equally_likely_and_so_are_their_places():
    steps = [one for (one,) in drawn(Growth(TWO))]
    operations = Counter(step["op"] for step in steps)
    assert set(operations) == {"wider", "kernel", "deeper", "skip"}
    assert max(operations.values()) < 1.4 * min(operations.values())
    places = Counter(step["after"] for step in steps if step["op"] == "deeper")
    assert set(places) == {0, 1, 2}
    assert {step["block"] for step in steps if step["op"] == "deeper"} == {3}
    assert {(s["from"], s["into"]) for s in steps if s["op"] == "skip"} == {(0, 2)}
    assert {(s["block"], s["width"]) for s in steps if s["op"] == "wider"} == {
        (0, 8),
        (1, 16),
        (2, 16),
    }


def test_bounds_hold_and_when_nothing_is_possible_there_are_no_steps():
    growth = Growth(TWO, steps=60, max_blocks=4, max_width=16, max_kernel=5)
    for steps in drawn(growth, count=20):
        blocks = applied(growth.founder(), steps)
        assert len(steps) < 60
        assert len(blocks) == 4
        assert max(block["width"] for block in blocks) == 16
        assert {block["kernel"] for block in blocks} == {5}
        assert growth.child(blocks, np.random.default_rng(0)) == []


def test_only_what_was_asked_for_is_drawn():
    steps = drawn(Growth(TWO, operations=["deeper", "skip"], steps=3), count=50)
    assert {step["op"] for some in steps for step in some} == {"deeper", "skip"}


def test_linear_blocks_have_no_kernels_and_no_skips_to_pictures():
    linear = [{"width": 4}, {"width": 4}, {"width": 6, "kernel": 0}, {"width": 6, "kernel": 0}]
    steps = [one for (one,) in drawn(Growth(linear))]
    assert {s["block"] for s in steps if s["op"] == "kernel"} == {0, 1}
    assert not [s for s in steps if s["op"] == "skip"]


def test_founders_are_copies():
    growth = Growth(TWO)
    growth.founder()[0]["skips"].append(9)
    assert growth.founder()[0] == {"id": 0, "width": 4, "kernel": 3, "skips": []}


@pytest.mark.parametrize(
    "arguments, words",
    [
        ({"blocks": []}, "blocks is a list"),
        ({"blocks": [{"width": 4, "size": 3}]}, "other keys"),
        ({"blocks": [{"kernel": 3}]}, "the width of block 0"),
        ({"blocks": [{"width": 4, "id": 1}, {"width": 4}]}, "block 1 has an id that is taken"),
        ({"blocks": [{"width": 4}, {"width": 4, "skips": [0]}]}, "two before it"),
        ({"operations": ["narrower"]}, "an operation is 'wider' or"),
        ({"operations": []}, "operations are some of"),
        ({"steps": 0}, "steps is an integer"),
        ({"max_width": 1.5}, "max_width"),
    ],
)
def test_wrong_arguments_are_refused(arguments, words):
    with pytest.raises(TunerArgumentError, match=words):
        Growth(**{"blocks": TWO, **arguments})
