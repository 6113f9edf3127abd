"""What a program in a race leaves and says: when its first trial began, and that it has arrived."""

from __future__ import annotations

import os
import time
from pathlib import Path

#: In the environment of a race: a folder of its own, and its seed.
FOLDER, SEED = "BEQUEATH_RACE_FOLDER", "BEQUEATH_RACE_SEED"

#: The line by which a program says that it knows of such a result.
ARRIVED = "arrived"
BEGAN = "first-trial"


def seed() -> int:
    """The race's seed."""
    return int(os.environ[SEED])


def trial_begins() -> None:
    """Note the time, if no trial has before."""
    place = Path(os.environ[FOLDER]) / BEGAN
    try:
        with place.open("x") as note:
            note.write(repr(time.time()))
    except FileExistsError:
        pass


def hear(accuracy: float, target: float) -> None:
    """Called by a program's own callback with each result; the first good one is the end."""
    if accuracy >= target:
        print(ARRIVED, accuracy, flush=True)
