"""The bytes of published tensors, wherever they come from, and the check of their digests."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.format import hashing, staging
from trial_runtime.weights.format.manifest import TensorEntry
from trial_runtime.weights.read.opening import OpenedManifest


class TensorFiles(ABC):
    """The data files of one manifest. Nothing of them is read before it is asked for."""

    def __init__(self, opened: OpenedManifest) -> None:
        self._opened = opened

    @abstractmethod
    def prepare(self, entries: Iterable[TensorEntry]) -> None:
        """Read these tensors ahead, and nothing else.

        Raises:
            CorruptWeights: a file is gone, cut, or another than was published.
            StorageError: the file system refuses it.
        """

    @abstractmethod
    def buffer(self, entry: TensorEntry) -> tuple[Any, int]:
        """The memory that holds the bytes of a tensor that has some, and where they begin in it."""

    def view(self, entry: TensorEntry) -> memoryview:
        """The bytes of a tensor."""
        if not entry.nbytes:
            return memoryview(b"")
        data, begin = self.buffer(entry)
        return memoryview(data)[begin : begin + entry.nbytes]

    def tensor(self, name: str, entry: TensorEntry, like: str) -> Any:
        """A tensor of torch or numpy over the bytes of an entry; changing it changes no file.

        Args:
            name: of the tensor, for errors.
            entry: its place, type and shape.
            like: ``torch`` or ``numpy``.
        """
        data, begin = self.buffer(entry) if entry.nbytes else (b"", 0)
        form = (entry.dtype, entry.shape)
        return staging.tensor_over(data, begin, form, like, f"tensor {name!r}")

    def verify(self, entries: Mapping[str, TensorEntry]) -> None:
        """Compute the digests of tensors and compare them with the manifest's.

        Raises:
            CorruptWeights: the first that differs, with the file and its writer.
        """
        places = {
            (entry.file, entry.offset, entry.nbytes, entry.blake3): (name, entry)
            for name, entry in entries.items()
            if entry.nbytes and entry.blake3
        }
        # The largest first, or one thread ends with it while the others have nothing to do.
        todo = sorted(places.values(), key=lambda item: -item[1].nbytes)
        threads = hashing.workers()

        def wrong(item: tuple[str, TensorEntry]) -> bool:
            return hashing.digest(self.view(item[1]), threads) != item[1].blake3

        nbytes = sum(entry.nbytes for _, entry in todo)
        with on_threads(nbytes, hashing.workers(), "weights-hash") as over:
            for (name, entry), bad in zip(todo, over(wrong, todo)):
                if bad:
                    raise CorruptWeights(
                        f"tensor {name!r} is not what was published (its digest differs)",
                        where=self._opened.file(entry.file),
                        writer=self._opened.manifest.writer,
                    )


@contextmanager
def on_threads(nbytes: int, threads: int, name: str) -> Iterator[Callable[..., Iterator[Any]]]:
    """``map``, on several threads where there is enough to do; calls not begun are dropped.

    Args:
        nbytes: bytes to be worked on; few of them are not worth threads.
        threads: how many at most.
        name: prefix of the threads' names.
    """
    if nbytes < hashing.WORTH_A_POOL_BYTES:
        yield map
        return
    pool = ThreadPoolExecutor(threads, thread_name_prefix=name)
    try:
        yield pool.map
    finally:
        pool.shutdown(cancel_futures=True)
