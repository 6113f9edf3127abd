"""Data files mapped into memory, where the file system they lie on allows that."""

from __future__ import annotations

import mmap
import os
from collections.abc import Iterable
from typing import Any

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.format import hashing
from trial_runtime.weights.format.manifest import TensorEntry
from trial_runtime.weights.read.held import is_only_ours
from trial_runtime.weights.read.opening import OpenedManifest, check_data_file
from trial_runtime.weights.read.read_in import ReadFiles
from trial_runtime.weights.read.tensor_files import TensorFiles, on_threads
from trial_runtime.weights.storage import faults
from trial_runtime.weights.storage.mounted import mount_of
from trial_runtime.weights.storage.paths import regular_file

# Pieces that copying threads share among themselves.
_COPY_PIECE_BYTES = 8 * 1024 * 1024


class MappedFiles(TensorFiles):
    """The data files of one manifest, each mapped when the first tensor of it is asked for,
    where nobody else can change it; the others are read, see :mod:`~.held`.

    Mappings are private and copy-on-write: tensors over them may be trained on, and the
    file never changes. They live as long as a tensor over them does; the files may be
    unlinked meanwhile, but cutting one short would kill its readers (SIGBUS), which is why
    nothing of ours ever does.
    """

    def __init__(self, opened: OpenedManifest) -> None:
        super().__init__(opened)
        self._maps: dict[str, mmap.mmap | None] = {}  # None: it is read
        self._read = ReadFiles(opened)

    def prepare(self, entries: Iterable[TensorEntry]) -> None:
        """Map what these tensors need and have the disk begin to read it, and nothing else."""
        foreign = []
        for entry in entries:
            if not entry.nbytes:
                continue
            mapping = self._map(entry.file)
            if mapping is None:
                foreign.append(entry)
                continue
            begin = entry.offset - entry.offset % mmap.PAGESIZE
            mapping.madvise(mmap.MADV_WILLNEED, begin, entry.offset + entry.nbytes - begin)
        if foreign:
            self._read.prepare(foreign)

    def _map(self, reference: str) -> mmap.mmap | None:
        if reference not in self._maps:
            path = self._opened.file(reference)
            try:
                mapping = faults.persist(lambda: self._map_now(reference, path), path)
            except FileNotFoundError:
                raise CorruptWeights(
                    "the data file is gone", where=path, writer=self._opened.manifest.writer
                ) from None
            if mapping is not None:
                # A partial load must not pay for the neighbours that read-ahead would bring.
                mapping.madvise(mmap.MADV_RANDOM)
            self._maps[reference] = mapping
        return self._maps[reference]

    def _map_now(self, reference: str, path: str) -> mmap.mmap | None:
        with regular_file(path) as (fd, size):
            check_data_file(self._opened, reference, fd, size)
            if not is_only_ours(os.fstat(fd)):
                return None
            return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)

    def buffer(self, entry: TensorEntry) -> tuple[Any, int]:
        """See :meth:`.TensorFiles.buffer`: the mapping, or memory."""
        mapping = self._map(entry.file)
        return self._read.buffer(entry) if mapping is None else (mapping, entry.offset)


def copy_bytes(pairs: Iterable[tuple[memoryview, memoryview]]) -> None:
    """Copy from each first buffer into each second one of the same size, on several threads."""
    import numpy as np

    pieces = [
        (source[at : at + _COPY_PIECE_BYTES], target[at : at + _COPY_PIECE_BYTES])
        for source, target in pairs
        for at in range(0, source.nbytes, _COPY_PIECE_BYTES)
    ]

    def copy(piece: tuple[memoryview, memoryview]) -> None:
        # numpy releases the interpreter while it copies; slice assignment does not.
        np.copyto(np.frombuffer(piece[1], np.uint8), np.frombuffer(piece[0], np.uint8))

    nbytes = sum(source.nbytes for source, _ in pieces)
    with on_threads(nbytes, hashing.workers(), "weights-copy") as over:
        for _ in over(copy, pieces):
            pass


def tensor_files(opened: OpenedManifest) -> TensorFiles:
    """The data files of a manifest: mapped where the disk is this machine's own, read where a
    file system is shared."""
    mount = mount_of(opened.folder)
    return ReadFiles(opened) if mount is not None and mount.shared else MappedFiles(opened)
