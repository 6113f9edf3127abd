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


#: A picture is drawn with four times the pixels that the network sees, as the digits it has learnt
#: from were: each of their pixels counts the ink in 4 by 4.
FINER = 4
SIDE = 8

INFER_INPUTS = {
    "digit": {"kind": "drawing", "label": "Draw a digit", "width": 32, "height": 32},
}


def load_model(parameters: dict[str, Any]) -> torch.nn.Module:
    """Builds the trial's network and loads its weights, to be asked by `bequeath infer`."""
    model = network.Network({**BY_HAND, **parameters}["blocks"])
    bq.load_weights(model, strict=True)
    return model.eval()


@torch.no_grad()
def infer(model: torch.nn.Module, request: dict[str, Any]) -> dict[str, Any]:
    """Reads a digit that somebody drew.

    Args:
        model: what `load_model` returned.
        request: ``digit``: rows of numbers from 0 (paper) to 1 (ink), finer than the network's.

    Returns:
        ``answer``: the digit; ``scores``: the share that the network gives to each.
    """
    image = fitted(torch.tensor(request["digit"]))
    scores = model(image[None, None]).softmax(1)[0]
    return {
        "answer": int(scores.argmax()),
        "scores": {str(digit): float(score) for digit, score in enumerate(scores)},
    }


def fitted(drawn: torch.Tensor) -> torch.Tensor:
    """Cuts a drawing out, as tall as the picture, and counts its ink. Shape (8, 8)."""
    rows, columns = drawn.any(1).nonzero().flatten(), drawn.any(0).nonzero().flatten()
    if not len(rows):
        return torch.zeros(SIDE, SIDE)
    cut = drawn[rows[0] : rows[-1] + 1, columns[0] : columns[-1] + 1]
    side = FINER * SIDE
    wide = max(1, min(side, round(cut.shape[1] * side / cut.shape[0])))
    large = functional.interpolate(cut[None, None], size=(side, wide), mode="area")
    before = (side - wide) // 2
    placed = functional.pad(large, (before, side - wide - before))
    return functional.avg_pool2d(placed, FINER)[0, 0]


if __name__ == "__main__":
    bq.report_final(train(bq.get_parameters()))
