"""Searches with two objectives: what they are worth is the area that all they found dominates."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from benchmarks.peers.surrogates import Front
from benchmarks.tuner_digits.searching import Better, Outcome, Task
from benchmarks.tuner_nas import chains
from tuners.pareto import fronts

Point = tuple[float, float]

WIDEST = [
    {"id": n, "width": max(chains.WIDTHS), "kernel": 0, "skips": []}
    for n in range(chains.MOST_BLOCKS)
]


def smallness(blocks: chains.Blocks) -> float:
    """1 for the smallest network of the space, 0 for the largest without skips, by multiplications.

    In between by the logarithm: half as many are as much better for a large network as for a small.
    """
    least, most, own = (
        math.log(chains.size(each).multiplications) for each in (chains.SMALLEST, WIDEST, blocks)
    )
    return min(1.0, max(0.0, (most - own) / (most - least)))


@dataclass
class TwoObjectives:
    """The same trials, and the area of accuracy and smallness that a search has come to by each.

    They report their smallness, too.
    """

    trials: Task
    spent: float = 0.0
    seen: list[Point] = field(default_factory=list)
    on_test: list[Point] = field(default_factory=list)
    path: list[Better] = field(default_factory=list)

    def cost(self, parameters: Mapping[str, Any]) -> float:
        return self.trials.cost(parameters)

    def run(
        self, parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
    ) -> Outcome:
        self.spent += self.cost(parameters)
        one = self.trials.run(parameters, inherited, dice)
        small = smallness(chains.blocks_of(parameters))
        self.seen.append((one.valid, small))
        self.on_test.append((one.test, small))
        front = fronts(self.seen)[0]  # what would be handed out, chosen by validation
        area, on_test = (
            Front([points[at] for at in front]).area() for points in (self.seen, self.on_test)
        )
        if not self.path or area > self.path[-1].valid:
            self.path.append(Better(self.spent, area, on_test))
        return replace(one, told={**one.told, "smallness": small})
