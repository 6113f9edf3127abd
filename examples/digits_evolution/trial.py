"""The trial: builds a network, takes over its parent's weights, trains, reports, bequeaths."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import digits
import network
import torch
import torch._dynamo  # torch.optim imports it at its first use: here it counts as an import
from torch.nn import functional

import trial_runtime as bq

BATCH = 50
MOMENTUM = 0.9

# By hand (python trial.py) there are no parameters.
BY_HAND = {
    "rate": 0.05,
    "blocks": [{"id": 0, "width": 8, "kernel": 3}, {"id": 1, "width": 8, "kernel": 3}],
    "epochs": 20,
}


def train(parameters: dict[str, Any]) -> dict[str, float]:
    """The trial function that the experiment file names; what it returns is the final result."""
    return run(parameters, bq.seed(), bq.load_weights, bq.save_weights)


def run(
    parameters: dict[str, Any],
    seed: int,
    load: Callable[[], Any],
    save: Callable[[Any], Any] | None,
) -> dict[str, float]:
    """Trains one network.

    Args:
        parameters: ``rate``, ``blocks`` and ``epochs``.
        seed: of initial weights, distortions and order of examples.
        load: returns the parent's tensors by name, or None.
        save: publishes the trained tensors.

    Returns:
        ``default``: share of validation pictures told right; ``test``: of test pictures;
        ``core_s``: CPU seconds of all of it but the test; imports and reading the data are not
        counted.
    """
    digits.load()
    started = time.process_time()
    torch.set_num_threads(1)  # core-seconds are to be compared
    parameters = {**BY_HAND, **parameters}
    generator = torch.Generator().manual_seed(seed)
    torch.manual_seed(seed)
    model = network.Network(parameters["blocks"])
    parent = load()
    if parent is not None:
        network.inherit(model, parent)
    fit(model, parameters["rate"], parameters["epochs"], generator)
    accuracy = share_right(model, "validation")
    if save is not None and "save_path" in parameters:
        save(model.state_dict())
    core_s = time.process_time() - started
    return {"default": accuracy, "test": share_right(model, "test"), "core_s": core_s}


def fit(model: torch.nn.Module, rate: float, epochs: int, generator: torch.Generator) -> None:
    """Trains in place; each epoch sees every picture once, distorted anew.

    The rate falls linearly to nothing by the end, so that trials are judged at rest: otherwise a
    short trial looks better the smaller its rate is, and lineages anneal themselves to a halt.
    """
    images, labels = digits.load()["train"]
    optimiser = torch.optim.SGD(model.parameters(), lr=rate, momentum=MOMENTUM)
    for epoch in range(epochs):
        for group in optimiser.param_groups:
            group["lr"] = rate * (1 - epoch / epochs)
        if bq.should_stop():
            return
        distorted = digits.distort(images, generator)
        for chosen in torch.randperm(len(images), generator=generator).split(BATCH):
            optimiser.zero_grad()
            loss = functional.cross_entropy(model(distorted[chosen]), labels[chosen])
            loss.backward()
            optimiser.step()


@torch.no_grad()
def share_right(model: torch.nn.Module, part: str) -> float:
    """Returns the share of a part's pictures that the model tells right."""
    images, labels = digits.load()[part]
    return float((model(images).argmax(1) == labels).float().mean())


if __name__ == "__main__":
    bq.report_final(train(bq.get_parameters()))
