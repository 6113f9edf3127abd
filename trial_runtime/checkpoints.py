"""Checkpoints of one trial: what its next attempt goes on from.

They lie below the weights root, where another host could reach them, under a name that no
tuner can claim::

    <weights root>/.checkpoints/<experiment>/<trial>/            the author's own files
    <weights root>/.checkpoints/<experiment>/<trial>/.saved/<attempt>/<number>-<digest>/

Each is a state in the weight store's format, published by the rename that gives it its name;
the digest in the name is what a reader checks. Each attempt writes into a folder of its own,
so one that was given up and lives on (a zombie) overwrites nothing of its successor's; once it
can see its successor's folder it is refused.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trial_runtime.api_errors import AttemptSuperseded
from trial_runtime.errors import WeightsError
from trial_runtime.weights.paths import CHECKPOINTS_NAME

#: Checkpoints of one attempt that are kept: the newest, and one should the disk spoil it.
KEPT: Final = 2

_SAVED: Final = ".saved"
_DRAFT: Final = ".draft-"


def folder_of(weights_root: str, experiment: str, trial: int) -> str:
    """Where the checkpoints of a trial lie."""
    return os.path.join(weights_root, CHECKPOINTS_NAME, experiment, str(trial))


class _Checkpoint(NamedTuple):
    attempt: int
    number: int
    digest: str
    path: str


class Checkpoints:
    """The checkpoints of a trial as one of its attempts sees them.

    Args:
        folder: :func:`folder_of` the trial.
        attempt: the number of this attempt.
    """

    def __init__(self, folder: str, attempt: int) -> None:
        self._saved = os.path.join(folder, _SAVED)
        self._attempt = attempt
        self._own = os.path.join(self._saved, str(attempt))

    def save(self, state: Any) -> str:
        """Publish a state, durably and all at once; older ones of this attempt go.

        Blocks until the disk has it. Returns the folder it lies in.

        Raises:
            AttemptSuperseded: a later attempt of this trial has begun.
            WeightsError: the state cannot be stored, or the disk is full.
        """
        from trial_runtime import weights
        from trial_runtime.weights.publishing import sync_folder

        os.makedirs(self._own, exist_ok=True)
        self._refuse_superseded()
        number = max((each.number for each in self._of(self._attempt)), default=0) + 1
        draft = os.path.join(self._own, f"{_DRAFT}{number}")
        shutil.rmtree(draft, ignore_errors=True)  # of a process that died within a save
        try:
            published = weights.save(state, draft, root=self._own, writer="")
            self._refuse_superseded()
            path = os.path.join(self._own, f"{number:06d}-{published.digest}")
            try:
                os.rename(draft, path)
            except FileNotFoundError:
                # Done before, by an NFS server that crashed before it could say so.
                if not os.path.isdir(path):
                    raise
        except BaseException:
            shutil.rmtree(draft, ignore_errors=True)
            raise
        sync_folder(self._own)
        self._forget_older()
        return path

    def load(self, into: Any = None, **options: Any) -> Any:
        """Load the newest checkpoint of this trial that is whole; None if there is none.

        Those that are torn or have changed on the disk are passed over. Options and the
        answer are those of :func:`trial_runtime.weights.load`.
        """
        from trial_runtime import weights

        os.makedirs(self._own, exist_ok=True)  # attempts before this one see that it has begun
        found = [each for attempt in self._attempts() for each in self._of(attempt)]
        for each in sorted(found, reverse=True):
            if each.attempt > self._attempt:
                continue
            root = os.path.dirname(each.path)
            try:
                weights.verify(each.path, each.digest, root=root, stale_timeout_s=0.0)
            except (WeightsError, OSError):
                continue
            options.update(digest=each.digest, root=root, stale_timeout_s=0.0)
            return weights.load(each.path, into, **options)
        return None

    def _refuse_superseded(self) -> None:
        later = max(self._attempts(), default=0)
        if later > self._attempt:
            raise AttemptSuperseded(
                f"attempt {later} of this trial has begun; this is attempt {self._attempt}",
                hint="nothing that this process still does counts: let it end",
                where=self._own,
            )

    def _forget_older(self) -> None:
        own = sorted(self._of(self._attempt))
        for each in own[:-KEPT]:
            shutil.rmtree(each.path, ignore_errors=True)
        if len(own) >= KEPT:
            for attempt in self._attempts():
                if attempt < self._attempt:
                    shutil.rmtree(os.path.join(self._saved, str(attempt)), ignore_errors=True)

    def _attempts(self) -> list[int]:
        return [int(name) for name in _names(self._saved) if name.isdigit()]

    def _of(self, attempt: int) -> Iterator[_Checkpoint]:
        folder = os.path.join(self._saved, str(attempt))
        for name in _names(folder):
            number, _, digest = name.partition("-")
            if number.isdigit() and digest:
                yield _Checkpoint(attempt, int(number), digest, os.path.join(folder, name))


def _names(folder: str) -> list[str]:
    try:
        return os.listdir(folder)
    except FileNotFoundError:
        return []
