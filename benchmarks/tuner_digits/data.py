"""The pictures: few to learn from, many to choose by, and the rest for what was chosen."""

from __future__ import annotations

from functools import cache

import numpy as np

TRAIN, VALID, TEST = slice(0, 300), slice(300, 1000), slice(1000, None)


@cache
def data() -> tuple[np.ndarray, np.ndarray]:
    """Pictures, standardised and with noise added once, and digits; in a fixed order."""
    from sklearn.datasets import load_digits

    pictures, digits = load_digits(return_X_y=True)
    dice = np.random.default_rng(0)
    pictures = (pictures - pictures.mean()) / pictures.std()
    pictures += dice.normal(0.0, 1.0, pictures.shape)
    order = dice.permutation(len(digits))
    return pictures[order], digits[order]
