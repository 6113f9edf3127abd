"""The trial: trains subgraphs of the shared network, or judges one of them as it is."""

from __future__ import annotations

from typing import Any

import digits
import numpy as np
import supernet

import trial_runtime as bq
from trial_runtime.api_errors import StoreConflict

STEPS, RATE = 400, 0.05
TOGETHER = 4  # trials that train at once, from one version: ``weights_trials`` of the file


def run(parameters: dict[str, Any]) -> dict[str, float]:
    """The trial function that the experiment file names; what it returns is the final result."""
    store = bq.shared_store("omega")
    data = digits.load()
    if parameters["phase"] == "controller":
        weights = store.load()
        (architecture,) = parameters["architectures"]
        accuracy = supernet.share_right(weights, architecture, data["validation"])
        return {"default": accuracy, "version": store.version}
    weights = opened(store)
    rng = np.random.default_rng(bq.seed())
    supernet.fit(weights, parameters["architectures"], data["train"], STEPS, RATE, rng)
    accuracy = [
        supernet.share_right(weights, each, data["validation"])
        for each in parameters["architectures"]
    ]
    # Others have trained other subgraphs from the same version, and share weights with these. Each
    # adds its part of the change: together that is the mean of what all have come to.
    before = store.load()
    shared = {name: before[name] + (weights[name] - before[name]) / TOGETHER for name in weights}
    version = store.publish(shared, merge="add")
    return {"default": float(np.mean(accuracy)), "version": version}


def opened(store: Any) -> supernet.Weights:
    """Returns weights of one's own to train: those that are pinned, or the first there are."""
    if store.version == 0:
        try:
            store.publish(supernet.initial(seed=0))
        except StoreConflict:  # another trial of the first round was quicker
            store.advance()
    return {name: np.array(each) for name, each in store.load().items()}
