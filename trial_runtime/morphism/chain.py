"""Typed steps from a network to a larger one, for networks that are a chain of blocks.

A block is a plain dict ``{"id", "width", "kernel", "skips"}``: a convolution (or, with a kernel of
0, a linear layer) that reads the block before it and, concatenated behind that, the blocks whose
ids ``skips`` lists. An id never changes and names the tensors. A step is one of

- ``{"op": "wider", "block": 3, "width": 32}``
- ``{"op": "kernel", "block": 3, "kernel": 5}``
- ``{"op": "deeper", "after": 3, "block": 7}``: a new block 7, the identity, behind block 3
- ``{"op": "skip", "from": 3, "into": 5}``: block 5 reads block 3 as well

``grown`` applies a step to the blocks and ``inherit`` applies it to the weights; the tuner
``NetworkMorphism`` proposes steps, the trial carries them out. In between an author's network
may have what acts on each channel by itself and keeps nothing (ReLU, pooling, dropout); what skips
join must be of one size.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism.arrays import Array, Weights
from trial_runtime.morphism.deepening import deeper
from trial_runtime.morphism.kernels import larger_kernel
from trial_runtime.morphism.skips import hear
from trial_runtime.morphism.widening import Reader, wider

Block = Mapping[str, Any]
Blocks = Sequence[Block]
Step = Mapping[str, Any]

OPERATIONS = ("wider", "kernel", "deeper", "skip")


def grown(blocks: Blocks, step: Step) -> list[dict[str, Any]]:
    """Returns the blocks after a step; the argument stays as it is.

    Raises:
        WeightsMismatch: the step does not fit the blocks.
    """
    child = [{**block, "skips": list(block.get("skips", ()))} for block in blocks]
    operation = step["op"]
    if operation == "wider":
        block = child[_place(blocks, step["block"])]
        _demand(step["width"] > block["width"], step, "it is as wide already")
        block["width"] = step["width"]
    elif operation == "kernel":
        block = child[_place(blocks, step["block"])]
        larger = step["kernel"] > block["kernel"] > 0
        _demand(larger and (step["kernel"] - block["kernel"]) % 2 == 0, step, "it does not fit")
        block["kernel"] = step["kernel"]
    elif operation == "deeper":
        at = _place(blocks, step["after"])
        taken = any(block["id"] == step["block"] for block in blocks)
        _demand(not taken, step, "there is a block of that id")
        child.insert(at + 1, {**child[at], "id": step["block"], "skips": []})
    elif operation == "skip":
        first, last = _place(blocks, step["from"]), _place(blocks, step["into"])
        _demand(last > first + 1, step, "nothing lies between the two")
        kinds = {blocks[place]["kernel"] > 0 for place in (first, last - 1, last)}
        _demand(len(kinds) == 1, step, "linear and convolutional blocks cannot be joined")
        _demand(step["from"] not in child[last]["skips"], step, "there is one already")
        child[last]["skips"].append(step["from"])
    else:
        raise WeightsMismatch(
            f"there is no step {operation!r}", hint=f"there are {', '.join(OPERATIONS)}"
        )
    return child


def inherit(
    weights: Weights,
    blocks: Blocks,
    steps: Iterable[Step],
    *,
    head: str | None = "head",
    block_name: str = "blocks.{}",
    norm_name: str | None = None,
    seed: int = 0,
    noise: float = 0.0,
    eps: float = 1e-5,
) -> dict[str, Array]:
    """Returns a child's weights; the child computes what its parent computes.

    Args:
        weights: the parent's, as ``state_dict`` names them.
        blocks: the parent's.
        steps: from parent to child, in order.
        head: name of the layer that reads the last block, flattened or averaged; None: there is
            none.
        block_name: of a block's layer, with ``{}`` for its id.
        norm_name: of the batch norm behind it, likewise; None: there is none.
        seed: of the copies that ``wider`` makes.
        noise: as in :func:`~trial_runtime.morphism.wider`.
        eps: of the batch norms.

    Raises:
        WeightsMismatch: a step does not fit the blocks, or the blocks the weights.
    """
    child: dict[str, Array] = dict(weights)
    for number, step in enumerate(steps):
        after = grown(blocks, step)
        operation = step["op"]
        if operation == "wider":
            child = wider(
                child,
                block_name.format(step["block"]),
                step["width"],
                into=list(_readers(blocks, step["block"], block_name, head)),
                through=[norm_name.format(step["block"])] if norm_name else (),
                seed=(seed, number),
                noise=noise,
            )
        elif operation == "kernel":
            child = larger_kernel(child, block_name.format(step["block"]), step["kernel"])
        elif operation == "deeper":
            child = deeper(
                child,
                block_name.format(step["block"]),
                after=block_name.format(step["after"]),
                norm=norm_name.format(step["block"]) if norm_name else None,
                eps=eps,
            )
        else:  # a skip: grown has refused whatever else
            heard = blocks[_place(blocks, step["from"])]["width"]
            child = hear(child, block_name.format(step["into"]), heard)
        blocks = after
    return child


def inputs(blocks: Blocks, place: int, first: int) -> int:
    """The number of channels that a block reads.

    Args:
        blocks: of the network.
        place: of the block among them.
        first: channels of the network's input, which the first block reads.
    """
    widths = {block["id"]: int(block["width"]) for block in blocks}
    before = first if place == 0 else int(blocks[place - 1]["width"])
    return before + sum(widths[skip] for skip in blocks[place].get("skips", ()))


def _readers(blocks: Blocks, identity: int, block_name: str, head: str | None) -> Iterable[Reader]:
    """The layers that read a block, and its place among their inputs."""
    at = _place(blocks, identity)
    widths = {block["id"]: block["width"] for block in blocks}
    if at == len(blocks) - 1:
        if head is not None:
            yield head
    else:
        after = blocks[at + 1]
        name = block_name.format(after["id"])
        flattened = blocks[at]["kernel"] > 0 and after["kernel"] == 0
        yield name if flattened else (name, 0)
    for place, block in enumerate(blocks):
        start = blocks[place - 1]["width"] if place else 0
        for skip in block.get("skips", ()):
            if skip == identity:
                yield block_name.format(block["id"]), start
            start += widths[skip]


def _place(blocks: Blocks, identity: int) -> int:
    for place, block in enumerate(blocks):
        if block["id"] == identity:
            return place
    raise WeightsMismatch(f"there is no block {identity!r}")


def _demand(fits: bool, step: Step, why_not: str) -> None:
    if not fits:
        raise WeightsMismatch(f"the step {dict(step)} cannot be taken: {why_not}")
