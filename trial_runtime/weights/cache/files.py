"""Data files of shared file systems, read through the cache of this host where that pays.

A file that is read as a whole, or nearly, is copied to the host's own disk by the first
process that wants it; the others map the copy. A load that takes a few tensors out of a large
file reads these and nothing else, from the original: copying all of it would cost more than it
could ever save.
"""

from __future__ import annotations

import mmap
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any, BinaryIO, Final

from trial_runtime.errors import CorruptWeights, WeightsError
from trial_runtime.weights.cache.cache import CacheUnusable, WeightsCache
from trial_runtime.weights.format.manifest import TensorEntry
from trial_runtime.weights.read.mapped import MappedFiles
from trial_runtime.weights.read.opening import OpenedManifest, check_data_file
from trial_runtime.weights.read.tensor_files import TensorFiles
from trial_runtime.weights.storage.paths import regular_file

#: A file is copied if at least this part of it is wanted: a second reader on the host then
#: makes good for all that the first one read in excess.
WORTH_PART: Final = 0.5
#: Smaller files are a round trip or two; nothing is gained by a copy.
WORTH_BYTES: Final = 64 * 1024
_PIECE_BYTES: Final = 4 * 1024 * 1024


class CachedFiles(TensorFiles):
    """The data files of one manifest, through a cache or as ``original`` gives them."""

    def __init__(self, opened: OpenedManifest, original: TensorFiles, cache: WeightsCache) -> None:
        super().__init__(opened)
        self.original = original
        self._cache = cache
        self._copies = _Copies(opened, cache)
        self._copied: set[str] = set()  # references that are served from copies
        self._tried: set[str] = set()

    def prepare(self, entries: Iterable[TensorEntry]) -> None:
        """Copy what is worth it, or find the copies; have the rest read as always."""
        wanted = list(entries)
        for reference in self._worth_copying(wanted):
            if reference not in self._tried:
                self._tried.add(reference)
                self._copy(reference)
        self._copies.prepare(entry for entry in wanted if entry.file in self._copied)
        self.original.prepare(entry for entry in wanted if entry.file not in self._copied)

    def buffer(self, entry: TensorEntry) -> tuple[Any, int]:
        """See :meth:`.TensorFiles.buffer`: of a copy or the original."""
        return (self._copies if entry.file in self._copied else self.original).buffer(entry)

    def verify(self, entries: Mapping[str, TensorEntry]) -> None:
        """See the base. A damaged copy is thrown away, and the original read and judged."""
        copied = {name: e for name, e in entries.items() if e.file in self._copied}
        try:
            self._copies.verify(copied)
        except CorruptWeights:
            for reference in self._copied:
                self._cache.discard(self._opened.manifest.digests[reference])
            self._copied.clear()
            self.original.prepare(copied.values())
        self.original.verify({name: e for name, e in entries.items() if e.file not in self._copied})

    def _worth_copying(self, entries: Iterable[TensorEntry]) -> list[str]:
        places: dict[str, dict[int, int]] = {}
        for entry in entries:
            if entry.nbytes:
                places.setdefault(entry.file, {})[entry.offset] = entry.nbytes
        manifest = self._opened.manifest
        return [
            reference
            for reference, wanted in places.items()
            if reference in manifest.digests
            and manifest.files[reference] >= WORTH_BYTES
            and sum(wanted.values()) >= WORTH_PART * manifest.files[reference]
        ]

    def _copy(self, reference: str) -> None:
        try:
            self._copies.take(reference)
        except CacheUnusable as error:
            _warn_once(error)
        except (WeightsError, OSError):
            pass  # the original is read, and its error names the fault
        else:
            self._copied.add(reference)


class _Copies(MappedFiles):
    """Copies of data files, mapped. They may be removed meanwhile; a mapping keeps its file."""

    def __init__(self, opened: OpenedManifest, cache: WeightsCache) -> None:
        super().__init__(opened)
        self._cache = cache

    def take(self, reference: str) -> None:
        """Have a file copied, if it is not, and map the copy."""
        self._map(reference)

    def _map_now(self, reference: str, path: str) -> mmap.mmap:
        manifest = self._opened.manifest
        size = manifest.files[reference]

        def fetch(to: BinaryIO) -> None:
            read_into(to, path)

        # Readers compare each tensor that they take with its digest in the manifest.
        with self._cache.get(manifest.digests[reference], size, fetch, check=False) as copy:
            fd = os.open(copy, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
            try:
                check_data_file(self._opened, reference, fd, size)
                return mmap.mmap(fd, size, access=mmap.ACCESS_COPY)
            finally:
                os.close(fd)


def read_into(to: BinaryIO, path: str) -> None:
    with regular_file(path) as (fd, _):
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_SEQUENTIAL)
        buffer = memoryview(bytearray(_PIECE_BYTES))
        while count := os.readv(fd, [buffer]):
            to.write(buffer[:count])
        # Memory holds the copy from now on, not both.
        os.posix_fadvise(fd, 0, 0, os.POSIX_FADV_DONTNEED)


_warned = False


def _warn_once(error: CacheUnusable) -> None:
    """Write to standard error, as a trial's other warnings are; once in a process."""
    global _warned
    if not _warned:
        _warned = True
        reason = " ".join(str(error).split())
        sys.stderr.write(f"[bequeath] weights are read from the share itself: {reason}\n")
