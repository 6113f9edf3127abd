"""The search space: how networks are drawn and how they mutate. Plain dicts, no torch.

An architecture is a learning rate and a list of blocks, each ``{"id", "width", "kernel"}``. A
block keeps its id for life, so that a child finds the weights of the blocks it has in common with
its parent, whatever was inserted or removed beside them.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

WIDTHS = (2, 4, 8, 16)
KERNELS = (1, 3, 5)
MOST_BLOCKS = 8
RATES = (0.003, 0.3)

Architecture = dict[str, Any]


def draw(rng: np.random.Generator, most_blocks: int = MOST_BLOCKS) -> Architecture:
    """Draws an architecture evenly: its depth first, then each block; the rate in its logarithm."""
    low, high = (math.log(rate) for rate in RATES)
    rate = math.exp(rng.uniform(low, high))
    count = int(rng.integers(1, most_blocks + 1))
    return {"rate": rate, "blocks": [_block(index, rng) for index in range(count)]}


def mutate(parent: Architecture, rng: np.random.Generator) -> Architecture:
    """Returns a copy with one thing changed: the rate, a width, a kernel, or the depth."""
    child = {"rate": parent["rate"], "blocks": [dict(block) for block in parent["blocks"]]}
    blocks = child["blocks"]
    steps = ["rate", "rate", "width", "width", "kernel"]
    if len(blocks) < MOST_BLOCKS:
        steps += ["insert", "insert"]
    if len(blocks) > 1:
        steps.append("remove")
    at = int(rng.integers(len(blocks)))
    match steps[int(rng.integers(len(steps)))]:
        case "rate":
            changed = parent["rate"] * math.exp(rng.normal(0, 0.7))
            child["rate"] = min(max(changed, RATES[0]), RATES[1])
        case "width":
            others = [width for width in WIDTHS if width != blocks[at]["width"]]
            blocks[at]["width"] = others[int(rng.integers(len(others)))]
        case "kernel":
            others = [kernel for kernel in KERNELS if kernel != blocks[at]["kernel"]]
            blocks[at]["kernel"] = others[int(rng.integers(len(others)))]
        case "insert":  # as wide as the block before it, so that it can pass its input on
            fresh = _block(1 + max(block["id"] for block in blocks), rng)
            blocks.insert(at + 1, {**fresh, "width": blocks[at]["width"]})
        case "remove":
            del blocks[at]
    return child


def _block(identity: int, rng: np.random.Generator) -> dict[str, int]:
    return {
        "id": identity,
        "width": WIDTHS[int(rng.integers(len(WIDTHS)))],
        "kernel": KERNELS[int(rng.integers(len(KERNELS)))],
    }
