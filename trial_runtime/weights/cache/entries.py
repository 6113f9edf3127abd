"""One file of the cache of weights: filling it, and holding it against removal.

A shared ``flock`` on the file itself marks it as used; the kernel takes it back when its
process dies. Removal takes it exclusively, and only under the lock of the cache.
"""

from __future__ import annotations

import fcntl
import io
import mmap
import os
from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING

from trial_runtime.weights.format import hashing

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer


class Sink(io.RawIOBase):
    """The file that a fetch writes to, and the hasher of what it wrote."""

    def __init__(self, fd: int, limit: int, named: Callable[[OSError, str], Exception]) -> None:
        from blake3 import blake3

        self.written = 0
        self._fd = fd
        self._limit = limit
        self._named = named
        self._hasher = blake3()

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer, /) -> int:
        """Write all of ``data``; what exceeds the announced size is counted and dropped."""
        view = memoryview(data).cast("B")
        taken = view[: max(0, self._limit - self.written)]
        self.written += view.nbytes
        self._hasher.update(taken)
        while taken.nbytes:
            try:
                taken = taken[os.write(self._fd, taken) :]
            except OSError as fault:
                raise self._named(fault, "takes no bytes") from fault
        return view.nbytes

    def digest(self) -> str:
        """The BLAKE3 of what was written, hex."""
        return self._hasher.hexdigest()


def progress(part: str) -> int:
    """The time at which a file that is being fetched last grew (ns); 0 where there is none."""
    try:
        return os.stat(part).st_mtime_ns
    except OSError:
        return 0


def new_part(part: str, nbytes: int) -> int:
    """An empty file that is held, and counts as large as it will be."""
    with suppress(FileNotFoundError):
        os.unlink(part)  # of a process that died: we hold its lock
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    fd = os.open(part, flags, 0o600)
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        os.ftruncate(fd, nbytes)
    except BaseException:
        os.close(fd)
        raise
    return fd


def hold(path: str, digest: str, nbytes: int, check: bool) -> int | None:
    """Open a sound entry and keep it from going; None where there is none.

    Args:
        path: of the entry.
        digest: the BLAKE3 of its bytes, hex.
        nbytes: its size.
        check: whether to compute and compare the digest.
    """
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except OSError:
        return None
    try:
        fcntl.flock(fd, fcntl.LOCK_SH | fcntl.LOCK_NB)
        status = os.fstat(fd)
        # It is removed while nobody holds it, so it may have gone in between.
        sound = os.path.samestat(status, os.lstat(path)) and status.st_size == nbytes
        if sound and (not check or digest_of(fd, nbytes) == digest):
            os.utime(fd)
            return fd
    except OSError:  # held for its removal, gone, or not readable any more
        pass
    except BaseException:
        let_go(fd)
        raise
    let_go(fd)
    return None


def let_go(fd: int) -> None:
    with suppress(OSError):
        fcntl.flock(fd, fcntl.LOCK_UN)  # closing is not enough: a forked child may have a copy
    os.close(fd)


def digest_of(fd: int, nbytes: int) -> str:
    if not nbytes:
        return hashing.digest(b"")
    with mmap.mmap(fd, nbytes, access=mmap.ACCESS_READ) as mapping:
        return hashing.digest(mapping, hashing.workers())


def remove_unless_held(path: str) -> bool:
    """Remove a file that no process holds; the folder's lock is ours."""
    try:
        fd = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
    except FileNotFoundError:
        return True
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
        os.unlink(path)
        return True
    except BlockingIOError:
        return False
    finally:
        let_go(fd)
