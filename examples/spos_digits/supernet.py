"""The supernet: blocks of one width, each with an option to choose, and one path through them.

Every option of every block has weights of its own; a path uses those of its options alone. Each
block adds what it computes to what it gets, so that any block can follow any other.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

PIXELS, WIDTH, NARROW, CLASSES = 64, 24, 6, 10
BLOCKS = tuple(f"block{number}" for number in range(1, 7))

Weights = dict[str, np.ndarray]
Path = Mapping[str, str]


def fresh(rng: np.random.Generator) -> Weights:
    """Initial weights of all options of all blocks, by name."""

    def drawn(inputs: int, outputs: int) -> np.ndarray:
        return rng.normal(size=(inputs, outputs)) / np.sqrt(inputs)

    weights = {"stem": drawn(PIXELS, WIDTH), "head": drawn(WIDTH, CLASSES)}
    for block in BLOCKS:
        weights[f"{block}.relu"] = drawn(WIDTH, WIDTH)
        weights[f"{block}.tanh"] = drawn(WIDTH, WIDTH)
        weights[f"{block}.narrow.in"] = drawn(WIDTH, NARROW)
        weights[f"{block}.narrow.out"] = drawn(NARROW, WIDTH)
    return weights


def forward(weights: Weights, path: Path, pictures: np.ndarray) -> list[np.ndarray]:
    """What the stem, each block and the head put out, in this order."""
    outputs = [pictures @ weights["stem"]]
    for block in BLOCKS:
        x = outputs[-1]
        option = path[block]
        if option == "relu":
            x = x + np.maximum(x @ weights[f"{block}.relu"], 0)
        elif option == "tanh":
            x = x + np.tanh(x @ weights[f"{block}.tanh"])
        elif option == "narrow":
            inner = np.maximum(x @ weights[f"{block}.narrow.in"], 0)
            x = x + inner @ weights[f"{block}.narrow.out"]
        outputs.append(x)  # "skip": as it came
    return [*outputs, outputs[-1] @ weights["head"]]


def backward(
    weights: Weights, path: Path, pictures: np.ndarray, outputs: list[np.ndarray], last: np.ndarray
) -> Weights:
    """Gradients of the weights on the path; ``last``: that of the scores."""
    found = {"head": outputs[-2].T @ last}
    flow = last @ weights["head"].T
    for at, block in reversed(list(enumerate(BLOCKS))):
        x, option = outputs[at], path[block]
        if option in ("relu", "tanh"):
            name = f"{block}.{option}"
            raw = x @ weights[name]
            slope = (raw > 0) if option == "relu" else 1 - np.tanh(raw) ** 2
            found[name] = x.T @ (flow * slope)
            flow = flow + (flow * slope) @ weights[name].T
        elif option == "narrow":
            into, out = f"{block}.narrow.in", f"{block}.narrow.out"
            inner = np.maximum(x @ weights[into], 0)
            found[out] = inner.T @ flow
            back = (flow @ weights[out].T) * (inner > 0)
            found[into] = x.T @ back
            flow = flow + back @ weights[into].T
    found["stem"] = pictures.T @ flow
    return found
