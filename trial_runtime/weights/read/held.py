"""A file of weights that stays what it was when it was checked.

A file that somebody else may write to can change after its digest was compared, or be cut short
under a mapping, which kills the reader (SIGBUS). Such a file is copied into memory of this
process, and the copy is what is compared and loaded. One that only this user can write to, on a
disk of this machine, is mapped: that costs nothing, and nothing of ours changes it in place.
"""

from __future__ import annotations

import mmap
import os
import stat
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, Final

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.format.manifest import TensorEntry
from trial_runtime.weights.read.opening import OpenedManifest
from trial_runtime.weights.read.tensor_files import TensorFiles
from trial_runtime.weights.storage.mounted import mount_of
from trial_runtime.weights.storage.paths import regular_file

PIECE_BYTES: Final = 4 * 1024 * 1024


def is_only_ours(status: os.stat_result) -> bool:
    """Whether nobody but this user, and root, can change an open file.

    The file alone counts: a user who may write to its folder can give the name to another file, not
    change this one. With an access control list the group's bits are its mask, so they cover it.
    """
    foreign = stat.S_IWGRP | stat.S_IWOTH
    return status.st_uid in (os.geteuid(), 0) and not status.st_mode & foreign


@dataclass(frozen=True)
class Held:
    """The bytes of a file, in memory that nobody else changes."""

    path: str
    memory: mmap.mmap | bytes  # bytes: the file is empty

    @property
    def nbytes(self) -> int:
        """The size of the file."""
        return len(self.memory)


def hold(path: str) -> Held:
    """Open the file at a canonical path, and map or copy all of it. Blocks on the disk.

    Raises:
        FileNotFoundError, PathThroughLink, WeightsError: see :func:`~.paths.open_regular`.
        CorruptWeights: it was cut short meanwhile.
    """
    with regular_file(path) as (fd, size):
        if not size:
            return Held(path, b"")
        mount = mount_of(path)
        if is_only_ours(os.fstat(fd)) and not (mount is not None and mount.shared):
            return Held(path, mmap.mmap(fd, size, access=mmap.ACCESS_COPY))
        memory = mmap.mmap(-1, size)
        view = memoryview(memory)
        at = 0
        while at < size:
            count = os.preadv(fd, [view[at : at + PIECE_BYTES]], at)
            if not count:
                raise CorruptWeights("is shorter than announced", where=path)
            at += count
        return Held(path, memory)


class HeldFiles(TensorFiles):
    """The tensors of one file that is held as a whole."""

    def __init__(self, opened: OpenedManifest, held: Held) -> None:
        super().__init__(opened)
        self._memory = held.memory

    def prepare(self, entries: Iterable[TensorEntry]) -> None:
        """Do nothing: all of the file is in memory."""

    def buffer(self, entry: TensorEntry) -> tuple[Any, int]:
        """See :meth:`.TensorFiles.buffer`."""
        return self._memory, entry.offset
