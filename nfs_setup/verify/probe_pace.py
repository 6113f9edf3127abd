"""Speed of a share: small files published one after another, and one big file."""

from __future__ import annotations

import contextlib
import hashlib
import os
import statistics
import time

from nfs_setup.verify.facts import BigFile, Pace
from nfs_setup.verify.files import replace

_CHUNK_BYTES = 1 << 20
_SMALL_BYTES = 4096


def pace(folder: str, rounds: int, limit_s: float) -> Pace:
    """Publish small files, one after another.

    Args:
        folder: the folder of this machine.
        rounds: how many; fewer where time is up, one at least.
        limit_s: seconds after which no further one is begun.
    """
    path = os.path.join(folder, "small")
    content = os.urandom(_SMALL_BYTES)
    whole: list[float] = []
    syncs: list[float] = []
    last = time.monotonic() + limit_s
    while len(whole) < rounds and (not whole or time.monotonic() < last):
        began = time.perf_counter()
        syncs.append(replace(path, content))
        whole.append(time.perf_counter() - began)
    return Pace(
        rounds=len(whole),
        publish_s=statistics.median(whole),
        publish_worst_s=max(whole),
        fsync_s=statistics.median(syncs),
        fsync_worst_s=max(syncs),
    )


def write_big(path: str, nbytes: int, limit_s: float) -> BigFile:
    """Write and sync one file that cannot be compressed.

    Args:
        path: where nothing is yet.
        nbytes: its size; less where time is up.
        limit_s: seconds of writing.
    """
    total, spent = hashlib.blake2b(digest_size=32), 0.0
    written = 0
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o660)
    try:
        while written < nbytes and spent < limit_s:
            chunk = memoryview(os.urandom(min(_CHUNK_BYTES, nbytes - written)))
            total.update(chunk)
            written += len(chunk)
            began = time.perf_counter()
            while chunk:
                chunk = chunk[os.write(descriptor, chunk) :]
            spent += time.perf_counter() - began
        began = time.perf_counter()
        os.fsync(descriptor)
        spent += time.perf_counter() - began
    finally:
        os.close(descriptor)
    return BigFile(written, spent, total.hexdigest())


def read_big(path: str, limit_s: float) -> BigFile:
    """Read it, past this machine's own cache as far as that can be asked for."""
    total, spent, nbytes = hashlib.blake2b(digest_size=32), 0.0, 0
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW)
    try:
        with contextlib.suppress(OSError, AttributeError):  # not on every system
            os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        while spent < limit_s:
            began = time.perf_counter()
            chunk = os.read(descriptor, _CHUNK_BYTES)
            spent += time.perf_counter() - began
            if not chunk:
                break
            total.update(chunk)
            nbytes += len(chunk)
    finally:
        os.close(descriptor)
    return BigFile(nbytes, spent, total.hexdigest())
