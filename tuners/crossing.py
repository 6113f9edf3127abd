"""Crossover of two chains of blocks by steps that keep the function of one of them.

Network morphisms lead from a network to a larger one only, so the child of two is not halfway
between them: it has the weights of the fitter parent, computes what that one computes at birth, and
has grown, at some places, to what the other parent is there. Whatever the other one has *less* of
is not taken over. That is possible for exactly those pairs that have no :func:`obstacle`; of the
others neither can be grown towards the other one everywhere.

The steps are those of ``trial_runtime.morphism.chain``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any, TypeAlias

from trial_runtime.errors import WeightsMismatch
from trial_runtime.morphism import chain

if TYPE_CHECKING:
    import numpy as np

Chain: TypeAlias = Sequence[Mapping[str, Any]]
Steps: TypeAlias = list[dict[str, Any]]


def obstacle(fitter: Chain, other: Chain) -> str:
    """The reason why two chains have no child, in one sentence; empty if they can have one.

    Blocks of one id and one kind (linear or convolutional) that stand in one order in both are
    taken for the same. They have a child if the other one begins with such a block, and if each
    further block of the other one's that is not such a one is of the kind of the block before it,
    since a new block is the identity of what that one puts out.
    """
    same = _matched(fitter, other)
    if not other or other[0]["id"] not in same:
        return "the first block of the other one is not in both, and there is none to put it behind"
    for before, block in pairwise(other):
        if block["id"] not in same and (block["kernel"] > 0) != (before["kernel"] > 0):
            return f"block {block['id']} is new, and of another kind than the one before it"
    return ""


def crossed(fitter: Chain, other: Chain, rng: np.random.Generator, max_blocks: int) -> Steps:
    """Draws the steps from the fitter parent's blocks to those of a child of both.

    Each thing that the other one has more of (a block, a wider block, a kernel that is larger by an
    even number, a skip) is taken over with even odds.

    Args:
        fitter: blocks of the parent that gives its weights to the child.
        other: the blocks that it grows towards.
        rng: the only source of randomness.
        max_blocks: no new block beyond.

    Returns:
        The steps; none where the other one has nothing more, or chance would have none of it.

    Raises:
        WeightsMismatch: these two have no child, see :func:`obstacle`.
    """
    return toward(fitter, other, lambda: bool(rng.random() < 0.5), max_blocks)


def toward(fitter: Chain, other: Chain, takes: Callable[[], bool], max_blocks: int) -> Steps:
    """The steps that take over some of the things that the other parent has more of.

    Args:
        fitter: blocks of the parent that gives its weights to the child.
        other: the blocks that it grows towards.
        takes: called for each of these things in turn; whether to take it over.
        max_blocks: no new block beyond.

    Raises:
        WeightsMismatch: these two have no child, see :func:`obstacle`.
    """
    reason = obstacle(fitter, other)
    if reason:
        raise WeightsMismatch(f"these networks cannot be crossed: {reason}")
    steps: Steps = []
    blocks = [dict(block) for block in fitter]

    def step(**details: Any) -> None:
        nonlocal blocks
        blocks = chain.grown(blocks, details)
        steps.append(details)

    names = {identity: identity for identity in _matched(fitter, other)}
    taken = {block["id"] for block in (*fitter, *other)}
    behind = other[0]["id"]
    for block in other:
        if block["id"] not in names:
            if len(blocks) >= max_blocks or not takes():
                continue
            fresh = block["id"]
            if any(fresh == one["id"] for one in fitter):  # there it is another one
                fresh = 1 + max(taken)
                taken.add(fresh)
            step(op="deeper", after=behind, block=fresh)
            names[block["id"]] = fresh
        behind = names[block["id"]]
        mine = next(one for one in blocks if one["id"] == behind)
        if block["width"] > mine["width"] and takes():
            step(op="wider", block=behind, width=block["width"])
        rim = block["kernel"] - mine["kernel"]
        if rim > 0 and rim % 2 == 0 and takes():
            step(op="kernel", block=behind, kernel=block["kernel"])
    for block in other:  # skips last: they join what all the others have made
        for skip in block.get("skips", ()):
            ends = names.get(skip), names.get(block["id"])
            if None not in ends and _is_possible(blocks, *ends) and takes():
                step(op="skip", **{"from": ends[0], "into": ends[1]})
    return steps


def _matched(fitter: Chain, other: Chain) -> list[int]:
    """Ids of the blocks that are the same in both: as many as stand in one order."""
    places = {(block["id"], block["kernel"] > 0): at for at, block in enumerate(fitter)}
    runs: list[tuple[int, list[int]]] = []  # where it ends in the fitter one, and its ids
    for block in other:
        place = places.get((block["id"], block["kernel"] > 0))
        if place is not None:
            before = max((run for end, run in runs if end < place), key=len, default=[])
            runs.append((place, [*before, block["id"]]))
    return max((run for _, run in runs), key=len, default=[])


def _is_possible(blocks: Chain, skip: int | None, into: int | None) -> bool:
    """Whether both ends are there, nothing joins them yet, and something lies between them."""
    try:
        chain.grown(blocks, {"op": "skip", "from": skip, "into": into})
    except WeightsMismatch:
        return False
    return True
