"""BLAKE3 of buffers, on as many threads as the process may use."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Final

# From here on a second thread inside one digest pays for starting it.
_MANY_THREADS_BYTES: Final = 64 * 1024 * 1024
# Below this, starting threads takes longer than what they would do.
WORTH_A_POOL_BYTES: Final = 4 * 1024 * 1024
# More threads than this only wait for memory.
_MAX_WORKERS: Final = 8
_READ_BYTES: Final = 4 * 1024 * 1024


def workers() -> int:
    """Threads worth using for hashing and copying on the processors this process may use."""
    try:
        allowed = len(os.sched_getaffinity(0))
    except AttributeError:  # macOS
        allowed = os.cpu_count() or 1
    return max(1, min(allowed, _MAX_WORKERS))


def digest(data: Any, threads: int = 1) -> str:
    """BLAKE3 of a buffer as hex; releases the interpreter meanwhile.

    ``threads`` above one counts for large buffers only. Never blake3's automatic choice:
    its threads are kept by the process, and are missing after a fork.
    """
    from blake3 import blake3

    size = memoryview(data).nbytes
    if threads > 1 and size >= _MANY_THREADS_BYTES:
        return blake3(data, max_threads=threads).hexdigest()
    return blake3(data).hexdigest()


def digest_of_rest(fd: int) -> tuple[int, str]:
    """The number of bytes from a descriptor's place to the end, and their BLAKE3; reads them."""
    from blake3 import blake3

    hasher = blake3()
    nbytes = 0
    buffer = memoryview(bytearray(_READ_BYTES))
    while read := os.readv(fd, [buffer]):
        hasher.update(buffer[:read])
        nbytes += read
    return nbytes, hasher.hexdigest()


def digest_of_pieces(pieces: Sequence[Any], threads: int = 1) -> str:
    """BLAKE3 of buffers as if they were one; as :func:`digest`."""
    from blake3 import blake3

    many = threads > 1 and max(map(len, pieces), default=0) >= _MANY_THREADS_BYTES
    hasher = blake3(max_threads=threads) if many else blake3()
    for piece in pieces:
        hasher.update(piece)
    return hasher.hexdigest()
