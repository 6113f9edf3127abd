"""The morphisms that are possible for a chain of blocks, and drawing some of them.

The steps are those of ``trial_runtime.morphism.chain``, which carries them out in the trial.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias

from trial_runtime.morphism import chain
from tuners import values
from tuners.errors import TunerArgumentError

if TYPE_CHECKING:
    import numpy as np

Blocks: TypeAlias = list[dict[str, Any]]
Steps: TypeAlias = list[dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Growth:
    """The blocks to begin with, and how far and by what they may grow.

    Elsken et al. (2018), section 4: of the operations, and of the places where one is possible,
    each is as likely as any other; a layer gets twice as wide (in the paper two or four times); a
    new one is as wide as the one before it, and has a kernel of its size (there 3 or 5). The paper
    has no kernels that grow; leave ``kernel`` out to do as it does.

    Args:
        blocks: ``{"id", "width", "kernel", "skips"}`` each; ids may be left out, skips too.
        operations: some of ``wider``, ``kernel``, ``deeper``, ``skip``.
        steps: morphisms a child, 5 in the paper; fewer when no more are possible.
        max_blocks: no ``deeper`` beyond.
        max_width: no ``wider`` beyond.
        max_kernel: no ``kernel`` beyond.
    """

    blocks: Sequence[Mapping[str, Any]]
    operations: Sequence[str] = chain.OPERATIONS
    steps: int = 1
    max_blocks: int = 16
    max_width: int = 512
    max_kernel: int = 7
    _first: Blocks = field(init=False, repr=False)

    def __post_init__(self) -> None:
        """Raises TunerArgumentError where something is no block, no operation or no number."""
        values.whole("steps", self.steps, 1)
        values.whole("max_blocks", self.max_blocks, 1)
        values.whole("max_width", self.max_width, 1)
        values.whole("max_kernel", self.max_kernel, 1)
        if not isinstance(self.operations, list | tuple) or not self.operations:
            raise TunerArgumentError(f"operations are some of {', '.join(chain.OPERATIONS)}.")
        for operation in self.operations:
            values.one_of("an operation", operation, chain.OPERATIONS)
        object.__setattr__(self, "_first", _checked(self.blocks))

    def founder(self) -> Blocks:
        """A copy of the blocks to begin with."""
        return [{**block, "skips": list(block["skips"])} for block in self._first]

    def child(
        self,
        parent: Sequence[Mapping[str, Any]],
        rng: np.random.Generator,
        count: int | None = None,
    ) -> Steps:
        """Draws the steps from a parent's blocks to a child's.

        Args:
            parent: its blocks.
            rng: the only source of randomness.
            count: of steps; None: :attr:`steps`.
        """
        blocks: Sequence[Mapping[str, Any]] = parent
        steps: Steps = []
        for _ in range(self.steps if count is None else count):
            possible = {name: list(self._possible(name, blocks)) for name in self.operations}
            names = [name for name in self.operations if possible[name]]
            if not names:
                break
            places = possible[names[int(rng.integers(len(names)))]]
            steps.append(places[int(rng.integers(len(places)))])
            blocks = chain.grown(blocks, steps[-1])
        return steps

    def _possible(
        self, operation: str, blocks: Sequence[Mapping[str, Any]]
    ) -> Iterator[dict[str, Any]]:
        """Every step of one kind that is possible now."""
        if operation == "deeper" and len(blocks) < self.max_blocks:
            fresh = 1 + max(block["id"] for block in blocks)
            for block in blocks:
                yield {"op": "deeper", "after": block["id"], "block": fresh}
        for at, block in enumerate(blocks):
            if operation == "wider" and 2 * block["width"] <= self.max_width:
                yield {"op": "wider", "block": block["id"], "width": 2 * block["width"]}
            if operation == "kernel" and 0 < block["kernel"] <= self.max_kernel - 2:
                yield {"op": "kernel", "block": block["id"], "kernel": block["kernel"] + 2}
            if operation == "skip":
                yield from _skips(blocks, at)


def applied(blocks: Sequence[Mapping[str, Any]], steps: Steps) -> Blocks:
    """The blocks after some steps; the argument stays as it is."""
    child = [{**block, "skips": list(block.get("skips", ()))} for block in blocks]
    for step in steps:
        child = chain.grown(child, step)
    return child


def _skips(blocks: Sequence[Mapping[str, Any]], into: int) -> Iterator[dict[str, Any]]:
    block = blocks[into]
    for at in range(into - 1):
        alike = {blocks[place]["kernel"] > 0 for place in (at, into - 1, into)}
        if len(alike) == 1 and blocks[at]["id"] not in block.get("skips", ()):
            yield {"op": "skip", "from": blocks[at]["id"], "into": block["id"]}


def _checked(blocks: Any) -> Blocks:
    if not isinstance(blocks, list | tuple) or not blocks:
        raise TunerArgumentError(
            "blocks is a list of the blocks to begin with.",
            'Write for instance [{"width": 16, "kernel": 3}, {"width": 16, "kernel": 3}].',
        )
    found: Blocks = []
    for at, block in enumerate(blocks):
        if not isinstance(block, Mapping) or set(block) - {"id", "width", "kernel", "skips"}:
            raise TunerArgumentError(f"block {at} has other keys than id, width, kernel, skips.")
        whole = {"id": at, "kernel": 3, "skips": [], **block}
        values.whole(f"the width of block {at}", whole.get("width", 0), 1)
        values.whole(f"the kernel of block {at}", whole["kernel"], 0)
        values.whole(f"the id of block {at}", whole["id"], 0)
        earlier = [one["id"] for one in found]
        if whole["id"] in earlier or any(skip not in earlier[:-1] for skip in whole["skips"]):
            raise TunerArgumentError(
                f"block {at} has an id that is taken, or skips to what does not lie two before it."
            )
        found.append({**whole, "skips": list(whole["skips"])})
    return found
