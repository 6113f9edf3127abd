"""Removal of what trials that are over left: files of crashes, and checkpoints."""

from __future__ import annotations

import os
import posixpath
import shutil
import time
from collections.abc import Callable, Collection, Iterable
from pathlib import Path

from dispatcher.errors import PassingBackendError
from dispatcher.weight_keeper.ledger import Ledger
from trial_runtime.checkpoints import folder_of
from trial_runtime.weights.storage import confined


class LeftoverSweep:
    """Looks at the save paths of trials that have ended, until nothing is left there.

    Files that a trial may use which has not ended are not looked at, nor are the weights that such
    a trial starts from: a file that was removed while a process reads it is in use until then.

    Args:
        root: the weights root.
        ledger: trials, and what open requests wait for.
        clock: the time, in seconds since the epoch.
    """

    def __init__(
        self, root: Path, ledger: Ledger, *, clock: Callable[[], float] = time.time
    ) -> None:
        self._root = str(root)
        self._ledger = ledger
        self._clock = clock
        self._settled: set[str] = set()

    def look(self) -> int:
        """Remove what is old enough; returns how much that was. Blocks on the disk.

        A folder in which nothing is left is not looked at again. What cannot go yet (a file
        that is still open) is left for the next look, which is no error.

        Raises:
            PassingBackendError: the file system refused; the next look tries again.
        """
        from trial_runtime.errors import PathError
        from trial_runtime.weights.storage.leftovers import sweep_leftovers

        trials = self._ledger.trials()
        live = [trial for trial in trials if trial.state != "ended"]
        needed = {trial.id for trial in live} | self._ledger.awaited()
        needed.update(trial.parent for trial in live if trial.parent is not None)
        claimed = _with_folders_above(trial.save_path for trial in trials)
        removed = 0
        for trial in trials:
            path = trial.save_path
            if path is None or trial.id in needed or path in self._settled:
                continue
            try:
                swept = sweep_leftovers(self._root, path, self._clock(), claimed)
            except PathError:
                continue  # somebody has turned it into a link: what that leads to is not ours
            except OSError as error:
                raise PassingBackendError(
                    f"leftovers could not be removed: {error.strerror or error}",
                    hint="the next look tries again",
                    where=f"{self._root}/{path}",
                ) from error
            removed += swept.removed
            if not swept.waiting:
                self._settled.add(path)
        return removed


def _with_folders_above(paths: Iterable[str | None]) -> set[str]:
    found: set[str] = set()
    for path in paths:
        while path and path not in found:
            found.add(path)
            path = posixpath.dirname(path)
    return found


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
