"""The task: digits that were turned, shifted and made noisy, and one way to train on them.

Every batch shows pictures that were distorted anew, so that training goes on paying for long: a
network from scratch needs thousands of steps, and a short trial is a poor one unless it inherits.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from benchmarks.plain_digits import plain_digits

Array = npt.NDArray[np.float32]
Weights = dict[str, Array]
#: (step, pictures) to what each layer put out, scores last, and a way back from their slope.
Pass = Callable[[int, Array], tuple[Array, Callable[[Array], Weights]]]

PIXELS, CLASSES = 64, 10
COPIES = 60  # of each that is learned from, each distorted in its own way
TURN_DEGREES, SHIFT, NOISE = 60.0, 2.0, 0.2
BATCH, MOMENTUM, STEEPEST = 64, np.float32(0.9), 1.0


@dataclass(frozen=True)
class Shares:
    """How the 1,797 digits are shared out; the remaining ones are the test set.

    ``shown``: in how many distorted copies each of validation and test is shown.
    """

    train: int
    validation: int
    shown: int


#: Few to learn from, so that a network may learn them by heart; and as many as there are.
FEW, MANY = Shares(400, 900, 2), Shares(1197, 300, 6)


@functools.cache
def data(shares: Shares) -> dict[str, tuple[Array, npt.NDArray[np.int64]]]:
    """``train``, ``validation`` and ``test`` as (pictures of shape (n, 64), digits)."""
    pictures, digits = plain_digits()
    dice = np.random.default_rng(1797)
    order = np.split(
        dice.permutation(len(digits)), [shares.train, shares.train + shares.validation]
    )
    found = {}
    shown = {"train": COPIES, "validation": shares.shown, "test": shares.shown}
    for (name, copies), part in zip(shown.items(), order, strict=True):
        plain = pictures[part].reshape(-1, 8, 8) / 16
        seen = np.concatenate([distorted(plain, dice) for _ in range(copies)]) - 0.3
        found[name] = (seen.reshape(-1, PIXELS).astype(np.float32), np.tile(digits[part], copies))
    return found


def distorted(pictures: npt.NDArray[np.float64], dice: np.random.Generator) -> np.ndarray:
    """Each picture (n, 8, 8) turned and shifted, between pixels linearly, with noise added."""
    angle = np.radians(dice.uniform(-TURN_DEGREES, TURN_DEGREES, len(pictures)))[:, None, None]
    down, right = dice.uniform(-SHIFT, SHIFT, (2, len(pictures), 1, 1))
    row, column = np.mgrid[0:8, 0:8] - 3.5
    at_row = np.cos(angle) * row - np.sin(angle) * column + 3.5 + down
    at_column = np.sin(angle) * row + np.cos(angle) * column + 3.5 + right
    framed = np.pad(pictures, ((0, 0), (6, 6), (6, 6)))  # what is turned in is black
    top, left = np.floor(at_row).astype(int), np.floor(at_column).astype(int)
    below, beside = at_row - top, at_column - left
    number = np.arange(len(pictures))[:, None, None]
    shown = np.zeros(pictures.shape)
    for one, share_down in ((0, 1 - below), (1, below)):
        for two, share_right in ((0, 1 - beside), (1, beside)):
            shown += share_down * share_right * framed[number, top + one + 6, left + two + 6]
    return shown + dice.normal(0.0, NOISE, shown.shape)


def fit(
    weights: Weights,
    through: Pass,
    steps: int,
    rate: float,
    dice: np.random.Generator,
    shares: Shares,
) -> None:
    """Trains in place: momentum, gradients clipped, and a rate that falls to nothing.

    So trials are judged at rest. Weights that a step does not use stay as they are.
    """
    pictures, digits = data(shares)["train"]
    speeds = {name: np.zeros_like(one) for name, one in weights.items()}
    batches = dice.integers(len(digits), size=(steps, BATCH))
    rows = np.arange(BATCH)
    for step, chosen in enumerate(batches):
        scores, back = through(step, pictures[chosen])
        slope = np.exp(scores - scores.max(1, keepdims=True))
        slope /= slope.sum(1, keepdims=True)
        slope[rows, digits[chosen]] -= 1
        slope /= BATCH
        slopes = back(slope)
        size = math.sqrt(sum(float(np.vdot(one, one)) for one in slopes.values()))
        slower = np.float32(rate * (1 - step / steps) / max(1.0, size / STEEPEST))
        for name, one in slopes.items():
            speed = speeds[name]
            speed *= MOMENTUM
            speed -= slower * one
            weights[name] += speed


def share_right(through: Pass, part: str, shares: Shares) -> float:
    """The share of a part's pictures whose highest score is that of their digit."""
    pictures, digits = data(shares)[part]
    scores, _ = through(0, pictures)
    return float((scores.argmax(1) == digits).mean())


def drawn(inputs: int, outputs: int, dice: np.random.Generator) -> Array:
    """Initial weights of a layer (outputs, inputs), by He et al. (2015)."""
    return dice.normal(0.0, math.sqrt(2 / inputs), (outputs, inputs)).astype(np.float32)
