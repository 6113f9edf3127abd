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
MOST_BLOCKS = 12
RATES = (0.003, 0.3)
RATE_STEP = 0.4  # standard deviation of a mutation of the rate, in its logarithm

# What grows keeps all that was inherited; what shrinks loses a part of it.
LIKELY = {"wider": 3, "narrower": 0.5, "larger": 2, "smaller": 0.5, "insert": 3, "remove": 0.5}

Architecture = dict[str, Any]


def draw(rng: np.random.Generator, most_blocks: int = MOST_BLOCKS) -> Architecture:
    """Draws an architecture evenly: its depth first, then each block; the rate in its logarithm."""
    low, high = (math.log(rate) for rate in RATES)
    rate = math.exp(rng.uniform(low, high))
    count = int(rng.integers(1, most_blocks + 1))
    return {"rate": rate, "blocks": [_block(index, rng) for index in range(count)]}


def mutate(parent: Architecture, rng: np.random.Generator) -> Architecture:
    """Returns a copy with one change of shape, mostly growth, and a rate that moved a little."""
    child = {"rate": parent["rate"], "blocks": [dict(block) for block in parent["blocks"]]}
    moved = parent["rate"] * math.exp(rng.normal(0, RATE_STEP))
    child["rate"] = min(max(moved, RATES[0]), RATES[1])
    blocks = child["blocks"]
    steps = _steps(blocks)
    odds = np.array([LIKELY[step] for step, _, _ in steps])
    step, at, sizes = steps[int(rng.choice(len(steps), p=odds / odds.sum()))]
    match step:
        case "wider" | "narrower":
            blocks[at]["width"] = sizes[int(rng.integers(len(sizes)))]
        case "larger" | "smaller":
            blocks[at]["kernel"] = sizes[int(rng.integers(len(sizes)))]
        case "insert":  # as wide as the block before it, so that it can pass its input on
            fresh = _block(1 + max(block["id"] for block in blocks), rng)
            blocks.insert(at + 1, {**fresh, "width": blocks[at]["width"]})
        case "remove":
            del blocks[at]
    return child


def _steps(blocks: list[dict[str, int]]) -> list[tuple[str, int, list[int]]]:
    """Every possible step: its name, its block, and the sizes to choose from."""
    steps: list[tuple[str, int, list[int]]] = []
    for at, block in enumerate(blocks):
        width, kernel = block["width"], block["kernel"]
        sized = {
            "wider": [size for size in WIDTHS if size > width],
            "narrower": [size for size in WIDTHS if size < width],
            "larger": [size for size in KERNELS if size > kernel],
            "smaller": [size for size in KERNELS if size < kernel],
        }
        steps += [(step, at, sizes) for step, sizes in sized.items() if sizes]
        if len(blocks) < MOST_BLOCKS:
            steps.append(("insert", at, []))
        if len(blocks) > 1:
            steps.append(("remove", at, []))
    return steps


def _block(identity: int, rng: np.random.Generator) -> dict[str, int]:
    return {
        "id": identity,
        "width": WIDTHS[int(rng.integers(len(WIDTHS)))],
        "kernel": KERNELS[int(rng.integers(len(KERNELS)))],
    }
