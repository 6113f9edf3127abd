"""The trial: trains the supernet once, or evaluates one path with its weights."""

from __future__ import annotations

from typing import Any

import digits
import numpy as np
import supernet

import trial_runtime as bq

BATCH = 50

# By hand (python trial.py) there are no parameters.
OPTIONS = ["relu", "tanh", "narrow", "skip"]
BY_HAND = {
    "supernet": {"steps": 500, "rate": 0.1},
    "choices": dict.fromkeys(supernet.BLOCKS, OPTIONS),
}


def run(parameters: dict[str, Any]) -> float:
    """The trial function that the experiment file names; what it returns is the final result."""
    parameters = parameters or BY_HAND
    if "supernet" in parameters:
        return train(parameters["choices"], **parameters["supernet"])
    weights = bq.load_weights()
    if weights is None:
        raise ValueError("a path needs the weights of a supernet")
    return accuracy(weights, parameters)


def train(choices: dict[str, list[str]], steps: int, rate: float) -> float:
    """Trains one path a batch, drawn evenly (uniform sampling); what a random path reaches then."""
    rng = np.random.default_rng(bq.seed())
    weights = supernet.fresh(rng)

    def drawn() -> dict[str, str]:
        return {name: some[int(rng.integers(len(some)))] for name, some in choices.items()}

    for step in range(steps):
        path = drawn()
        pictures, labels = digits.batch(rng, BATCH)
        outputs = supernet.forward(weights, path, pictures)
        slope = digits.gradient(outputs[-1], labels)
        found = supernet.backward(weights, path, pictures, outputs, slope)
        size = np.sqrt(sum(float((one**2).sum()) for one in found.values()))
        for name, one in found.items():  # clipped: paths differ in how steep they are
            weights[name] -= rate * (1 - step / steps) * one / max(1.0, size)
    bq.save_weights(weights)
    return float(np.mean([accuracy(weights, drawn()) for _ in range(20)]))


def accuracy(weights: supernet.Weights, path: supernet.Path) -> float:
    """The share of validation pictures that one path tells right."""
    pictures, labels = digits.load()["validation"]
    return digits.share_right(supernet.forward(weights, path, pictures)[-1], labels)


if __name__ == "__main__":
    bq.report_final(run(bq.get_parameters()))
