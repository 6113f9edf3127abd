"""scikit-learn's 1797 pictures of 8 by 8 pixels: few to train on, the rest to judge by."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np


@functools.cache
def load() -> dict[str, tuple[Any, Any]]:
    """Returns ``train`` (300), ``validation`` (700) and ``test`` (797) as (pixels, labels)."""
    from sklearn.datasets import load_digits

    pictures, labels = load_digits(return_X_y=True)
    x, order = pictures / 16 - 0.3, np.random.default_rng(1797).permutation(len(labels))
    parts = np.split(order, [300, 1000])
    return {
        name: (x[part], labels[part])
        for name, part in zip(("train", "validation", "test"), parts, strict=True)
    }
