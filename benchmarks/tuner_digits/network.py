"""A network with one hidden layer and its training, in numpy.

Noise, moves and dropout are added anew in every epoch; which amount is best depends on how far the
training is, as does the learning rate.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np

from benchmarks.tuner_digits.data import HOME, MOVES, SIDE, Judged, data

WIDTH, BATCH = 64, 50

#: All weights in a row, and the momentum of each.
State: TypeAlias = tuple[np.ndarray, np.ndarray]


#: Numbers that belong to each hidden unit; beside them there are ten biases.
_A_UNIT = SIDE**2 + 1 + 10


def parts(row: np.ndarray) -> list[np.ndarray]:
    """The weights as matrices and biases, layer by layer; they share the row's memory."""
    width = (len(row) - 10) // _A_UNIT
    shapes = ((SIDE**2, width), (width,), (width, 10), (10,))
    ends = np.cumsum([np.prod(shape) for shape in shapes])
    return [
        part.reshape(shape) for part, shape in zip(np.split(row, ends[:-1]), shapes, strict=True)
    ]


def fresh(dice: np.random.Generator, width: int = WIDTH) -> State:
    """A network that has learnt nothing, and is at rest."""
    weights = np.zeros(width * _A_UNIT + 10)
    first, _, second, _ = parts(weights)
    first[:] = dice.normal(0.0, np.sqrt(2 / SIDE**2), first.shape)
    second[:] = dice.normal(0.0, np.sqrt(1 / width), second.shape)
    return weights, np.zeros_like(weights)


def train(state: State, config: Mapping[str, Any], epochs: int, dice: np.random.Generator) -> State:
    """Stochastic gradient descent on the cross-entropy; the state that came in stays as it is."""
    weights, speeds = (one.copy() for one in state)
    first, first_bias, second, second_bias = parts(weights)
    slopes = np.empty_like(weights)
    for _ in range(epochs):
        pictures, wanted, kept = _epoch(config, len(first_bias), dice)
        for start in range(0, len(wanted), BATCH):
            some = slice(start, start + BATCH)
            hidden = np.maximum(0.0, pictures[some] @ first + first_bias) * kept[some]
            error = softmax(hidden @ second + second_bias) - wanted[some]
            error /= len(error)
            back = (error @ second.T) * (hidden > 0) * kept[some]
            found = (pictures[some].T @ back, back.sum(0), hidden.T @ error, error.sum(0))
            np.concatenate([one.ravel() for one in found], out=slopes)
            speeds *= config["momentum"]
            speeds -= config["lr"] * (slopes + config["decay"] * weights)
            weights += speeds
    return weights, speeds


def _epoch(
    config: Mapping[str, Any], width: int, dice: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """All pictures once, spoilt as configured; what they show; which hidden units take part."""
    digits = data()
    count = len(digits.wanted)
    order = dice.permutation(count)
    moves = np.where(
        dice.random(count) < config["moved"], dice.integers(len(MOVES), size=count), HOME
    )
    pictures = digits.learn[moves, order]
    pictures = pictures + config["noise"] * dice.standard_normal(pictures.shape, dtype=np.float32)
    taking_part = dice.random((count, width), dtype=np.float32) >= config["dropout"]
    return pictures, digits.wanted[order], taking_part / (1 - config["dropout"])


def softmax(scores: np.ndarray) -> np.ndarray:
    """Row by row."""
    powers: np.ndarray = np.exp(scores - scores.max(1, keepdims=True))
    powers /= powers.sum(1, keepdims=True)
    return powers


def accuracy(state: State, judged: Judged) -> float:
    """The share of pictures that is read as it should be."""
    first, first_bias, second, second_bias = parts(state[0])
    hidden = np.maximum(0.0, judged.pictures @ first + first_bias)
    guessed = (hidden @ second + second_bias).argmax(1)
    return float((guessed == judged.digits).mean())
