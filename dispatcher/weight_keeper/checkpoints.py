"""Removal of the checkpoints of trials that are over: no trial goes on from these."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable, Collection
from pathlib import Path

from dispatcher.errors import PassingBackendError
from trial_runtime.checkpoints import folder_of
from trial_runtime.weights.storage import confined


def sweep_checkpoints(
    root: Path, experiment: str, over: Callable[[Collection[int]], Collection[int]]
) -> int:
    """Remove the folders of trials that are over; returns how many that were.

    Cheap where there are none, and looks at what is there rather than remembers: what a
    crash left, or an attempt that was given up and lived on, goes with the next sweep.

    Args:
        root: the weights root.
        experiment: the experiment's id.
        over: which of these trials are over.

    Raises:
        PassingBackendError: some could not be removed; the next sweep tries again.
    """
    place = os.path.dirname(folder_of(os.path.realpath(root), experiment, 0))
    removed = 0
    try:
        with confined.folder(place) as above:
            found = [int(name) for name in os.listdir(place) if name.isascii() and name.isdigit()]
            for trial in over(found) if found else ():
                shutil.rmtree(str(trial), dir_fd=above)
                removed += 1
    except FileNotFoundError:
        pass  # nobody has kept one yet, or somebody else was faster
    except OSError as error:
        raise PassingBackendError(
            f"checkpoints of trials that are over could not be removed: {error.strerror}",
            hint="the next sweep tries again",
            where=place,
        ) from error
    return removed
