"""Trials of tuners of chains: evolution and network morphism."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from benchmarks.tuner_digits.searching import Outcome
from benchmarks.tuner_nas import chains, cost, task
from trial_runtime.morphism import chain as morphism

#: Of the copies that a wider block gets: equal ones would stay equal for ever.
PARTING = 0.05


@dataclass(frozen=True)
class Training:
    """A chain, with its parent's weights if it has one, is trained for as many steps as any other.

    A trial reports its multiplications beside its accuracy.
    """

    steps: int
    rate: float

    def cost(self, parameters: Mapping[str, Any]) -> float:
        size = chains.size(chains.blocks_of(parameters))
        return cost.trained(self.steps, size) + cost.judged(size)

    def run(
        self, parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
    ) -> Outcome:
        blocks = chains.blocks_of(parameters)
        weights = born(parameters, inherited, dice)
        network = chains.through(weights, blocks)
        task.fit(weights, network, self.steps, self.rate, dice, task.FEW)
        valid, test = (task.share_right(network, part, task.FEW) for part in ("validation", "test"))
        told = {"default": valid, "size": chains.size(blocks).multiplications}
        return Outcome((blocks, weights), valid, test, told)


def born(
    parameters: Mapping[str, Any], inherited: Any | None, dice: np.random.Generator
) -> task.Weights:
    """A network's weights before its training, of its own to change."""
    blocks = chains.blocks_of(parameters)
    fresh = chains.fresh(blocks, dice)
    if inherited is None:
        return fresh
    parent, weights = inherited
    if "steps" not in parameters:
        return chains.taken_over(fresh, blocks, parent, weights)
    seed = int(dice.integers(2**31))
    morphed = morphism.inherit(weights, parent, parameters["steps"], seed=seed, noise=PARTING)
    return {name: np.array(one) for name, one in morphed.items()}
