"""A chain of linear blocks with skips by concatenation, as ``trial_runtime.morphism.chain`` has it.

Weights are named as a state dict names them: ``blocks.3.weight`` of shape (outputs, inputs).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from trial_runtime.morphism import chain

PIXELS, CLASSES = 64, 10

Weights = dict[str, np.ndarray]
Blocks = Sequence[Mapping[str, Any]]


def fresh(blocks: Blocks, rng: np.random.Generator) -> Weights:
    """Initial weights."""
    weights: Weights = {}
    for place, block in enumerate(blocks):
        inputs = chain.inputs(blocks, place, PIXELS)
        drawn = rng.normal(size=(block["width"], inputs)) * np.sqrt(2 / inputs)
        weights[f"blocks.{block['id']}.weight"] = drawn
        weights[f"blocks.{block['id']}.bias"] = np.zeros(block["width"])
    last = blocks[-1]["width"]
    weights["head.weight"] = rng.normal(size=(CLASSES, last)) / np.sqrt(last)
    return weights


def forward(weights: Weights, blocks: Blocks, pictures: np.ndarray) -> dict[Any, np.ndarray]:
    """What each block puts out, by its id, and the scores under ``scores``."""
    seen: dict[Any, np.ndarray] = {}
    x = pictures
    for block in blocks:
        x = _inputs(x, block, seen)
        name = f"blocks.{block['id']}"
        x = np.maximum(x @ weights[f"{name}.weight"].T + weights[f"{name}.bias"], 0)
        seen[block["id"]] = x
    return {**seen, "scores": x @ weights["head.weight"].T}


def backward(
    weights: Weights, blocks: Blocks, pictures: np.ndarray, seen: dict[Any, np.ndarray],
    slope: np.ndarray,
) -> Weights:  # fmt: skip
    """Gradients of all weights; ``slope``: that of the scores."""
    found = {"head.weight": slope.T @ seen[blocks[-1]["id"]]}
    flows = {block["id"]: np.zeros_like(seen[block["id"]]) for block in blocks}
    flows[blocks[-1]["id"]] = slope @ weights["head.weight"]
    for place, block in reversed(list(enumerate(blocks))):
        before = blocks[place - 1]["id"] if place else None
        x = _inputs(pictures if before is None else seen[before], block, seen)
        name = f"blocks.{block['id']}"
        flow = flows[block["id"]] * (seen[block["id"]] > 0)
        found[f"{name}.weight"] = flow.T @ x
        found[f"{name}.bias"] = flow.sum(0)
        back = flow @ weights[f"{name}.weight"]
        sources = [before, *block["skips"]]
        start = 0
        for source in sources:
            width = PIXELS if source is None else seen[source].shape[1]
            if source is not None:
                flows[source] = flows[source] + back[:, start : start + width]
            start += width
    return found


def size(weights: Weights) -> int:
    """How many numbers there are to train."""
    return sum(one.size for one in weights.values())


def _inputs(x: np.ndarray, block: Mapping[str, Any], seen: dict[Any, np.ndarray]) -> np.ndarray:
    return np.concatenate([x, *(seen[skip] for skip in block["skips"])], 1)
