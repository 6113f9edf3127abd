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
    at: int | None = None,
    *,
    digest_file: bool = False,
) -> Written:
    """Write what the ancestry does not have into one new data file, durably.

    Args:
        tensors: distinct tensors; tied ones once.
        folder: exists already.
        ancestry: what may be referred to instead.
        writer: trial and attempt, noted in the file for people.
        at: a descriptor of the folder, see :class:`NewFile`.
        digest_file: compute the digest of the file as a whole, too, by which copies of it are
            known. Hashes all bytes once more; a disk slower than that does not show it.

    Raises:
        OSError: the disk refused; no file is left.
    """
    full = [t for t in tensors if t.nbytes]
    maybe = {t.name for t in full if ancestry is not None and ancestry.resembles(t)}
    # While something is to be written at once, one processor is busy with that.
    threads = max(1, hashing.workers() - (len(maybe) < len(full)))
    written = Written()
    total = sum(t.nbytes for t in full)
    pool = ThreadPoolExecutor(threads, thread_name_prefix="weights-hash")
    submit = pool.submit if total >= hashing.WORTH_A_POOL_BYTES else _done
    try:
        waited_for_first = sorted(full, key=lambda t: t.name not in maybe)
        digests = {t.name: submit(hashing.digest, t.data, threads) for t in waited_for_first}

        def inherited(tensor: Staged) -> bool:
            if ancestry is None or tensor.name not in maybe:
                return False
            entry = ancestry.find(tensor, digests[tensor.name].result())
            if entry is None:
                return False
            written.entries[tensor.name] = entry
            written.files[entry.file] = ancestry.sizes[entry.file]
            if entry.file in ancestry.digests:
                written.digests[entry.file] = ancestry.digests[entry.file]
            written.tensors_inherited += 1
            return True

        if total <= _SMALL_BYTES:
            full = [t for t in full if not inherited(t)]
            maybe.clear()
        # Wide elements first: back to back, each tensor then begins at a multiple of its
        # width. Among equals those that wait for no digest.
        full.sort(key=lambda t: (-DTYPES[t.dtype].itemsize, t.name in maybe))
        hasher = submit if digest_file else None
        _write_file(full, inherited, digests, folder, writer, written, at, hasher)
    finally:
        pool.shutdown(cancel_futures=True)
    nothing = hashing.digest(b"")
    for t in tensors:
        if not t.nbytes:
            written.entries[t.name] = TensorEntry("", 0, 0, t.dtype, t.shape, nothing, t.like)
    return written


def _done(compute: Callable[..., str], *args: object) -> Future[str]:
    """Compute at once, in place of a pool's ``submit``."""
    future: Future[str] = Future()
    future.set_result(compute(*args))
    return future


def _write_file(
    tensors: list[Staged],
    inherited: Callable[[Staged], bool],
    digests: dict[str, Future[str]],
    folder: str,
    writer: str,
    written: Written,
    at_folder: int | None,
    submit: Callable[..., Future[str]] | None,
) -> None:
    metadata = {"format": "pt", "writer": writer, "bequeath": str(VERSION)}
    start = datafile.data_start([(t.name, t.dtype, t.shape, t.nbytes) for t in tensors], metadata)
    remaining = iter(tensors)
    first = next((t for t in remaining if not inherited(t)), None)
    if first is None:
        return
    name = datafile.new_name()
    offset = start
    laid: list[tuple[Staged, int]] = []
    with NewFile(os.path.join(folder, name), at_folder) as file:
        tensor: Staged | None = first
        while tensor is not None:
            file.write_at(tensor.data, offset)
            laid.append((tensor, offset))
            offset += tensor.nbytes
            tensor = next((t for t in remaining if not inherited(t)), None)
        described = [(t.name, t.dtype, t.shape, at, t.nbytes) for t, at in laid]
        header = datafile.header(described, start, metadata)
        whole = None
        if submit is not None:  # computed while the disk is busy with the file
            pieces = [header, *(t.data for t, _ in laid)]
            whole = submit(hashing.digest_of_pieces, pieces, hashing.workers())
        file.write_at(memoryview(header), 0)
        # Not before the digests are there, for want of which it would have to be removed
        # again. They are seldom late: hashing is faster than writing.
        found = {t.name: digests[t.name].result() for t, _ in laid}
        file.publish("data")
        if whole is not None:
            written.digests[name] = whole.result()
    for t, at in laid:
        written.entries[t.name] = TensorEntry(
            name, at, t.nbytes, t.dtype, t.shape, found[t.name], t.like
        )
    written.own_file = name
    written.files[name] = written.bytes_written = offset
    written.tensors_written = len(laid)
