"""Networks that are a chain of linear blocks, and how a child gets the weights of its parent.

A block is ``{"id", "width", "kernel", "skips"}`` as ``trial_runtime.morphism.chain`` has it, with
kernel 0; it reads the block before it and, behind that, those it skips to.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from benchmarks.tuner_nas.cost import Size
from benchmarks.tuner_nas.task import CLASSES, PIXELS, Array, Pass, Weights, drawn

Blocks = Sequence[Mapping[str, Any]]


def fresh(blocks: Blocks, dice: np.random.Generator) -> Weights:
    """Initial weights."""
    weights: Weights = {}
    for place, block in enumerate(blocks):
        inputs = sum(width for _, width in heard(blocks, place))
        weights[f"blocks.{block['id']}.weight"] = drawn(inputs, block["width"], dice)
        weights[f"blocks.{block['id']}.bias"] = np.zeros(block["width"], np.float32)
    last = blocks[-1]["width"]
    weights["head.weight"] = drawn(last, CLASSES, dice) / np.float32(2)
    weights["head.bias"] = np.zeros(CLASSES, np.float32)
    return weights


def heard(blocks: Blocks, place: int) -> Iterator[tuple[Any, int]]:
    """Whom a block reads, in order, and how many units of each; None: the picture."""
    widths = {block["id"]: block["width"] for block in blocks}
    before = None if place == 0 else blocks[place - 1]["id"]
    yield before, widths.get(before, PIXELS)
    for skip in block_skips(blocks[place]):
        yield skip, widths[skip]


def block_skips(block: Mapping[str, Any]) -> Sequence[int]:
    """Whom a block reads beside the one before it."""
    skips: Sequence[int] = block["skips"]
    return skips


def through(weights: Weights, blocks: Blocks) -> Pass:
    """The network of some blocks."""
    names = [f"blocks.{block['id']}" for block in blocks]

    def run(_step: int, pictures: Array) -> tuple[Array, Callable[[Array], Weights]]:
        told: dict[Any, Array] = {}
        read: list[Array] = []
        x = pictures
        for name, block in zip(names, blocks, strict=True):
            if block["skips"]:
                x = np.concatenate([x, *(told[skip] for skip in block["skips"])], 1)
            read.append(x)
            x = x @ weights[f"{name}.weight"].T
            x += weights[f"{name}.bias"]
            np.maximum(x, 0, out=x)
            told[block["id"]] = x
        scores = x @ weights["head.weight"].T + weights["head.bias"]

        def back(slope: Array) -> Weights:
            found = {"head.weight": slope.T @ x, "head.bias": slope.sum(0)}
            due = {blocks[-1]["id"]: slope @ weights["head.weight"]}
            for place in reversed(range(len(blocks))):
                block, name = blocks[place], names[place]
                flow = due.pop(block["id"]) * (told[block["id"]] > 0)
                found[f"{name}.weight"] = flow.T @ read[place]
                found[f"{name}.bias"] = flow.sum(0)
                if place == 0:
                    break
                flow = flow @ weights[f"{name}.weight"]
                start = 0
                for source in (blocks[place - 1]["id"], *block["skips"]):
                    end = start + told[source].shape[1]
                    part = flow[:, start:end]
                    due[source] = due[source] + part if source in due else part
                    start = end
            return found

        return scores, back

    return run


def size(blocks: Blocks) -> Size:
    """What a picture goes through."""
    inner = sum(
        block["width"] * sum(width for _, width in heard(blocks, at))
        for at, block in enumerate(blocks)
    )
    return Size(len(blocks), inner + CLASSES * blocks[-1]["width"])


# ---- the space, as random search and plain evolution draw from it ------------------------------

MOST_BLOCKS, WIDTHS = 6, (8, 16, 32, 64)
SMALLEST = [{"id": 1, "width": WIDTHS[0], "kernel": 0, "skips": []}]


def space() -> dict[str, Any]:
    """All chains that morphisms lead to from the smallest one, with one skip a block at most."""
    found: dict[str, Any] = {"depth": {"_type": "randint", "_value": [1, MOST_BLOCKS + 1]}}
    for number in range(1, MOST_BLOCKS + 1):
        found[f"width{number}"] = {"_type": "choice", "_value": list(WIDTHS)}
        if number > 2:
            found[f"skip{number}"] = {"_type": "choice", "_value": list(range(number - 1))}
    return found


def blocks_of(parameters: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The blocks that parameters name, of a tuner of chains or of one that knows the space only."""
    if "blocks" in parameters:
        return [{**block, "skips": list(block["skips"])} for block in parameters["blocks"]]
    found = []
    for number in range(1, parameters["depth"] + 1):
        skip = parameters.get(f"skip{number}", 0)
        width = parameters[f"width{number}"]
        block = {"id": number, "width": width, "kernel": 0, "skips": [skip] if skip else []}
        found.append(block)
    return found


# ---- weights of a parent that is no morphism away ----------------------------------------------


def taken_over(fresh: Weights, blocks: Blocks, parent: Blocks, weights: Weights) -> Weights:
    """A child's weights: its parent's wherever it has the same, its fresh ones elsewhere.

    What the child has more is not listened to yet (units, skips) or hands on what it gets (blocks),
    so that a child that only grew computes what its parent did.
    """
    child = {name: one.copy() for name, one in fresh.items()}
    places = {block["id"]: place for place, block in enumerate(parent)}
    for place, block in enumerate(blocks):
        name = f"blocks.{block['id']}"
        own = child[f"{name}.weight"]
        if block["id"] not in places:
            same = min(own.shape)
            own[:same] = np.eye(same, own.shape[1], dtype=own.dtype)
            continue
        theirs = weights[f"{name}.weight"]
        rows = min(len(theirs), len(own))
        own[:rows] = 0
        sources = _segments(parent, places[block["id"]])
        for source, (start, width) in _segments(blocks, place).items():
            if source in sources:
                first, their_width = sources[source]
                both = min(width, their_width)
                own[:rows, start : start + both] = theirs[:rows, first : first + both]
        child[f"{name}.bias"][:rows] = weights[f"{name}.bias"][:rows]
    theirs, own = weights["head.weight"], child["head.weight"]
    both = min(theirs.shape[1], own.shape[1])
    own[:] = 0
    own[:, :both] = theirs[:, :both]
    child["head.bias"] = weights["head.bias"].copy()
    return child


def _segments(blocks: Blocks, place: int) -> dict[Any, tuple[int, int]]:
    """Of each that a block reads: where its units begin, and how many there are."""
    found: dict[Any, tuple[int, int]] = {}
    start = 0
    for number, (source, width) in enumerate(heard(blocks, place)):
        # What comes first is read whoever it is: blocks may come and go before this one.
        found["before" if number == 0 else source] = (start, width)
        start += width
    return found
