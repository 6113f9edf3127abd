"""The trial: morphs its parent's weights, trains, reports accuracy and size, bequeaths."""

from __future__ import annotations

from typing import Any

import digits
import network
import numpy as np

import trial_runtime as bq
from trial_runtime.morphism import chain

STEPS, BATCH, MOMENTUM = 300, 50, 0.9

# By hand (python trial.py) there are no parameters.
BY_HAND = {
    "blocks": [{"id": n, "width": 4, "kernel": 0, "skips": []} for n in range(2)],
    "rate": 0.05,
}


def train(parameters: dict[str, Any]) -> dict[str, float]:
    """The trial function that the experiment file names; what it returns is the final result."""
    parameters = {**BY_HAND, **parameters}
    blocks = parameters["blocks"]
    rng = np.random.default_rng(bq.seed())
    weights = bq.load_weights()
    if weights is None:
        weights = network.fresh(blocks, rng)
    else:
        # A little noise on the copies that ``wider`` makes, since equal units would stay equal.
        weights = chain.inherit(
            weights, parameters["inherited"], parameters["steps"], seed=bq.seed(), noise=0.05
        )
    bq.report_intermediate(accuracy(weights, blocks))  # at birth: what its parent had
    weights = fit(weights, blocks, parameters["rate"], rng)
    bq.save_weights(weights)
    return {"default": accuracy(weights, blocks), "size": network.size(weights)}


def fit(
    weights: network.Weights, blocks: network.Blocks, rate: float, rng: np.random.Generator
) -> network.Weights:
    """Momentum, and a rate that falls to nothing. The morphed arrays are left as they are."""
    velocity = {name: np.zeros_like(one) for name, one in weights.items()}
    for step in range(STEPS):
        pictures, labels = digits.batch(rng, BATCH)
        seen = network.forward(weights, blocks, pictures)
        slope = digits.gradient(seen["scores"], labels)
        found = network.backward(weights, blocks, pictures, seen, slope)
        for name, one in found.items():
            velocity[name] = MOMENTUM * velocity[name] - rate * (1 - step / STEPS) * one
        weights = {name: one + velocity[name] for name, one in weights.items()}
    return weights


def accuracy(weights: network.Weights, blocks: network.Blocks) -> float:
    """The share of validation pictures told right."""
    pictures, labels = digits.load()["validation"]
    return digits.share_right(network.forward(weights, blocks, pictures)["scores"], labels)


if __name__ == "__main__":
    bq.report_final(train(bq.get_parameters()))
