"""A network that holds the weights of all architectures, in numpy: one per layer and operation.

An architecture uses some of them (Pham et al. 2018, section 2.3): each layer does one operation
on the mean of its inputs, which are the layer before and the earlier ones that it skips to. That
mean is brought to one size first, as the paper does with batch norms: weights that are shared do
not know what comes in otherwise, and operations that bound what they put out look good for that.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Weights = dict[str, Array]

PIXELS, CLASSES, WIDTH, NARROW = 64, 10, 32, 8
LAYERS = 6
OPERATIONS = ("relu", "tanh", "narrow", "same")


def initial(seed: int) -> Weights:
    """Returns weights for everything, drawn as He et al. 2015 do."""
    rng = np.random.default_rng(seed)

    def matrix(rows: int, columns: int) -> Array:
        return rng.normal(0, np.sqrt(2 / columns), (rows, columns))

    weights = {"stem": matrix(WIDTH, PIXELS), "out": matrix(CLASSES, WIDTH) / 4}
    for layer in range(LAYERS):
        weights[f"{layer}.relu"] = matrix(WIDTH, WIDTH)
        weights[f"{layer}.tanh"] = matrix(WIDTH, WIDTH) / 2
        weights[f"{layer}.narrow.in"] = matrix(NARROW, WIDTH)
        weights[f"{layer}.narrow.out"] = matrix(WIDTH, NARROW)
    return weights


def inputs_of(architecture: list[dict[str, Any]], layer: int) -> list[int]:
    """Returns which outputs a layer takes the mean of; 0 is the stem's, ``n`` that of layer
    ``n - 1``."""
    return [layer, *(skip + 1 for skip in architecture[layer]["skips"])]


def forward(weights: Weights, architecture: list[dict[str, Any]], x: Array) -> list[Array]:
    """Returns what the stem, each layer and the last matrix put out, for each row of ``x``."""
    outs = [np.maximum(x @ weights["stem"].T, 0)]
    for layer, chosen in enumerate(architecture):
        seen, _ = _evened(np.mean([outs[each] for each in inputs_of(architecture, layer)], axis=0))
        outs.append(_operation(weights, layer, chosen["operation"], seen))
    return [*outs, outs[-1] @ weights["out"].T]


def _evened(x: Array) -> tuple[Array, Array]:
    """Returns rows with a mean square of 1, and the size that each had."""
    size = np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6)
    return x / size, size


def _operation(weights: Weights, layer: int, name: str, seen: Array) -> Array:
    if name == "relu":
        return np.maximum(seen @ weights[f"{layer}.relu"].T, 0)
    if name == "tanh":
        return np.tanh(seen @ weights[f"{layer}.tanh"].T)
    if name == "narrow":
        inner = np.maximum(seen @ weights[f"{layer}.narrow.in"].T, 0)
        return inner @ weights[f"{layer}.narrow.out"].T
    return seen


def gradients(
    weights: Weights, architecture: list[dict[str, Any]], x: Array, labels: npt.NDArray[Any]
) -> Weights:
    """Returns the gradients of the mean cross-entropy, of those weights only that are used."""
    *outs, logits = forward(weights, architecture, x)
    odds = np.exp(logits - logits.max(axis=1, keepdims=True))
    odds /= odds.sum(axis=1, keepdims=True)
    odds[np.arange(len(x)), labels] -= 1
    odds /= len(x)
    found = {"out": odds.T @ outs[-1]}
    back = [np.zeros_like(each) for each in outs]
    back[-1] = odds @ weights["out"]
    for layer in reversed(range(len(architecture))):
        sources = inputs_of(architecture, layer)
        seen, size = _evened(np.mean([outs[each] for each in sources], axis=0))
        name, out, due = architecture[layer]["operation"], outs[layer + 1], back[layer + 1]
        if name in ("relu", "tanh"):
            due = due * ((out > 0) if name == "relu" else 1 - out * out)
            found[f"{layer}.{name}"] = due.T @ seen
            due = due @ weights[f"{layer}.{name}"]
        elif name == "narrow":
            inner = np.maximum(seen @ weights[f"{layer}.narrow.in"].T, 0)
            found[f"{layer}.narrow.out"] = due.T @ inner
            due = (due @ weights[f"{layer}.narrow.out"]) * (inner > 0)
            found[f"{layer}.narrow.in"] = due.T @ seen
            due = due @ weights[f"{layer}.narrow.in"]
        due = (due - seen * (due * seen).mean(axis=1, keepdims=True)) / size
        for each in sources:
            back[each] = back[each] + due / len(sources)
    found["stem"] = (back[0] * (outs[0] > 0)).T @ x
    return found


def fit(
    weights: Weights,
    architectures: list[list[dict[str, Any]]],
    data: tuple[Array, npt.NDArray[Any]],
    steps: int,
    rate: float,
    rng: np.random.Generator,
) -> None:
    """Trains in place, an architecture for each minibatch in turn; the rate falls to nothing."""
    x, labels = data
    for step in range(steps):
        chosen = rng.integers(len(x), size=64)
        noisy = x[chosen] + rng.normal(0, 0.1, (64, PIXELS))
        architecture = architectures[step % len(architectures)]
        for name, gradient in gradients(weights, architecture, noisy, labels[chosen]).items():
            weights[name] -= rate * (1 - step / steps) * gradient


def share_right(
    weights: Weights, architecture: list[dict[str, Any]], data: tuple[Array, npt.NDArray[Any]]
) -> float:
    """Returns the share of pictures that are told right."""
    x, labels = data
    return float((forward(weights, architecture, x)[-1].argmax(axis=1) == labels).mean())
