"""Checkpoints of one trial: states from which its next attempt goes on.

They lie below the weights root, where another host could reach them, under a name that no
tuner can claim::

    <weights root>/.checkpoints/<experiment>/<trial>/            the author's own files
    <weights root>/.checkpoints/<experiment>/<trial>/.saved/<attempt>/<number>-<digest>/

Each is a state in the weight store's format, published by the rename that gives it its name;
the digest in the name is what a reader checks. Each attempt writes into a folder of its own,
so one that was given up and lives on (a zombie) overwrites nothing of its successor's; once it
can see its successor's folder it is refused.

Whoever may write to the weights root can guess these names and put links there. So everything
is made, renamed and removed by a walk that follows none
(:mod:`~trial_runtime.weights.storage.confined`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from trial_runtime.api_errors import AttemptSuperseded
from trial_runtime.errors import PathError, WeightsError
from trial_runtime.weights.storage import confined
from trial_runtime.weights.storage.paths import CHECKPOINTS_NAME

#: Checkpoints of one attempt that are kept: the newest, and one should the disk spoil it.
KEPT: Final = 2

_SAVED: Final = ".saved"
_DRAFT: Final = ".draft-"


def folder_of(weights_root: str, experiment: str, trial: int) -> str:
    """The folder of a trial's checkpoints.

    Args:
        weights_root: the folder below which all weights of the experiment lie.
        experiment: the experiment's id.
        trial: the trial's number.
    """
    return os.path.join(weights_root, CHECKPOINTS_NAME, experiment, str(trial))


def canonical(folder: str) -> str:
    """A path from :func:`folder_of` without links in the weights root's own path.

    Links below the root are not followed: none of them is ours. A folder of a trial that is run
    by hand is its user's own.
    """
    above, trial = os.path.split(os.path.normpath(folder))
    above, experiment = os.path.split(above)
    root, name = os.path.split(above)
    if name != CHECKPOINTS_NAME:
        return os.path.realpath(folder)
    return os.path.join(os.path.realpath(root), name, experiment, trial)


def make_folder(folder: str) -> None:
    """Make the folder of a trial's checkpoints, with all above it.

    Raises:
        PathThroughLink: somebody has put a link there.
    """
    with confined.folder(canonical(folder), make=True):
        pass


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
        self._saved = os.path.join(canonical(folder), _SAVED)
        self._attempt = attempt
        self._own = os.path.join(self._saved, str(attempt))

    def save(self, state: Any) -> str:
        """Publish a state, durably and all at once; older ones of this attempt are removed.

        Blocks until the disk has it. Returns the folder of the checkpoint.

        Raises:
            AttemptSuperseded: a later attempt of this trial has begun.
            WeightsError: the state cannot be stored, or the disk is full.
            PathThroughLink: somebody has put a link in the way.
        """
        from trial_runtime import weights
        from trial_runtime.weights.storage.roots import Located

        with confined.folder(self._own, make=True):
            pass
        self._refuse_superseded()
        number = max((each.number for each in self._of(self._attempt)), default=0) + 1
        name = f"{_DRAFT}{number}"
        draft = os.path.join(self._own, name)
        _remove(draft)  # of a process that died within a save
        try:
            published = weights.save(state, Located(draft, self._own), writer="")
            self._refuse_superseded()
            final = f"{number:06d}-{published.digest}"
            with confined.folder(self._own) as at:
                try:
                    os.rename(name, final, src_dir_fd=at, dst_dir_fd=at)
                except FileNotFoundError:
                    # Done before, by an NFS server that crashed before it could answer.
                    os.stat(final, dir_fd=at, follow_symlinks=False)
                confined.sync(at)
        except BaseException:
            _remove(draft)
            raise
        self._forget_older()
        return os.path.join(self._own, final)

    def load(self, into: Any = None, **options: Any) -> Any:
        """Load the newest checkpoint of this trial that is whole; None if there is none.

        Checkpoints that are torn or have changed on the disk are passed over. Options and result
        are those of :func:`trial_runtime.weights.load`.
        """
        from trial_runtime import weights
        from trial_runtime.weights.storage.roots import Located

        with confined.folder(self._own, make=True):
            pass  # attempts before this one see that it has begun
        options.pop("root", None)
        saved = [each for attempt in self._attempts() for each in self._of(attempt)]
        for each in sorted(saved, reverse=True):
            if each.attempt > self._attempt:
                continue
            place = Located(each.path, os.path.dirname(each.path))
            try:
                weights.verify(place, each.digest, stale_timeout_s=0.0)
            except (WeightsError, OSError):
                continue
            options.update(digest=each.digest, stale_timeout_s=0.0)
            return weights.load(place, into, **options)
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
            _remove(each.path)
        if len(own) >= KEPT:
            for attempt in self._attempts():
                if attempt < self._attempt:
                    _remove(os.path.join(self._saved, str(attempt)))

    def _attempts(self) -> list[int]:
        return [int(name) for name in confined.names(self._saved) if _is_number(name)]

    def _of(self, attempt: int) -> Iterator[_Checkpoint]:
        folder = os.path.join(self._saved, str(attempt))
        try:
            names = confined.names(folder)
        except PathError:
            return  # a link in the place of an attempt holds none of ours
        for name in names:
            number, _, digest = name.partition("-")
            if _is_number(number) and digest:
                yield _Checkpoint(attempt, int(number), digest, os.path.join(folder, name))


def _is_number(name: str) -> bool:
    return name.isascii() and name.isdigit()  # ² is a digit, too, and no number


def _remove(folder: str) -> None:
    """Remove a folder. One that cannot be removed stays: it is no checkpoint, or one too many."""
    try:
        confined.remove_tree(folder)
    except (OSError, RecursionError, PathError):
        pass
