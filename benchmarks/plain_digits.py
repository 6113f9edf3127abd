"""scikit-learn's digits, also where there is no scikit-learn.

Environments of peers need not have it, and its import takes longer than the training of many a
trial here. So a benchmark that compares clocks writes them into a file, for all sides.
"""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import numpy.typing as npt

#: In the environment: the file to read them from.
FILE = "BEQUEATH_BENCH_DIGITS"


def plain_digits() -> tuple[npt.NDArray[np.float64], npt.NDArray[np.int64]]:
    """1,797 pictures as rows of 64 pixels from 0 to 16, and their digits."""
    if FILE in os.environ:
        with np.load(os.environ[FILE]) as kept:
            return kept["pictures"], kept["digits"]
    from sklearn.datasets import load_digits

    pictures, digits = load_digits(return_X_y=True)
    return pictures, digits


def write_digits(target: Path) -> None:
    """Write the file that :data:`FILE` may name."""
    pictures, digits = plain_digits()
    np.savez(target, pictures=pictures, digits=digits)
