"""Writing the tensors of one save, while their digests are computed beside.

Tensors that no tensor of the parent resembles (in type and size) are written at once; the
others wait for their digest and are written only if the parent does not have those bytes.
So the disk, the processor that copies and the one that hashes are busy together.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import chain

from trial_runtime.weights.format import datafile, hashing
from trial_runtime.weights.format.dtypes import DTYPES
from trial_runtime.weights.format.manifest import VERSION, TensorEntry
from trial_runtime.weights.format.staging import Staged
from trial_runtime.weights.saving.ancestry import Ancestry
from trial_runtime.weights.storage import confined
from trial_runtime.weights.storage.publishing import NewFile

# Below this, all digests are awaited before the file is laid out (some milliseconds), so
# that its header has no room for tensors that turn out to be inherited.
_SMALL_BYTES = 32 * 1024 * 1024


@dataclass
class Written:
    """The places of all tensors of a save."""

    entries: dict[str, TensorEntry] = field(default_factory=dict)
    files: dict[str, int] = field(default_factory=dict)  # all that are referred to, sizes
    digests: dict[str, str] = field(default_factory=dict)  # of these files, where known
    own_file: str = ""  # the name of the new data file, if one was needed
    bytes_written: int = 0
    tensors_written: int = 0
    tensors_inherited: int = 0

    def take_back(self, folder: str) -> None:
        """Remove a data file that no manifest will ever name."""
        if self.own_file:
            try:
                confined.unlink(os.path.join(folder, self.own_file))
            except FileNotFoundError:
                pass  # our folder was set aside, and the file with it


def write_tensors(
    tensors: Sequence[Staged],
    folder: str,
    ancestry: Ancestry | None,
    writer: str,
    at: int,
    *,
    digest_file: bool = False,
) -> Written:
    """Write what the ancestry does not have into one new data file, durably.

    Args:
        tensors: distinct tensors; tied ones once.
        folder: exists already.
        ancestry: what may be referred to instead.
        writer: trial and attempt, noted in the file for people.
        at: a descriptor of the folder.
        digest_file: compute the digest of the file as a whole, too, by which copies of it are
            known. Hashes all bytes once more; a disk slower than that does not show it.

    Raises:
        OSError: the disk refused; no file is left.
    """
    full = [t for t in tensors if t.nbytes]
    maybe = {t.name for t in full if ancestry is not None and ancestry.resembles(t)}
    # While something is to be written at once, one processor is busy with that.
    threads = max(1, hashing.workers() - (len(maybe) < len(full)))
    total = sum(t.nbytes for t in full)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="weights-hash")
    submit = pool.submit if total >= hashing.WORTH_A_POOL_BYTES else _done
    try:
        waited_for_first = sorted(full, key=lambda t: t.name not in maybe)
        digest_of = {t.name: submit(hashing.digest, t.data, threads) for t in waited_for_first}
        writing = _Writing(ancestry=ancestry, maybe=maybe, digest_of=digest_of)
        if total <= _SMALL_BYTES:
            full = [t for t in full if not writing.inherits(t)]
            maybe.clear()
        # Wide elements first: back to back, each tensor then begins at a multiple of its
        # width. Among equals those that wait for no digest.
        full.sort(key=lambda t: (-DTYPES[t.dtype].itemsize, t.name in maybe))
        writing.write_file(full, folder, writer, at, submit if digest_file else None)
    finally:
        pool.shutdown(cancel_futures=True)
    nothing = hashing.digest(b"")
    for t in tensors:
        if not t.nbytes:
            writing.entries[t.name] = TensorEntry("", 0, 0, t.dtype, t.shape, nothing, t.like)
    return writing


def _done(compute: Callable[..., str], *args: object) -> Future[str]:
    """Compute at once, in place of a pool's ``submit``."""
    future: Future[str] = Future()
    future.set_result(compute(*args))
    return future


@dataclass
class _Writing(Written):
    """One save, as far as it got.

    Of ``maybe``, the names of tensors that the parent may have, each is looked for when its turn
    comes, since that waits for its digest.
    """

    ancestry: Ancestry | None = None
    maybe: set[str] = field(default_factory=set)
    digest_of: dict[str, Future[str]] = field(default_factory=dict)

    def inherits(self, tensor: Staged) -> bool:
        """Whether the parent has a tensor's bytes, which then are referred to."""
        if self.ancestry is None or tensor.name not in self.maybe:
            return False
        entry = self.ancestry.find(tensor, self.digest_of[tensor.name].result())
        if entry is None:
            return False
        self.entries[tensor.name] = entry
        self.files[entry.file] = self.ancestry.sizes[entry.file]
        if entry.file in self.ancestry.digests:
            self.digests[entry.file] = self.ancestry.digests[entry.file]
        self.tensors_inherited += 1
        return True

    def write_file(
        self,
        tensors: list[Staged],
        folder: str,
        writer: str,
        at: int,
        submit: Callable[..., Future[str]] | None,
    ) -> None:
        """Write the tensors that are not inherited into one file; none, if all of them are."""
        metadata = {"format": "pt", "writer": writer, "bequeath": str(VERSION)}
        room = [(t.name, t.dtype, t.shape, t.nbytes) for t in tensors]
        start = offset = datafile.data_start(room, metadata)
        own = (t for t in tensors if not self.inherits(t))
        first = next(own, None)
        if first is None:
            return
        name = datafile.new_name()
        laid: list[tuple[Staged, int]] = []
        with NewFile(os.path.join(folder, name), at) as file:
            for tensor in chain((first,), own):
                file.write_at(tensor.data, offset)
                laid.append((tensor, offset))
                offset += tensor.nbytes
            described = [(t.name, t.dtype, t.shape, place, t.nbytes) for t, place in laid]
            header = datafile.header(described, start, metadata)
            whole = None
            if submit is not None:  # computed while the disk is busy with the file
                pieces = [header, *(t.data for t, _ in laid)]
                whole = submit(hashing.digest_of_pieces, pieces, hashing.workers())
            file.write_at(memoryview(header), 0)
            # Not before the digests are there, for want of which it would have to be removed
            # again. They are seldom late: hashing is faster than writing.
            digests = {t.name: self.digest_of[t.name].result() for t, _ in laid}
            file.publish("data")
            if whole is not None:
                self.digests[name] = whole.result()
        for t, place in laid:
            self.entries[t.name] = TensorEntry(
                name, place, t.nbytes, t.dtype, t.shape, digests[t.name], t.like
            )
        self.own_file = name
        self.files[name] = self.bytes_written = offset
        self.tensors_written = len(laid)
