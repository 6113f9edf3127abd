"""The trial of population based training: a member is trained for some epochs more.

Network, pictures and space are those of ``benchmarks.tuner_digits``, with more hidden units, so
that a generation takes a tenth of a second.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.races import clock
from benchmarks.tuner_digits.data import data
from benchmarks.tuner_digits.network import State, accuracy, fresh, train

POPULATION, EPOCHS, WIDTH = 8, 20, 256
WORKERS = 2

#: The validation accuracy that is raced for.
TARGET = 0.85

#: Of truncation, and of drawing a hyperparameter anew: Ray Tune's and Syne Tune's defaults.
FRACTION, RESAMPLED = 0.25, 0.25

#: By name: whether its logarithm is uniform, and from where to where it goes.
SPACE: dict[str, tuple[bool, float, float]] = {
    "lr": (True, 1e-4, 3.0),
    "momentum": (False, 0.0, 0.99),
    "decay": (True, 1e-6, 1e-1),
    "noise": (False, 0.0, 2.0),
    "moved": (False, 0.0, 1.0),
    "dropout": (False, 0.0, 0.7),
}


def generation(
    parameters: Mapping[str, Any], state: State | None, *numbers: int
) -> tuple[State, float]:
    """Train a member on, and judge it.

    Args:
        parameters: what the space names. Ray Tune's may have left it: they are brought back.
        state: what is gone on with; None: begin anew.
        numbers: of the trial, so that each has noise of its own.
    """
    clock.trial_begins()
    dice = np.random.default_rng([clock.seed(), *numbers])
    config = {
        name: min(high, max(low, float(parameters[name]))) for name, (_, low, high) in SPACE.items()
    }
    with np.errstate(all="ignore"):  # a rate that is too high overflows: it reads nothing
        state = train(fresh(dice, WIDTH) if state is None else state, config, EPOCHS, dice)
        return state, accuracy(state, data().valid)


def write(state: State, folder: str | Path) -> None:
    """Write a checkpoint."""
    weights, speeds = state
    folder = Path(folder)
    # Beside the folder: Syne Tune copies it while its trial goes on, and fails if a file vanishes.
    new = folder.with_name(f"{folder.name}-new.npz")
    np.savez(new, weights=weights, speeds=speeds)
    new.replace(folder / "member.npz")


def read(folder: str | Path) -> State:
    """Read what :func:`write` wrote."""
    with np.load(Path(folder) / "member.npz") as kept:
        return kept["weights"], kept["speeds"]
