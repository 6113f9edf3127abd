"""The pictures: digits that are written anywhere, few to learn from, many to choose by.

scikit-learn's digits, eight pixels a side, moved by up to one pixel. What is learnt from is clean
and comes in all nine places, so that noise and moves are the training's to add; what is judged by
is moved and noisy, once for all.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np

from benchmarks.plain_digits import plain_digits

SIDE = 8
LEARN, CHOOSE = 300, 700  # the rest are those that no search sees
NOISE = 0.5  # standard deviation, where the pictures' own is 1
COPIES = 4  # of each picture that is judged by, moved and spoilt differently
MOVES = tuple(product((-1, 0, 1), repeat=2))
HOME = MOVES.index((0, 0))


@dataclass(frozen=True)
class Judged:
    """Pictures as rows, and what they show."""

    pictures: np.ndarray
    digits: np.ndarray


@dataclass(frozen=True)
class Digits:
    """``learn`` is move by picture by pixel; ``wanted`` has a row of ten for each picture."""

    learn: np.ndarray
    wanted: np.ndarray
    valid: Judged
    test: Judged


@cache
def data() -> Digits:
    """The same in every process."""
    pictures, digits = plain_digits()
    dice = np.random.default_rng(0)
    order = dice.permutation(len(digits))
    pictures, digits = pictures[order].reshape(-1, SIDE, SIDE), digits[order]
    pictures = (pictures - pictures.mean()) / pictures.std()
    places = np.stack([_moved(pictures, *move).reshape(len(digits), -1) for move in MOVES])

    def judged(which: np.ndarray) -> Judged:
        many = np.tile(which, COPIES)
        rows = places[dice.integers(len(MOVES), size=len(many)), many]
        return Judged(rows + NOISE * dice.normal(size=rows.shape), digits[many])

    everything = np.arange(len(digits))
    return Digits(
        places[:, :LEARN],
        np.eye(10)[digits[:LEARN]],
        judged(everything[LEARN : LEARN + CHOOSE]),
        judged(everything[LEARN + CHOOSE :]),
    )


def _moved(pictures: np.ndarray, down: int, right: int) -> np.ndarray:
    """What leaves is lost, what comes in is as dark as the darkest."""
    wide = np.pad(pictures, ((0, 0), (1, 1), (1, 1)), constant_values=pictures.min())
    return wide[:, 1 - down : 1 - down + SIDE, 1 - right : 1 - right + SIDE]
