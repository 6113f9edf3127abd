"""Data files of shared file systems, read into memory rather than mapped.

A fault of the network under a mapping is SIGBUS: it ends the trial without a message. Under a
read it is an error that can be tried again or reported. Reading also brings megabytes a round
trip where faults bring pages, and bytes that were read and checked cannot change any more.
"""

from __future__ import annotations

import mmap
import os
from bisect import bisect_right
from collections.abc import Iterable
from typing import Any, Final, NamedTuple

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.format.manifest import TensorEntry
from trial_runtime.weights.read.opening import OpenedManifest, check_data_file
from trial_runtime.weights.read.tensor_files import TensorFiles, on_threads
from trial_runtime.weights.storage import faults
from trial_runtime.weights.storage.paths import regular_file

#: One read call: several requests of the largest size that servers take.
_PIECE_BYTES: Final = 4 * 1024 * 1024
#: Reads under way at once: threads wait for the network here, not for a processor.
_THREADS: Final = 4
#: A gap between two wanted tensors is read as well if it is smaller than this: that costs less
#: than a request of its own.
_GAP_BYTES: Final = 64 * 1024


class _Run(NamedTuple):
    """A stretch of a file, and the memory it was read into."""

    begin: int
    end: int
    memory: mmap.mmap


class ReadFiles(TensorFiles):
    """The data files of one manifest: the tensors that were asked for, in this process's memory."""

    def __init__(self, opened: OpenedManifest) -> None:
        super().__init__(opened)
        self._runs: dict[tuple[str, int, int], _Run] = {}  # by file, offset and size of tensors

    def prepare(self, entries: Iterable[TensorEntry]) -> None:
        """Read what these tensors need and is not there yet; blocks until it is."""
        wanted: dict[str, set[tuple[int, int]]] = {}
        for entry in entries:
            if entry.nbytes and _place(entry) not in self._runs:
                wanted.setdefault(entry.file, set()).add((entry.offset, entry.nbytes))
        for reference, places in wanted.items():
            runs = [_Run(a, b, mmap.mmap(-1, b - a)) for a, b in _joined(places)]
            path = self._opened.file(reference)
            try:
                # All of a file again after an error: after ESTALE nothing read through the old
                # handle counts.
                faults.persist(lambda f=reference, p=path, r=runs: self._read(f, p, r), path)  # type: ignore[misc]
            except FileNotFoundError:
                raise CorruptWeights(
                    "the data file is gone", where=path, writer=self._opened.manifest.writer
                ) from None
            begins = [run.begin for run in runs]
            for offset, nbytes in places:
                run = runs[bisect_right(begins, offset) - 1]
                self._runs[reference, offset, nbytes] = run

    def _read(self, reference: str, path: str, runs: list[_Run]) -> None:
        with regular_file(path) as (fd, size):
            check_data_file(self._opened, reference, fd, size)

            def read(piece: tuple[memoryview, int]) -> None:
                target, offset = piece
                while target.nbytes:
                    count = os.preadv(fd, [target], offset)
                    if not count:
                        raise CorruptWeights(
                            "is shorter than announced",
                            where=path,
                            writer=self._opened.manifest.writer,
                        )
                    target, offset = target[count:], offset + count

            pieces = [
                (memoryview(run.memory)[at : at + _PIECE_BYTES], run.begin + at)
                for run in runs
                for at in range(0, run.end - run.begin, _PIECE_BYTES)
            ]
            nbytes = sum(run.end - run.begin for run in runs)
            with on_threads(nbytes, _THREADS, "weights-read") as over:
                for _ in over(read, pieces):
                    pass

    def buffer(self, entry: TensorEntry) -> tuple[Any, int]:
        """See :meth:`.TensorFiles.buffer`."""
        if _place(entry) not in self._runs:
            self.prepare([entry])
        run = self._runs[_place(entry)]
        return run.memory, entry.offset - run.begin


def _place(entry: TensorEntry) -> tuple[str, int, int]:
    return entry.file, entry.offset, entry.nbytes


def _joined(places: Iterable[tuple[int, int]]) -> list[tuple[int, int]]:
    """Stretches (begin, end) that cover all places (begin, size), joined where little lies
    between."""
    joined: list[tuple[int, int]] = []
    for begin, nbytes in sorted(places):
        end = begin + nbytes
        if joined and begin - joined[-1][1] <= _GAP_BYTES:
            joined[-1] = (joined[-1][0], max(end, joined[-1][1]))
        else:
            joined.append((begin, end))
    return joined
