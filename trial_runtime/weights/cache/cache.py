"""Copies on a host's own disk of files that all hosts share, each fetched once for all readers.

An entry is named by the BLAKE3 of its bytes, so it is never out of date, and processes that
know nothing of each other may share a folder. It is not durable and need not be: what a crash
leaves is found by its size or digest and fetched again.

Processes meet in locks: a process that fetches holds the lock of that digest (filelock, on this
disk); one that reads holds a shared ``flock`` on the entry itself, which the kernel takes back when
it dies; entries come and go under the lock of the folder, and none goes that is held.
"""

from __future__ import annotations

import errno
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final, cast

from trial_runtime.errors import CorruptWeights, WeightsError
from trial_runtime.failpoints import failpoint
from trial_runtime.mounts import MOUNTINFO, network_type
from trial_runtime.weights.cache.entries import (
    Sink,
    hold,
    let_go,
    new_part,
    progress,
    remove_unless_held,
)

if TYPE_CHECKING:
    from filelock import BaseFileLock

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
_PART: Final = ".part-"
_FULL: Final = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG}
#: The least that an entry counts for, so that many small ones are bounded as well.
_LEAST_ENTRY_BYTES: Final = 4096
#: Free space that is left to others: the smaller of these bytes and this part of the disk.
SPARED_BYTES: Final = 1 << 30
SPARED_PART: Final = 0.05
#: How long another process may fetch without a byte of progress before we go without it.
STALL_S: Final = 60.0
_FETCHES: Final = 2  # the second after bytes that were not those announced


class CacheUnusable(WeightsError):
    """Raised when the cache cannot serve a file now; whoever asks reads the original instead."""


class WeightsCache:
    """A folder of files by digest, bounded in bytes. Making one touches nothing.

    Args:
        folder: on a local disk, may begin with "~"; made with mode 0700 where it is missing.
        max_bytes: of all entries together; 0 switches the cache off.
        stall_s: seconds that another process may hold a fetch without progress.
        mountinfo: where the kernel lists its mounts; another file in tests.
    """

    def __init__(
        self,
        folder: str,
        max_bytes: int,
        *,
        stall_s: float = STALL_S,
        mountinfo: Path = MOUNTINFO,
    ) -> None:
        self.folder = os.path.abspath(os.path.expanduser(folder))
        self.max_bytes = max_bytes
        self._stall_s = stall_s
        self._mountinfo = mountinfo
        self._entries = f"{self.folder}/entries"
        self._locks = f"{self.folder}/locks"
        self._ready = False

    @contextmanager
    def get(
        self,
        digest: str,
        nbytes: int,
        fetch: Callable[[BinaryIO], None],
        *,
        check: bool = True,
    ) -> Iterator[str]:
        """The path of a local file with these bytes; it stays there while the context is open.

        Blocks while it is fetched, by this process or another one of this host. What was
        mapped or opened in the context may be used after it.

        Args:
            digest: the BLAKE3 of the whole file, hex.
            nbytes: its size.
            fetch: writes all of it, in order, to the binary file it is given. Its exceptions
                pass through; nothing stays of what it wrote.
            check: compare the digest of an entry that is there already. False for a reader
                that compares all it takes by itself, see :meth:`discard`.

        Raises:
            CacheUnusable: it is switched off, its folder may not be used, the file does not
                fit, the disk is full, or another process does not get on with it.
            CorruptWeights: what was fetched, twice, is not what the digest names.
        """
        if not _DIGEST.fullmatch(digest) or nbytes < 0:
            raise ValueError(f"not the digest and size of a file: {digest!r}, {nbytes}")
        self._prepare()
        path = f"{self._entries}/{digest}"
        held = hold(path, digest, nbytes, check)
        if held is None:
            with self._fetching(digest):
                # Another process may have fetched it while we waited.
                held = hold(path, digest, nbytes, check)
                if held is None:
                    held = self._fetch(path, digest, nbytes, fetch)
        try:
            yield path
        finally:
            let_go(held)

    def discard(self, digest: str) -> None:
        """Throw an entry away that was found to be damaged, unless somebody uses it now."""
        with suppress(OSError), self._room():
            remove_unless_held(f"{self._entries}/{digest}")

    # -- the folder ------------------------------------------------------------------------

    def _prepare(self) -> None:
        if self._ready:
            return
        if self.max_bytes <= 0:
            raise CacheUnusable("the cache of weights is switched off", where=self.folder)
        kind = network_type(self.folder, mountinfo=self._mountinfo)
        if kind is not None:
            raise CacheUnusable(
                f"the cache of weights cannot lie on a network file system ({kind}): it would "
                "save no reading there, and its locks need not hold",
                hint="name a folder on a disk of each host in weightsCache.directory",
                where=self.folder,
            )
        try:
            for folder in (self.folder, self._entries, self._locks):
                os.makedirs(folder, mode=0o700, exist_ok=True)
            status = os.lstat(self.folder)
        except OSError as fault:
            raise CacheUnusable(
                f"the cache of weights cannot be made: {fault.strerror}", where=self.folder
            ) from fault
        if (
            not stat.S_ISDIR(status.st_mode)
            or status.st_uid != os.geteuid()
            or (status.st_mode & 0o022)
        ):
            raise CacheUnusable(
                "the cache of weights has to be a folder that only its owner may write to, and "
                "it has to be yours",
                hint="name another folder in weightsCache.directory, or chmod 700 this one",
                where=self.folder,
            )
        self._ready = True

    @contextmanager
    def _room(self) -> Iterator[None]:
        """The lock under which entries come and go; held for moments only."""
        lock = _lock(f"{self._locks}/room")
        with lock.acquire(timeout=self._stall_s):
            yield

    @contextmanager
    def _fetching(self, digest: str) -> Iterator[None]:
        """The lock of a digest (and of one in 256 others, so that locks are few)."""
        lock = _lock(f"{self._locks}/{digest[:2]}")
        part = f"{self._entries}/{_PART}{digest}"
        seen, since = progress(part), time.monotonic()
        while True:
            try:
                lock.acquire(timeout=min(1.0, self._stall_s), poll_interval=0.02)
                break
            except TimeoutError:
                now, later = progress(part), time.monotonic()
                if now != seen:
                    seen, since = now, later
                elif later - since >= self._stall_s:
                    raise CacheUnusable(
                        f"another process of this host has been fetching for "
                        f"{self._stall_s:.0f} s without getting on",
                        where=part,
                    ) from None
            except OSError as fault:
                raise self._full_or(fault, "cannot be locked") from fault
        try:
            yield
        finally:
            lock.release()

    # -- entries that come -------------------------------------------------------------------

    def _fetch(self, path: str, digest: str, nbytes: int, fetch: Callable[[BinaryIO], None]) -> int:
        """Fetch an entry; a descriptor that holds it."""
        part = f"{self._entries}/{_PART}{digest}"
        try:
            with self._room():
                self._make_room(nbytes)
                fd = new_part(part, nbytes)
        except OSError as fault:
            raise self._full_or(fault, "takes no file") from fault
        try:
            self._fill(fd, digest, nbytes, fetch)
            failpoint("weights.cache.fetched")
            try:
                with self._room():
                    os.rename(part, path)  # over a damaged entry, too: its readers keep the path
            except OSError as fault:
                raise self._full_or(fault, "takes no file") from fault
        except BaseException:
            with suppress(OSError):
                os.unlink(part)
            let_go(fd)
            raise
        return fd

    def _fill(self, fd: int, digest: str, nbytes: int, fetch: Callable[[BinaryIO], None]) -> None:
        found = ""
        for _ in range(_FETCHES):
            os.lseek(fd, 0, os.SEEK_SET)
            sink = Sink(fd, nbytes, self._full_or)
            fetch(cast("BinaryIO", sink))
            found = sink.digest()
            if sink.written == nbytes and found == digest:
                return
        raise CorruptWeights(
            f"its {sink.written:,} bytes have the digest {found}, where {nbytes:,} bytes with "
            f"{digest} were published",
            where=f"{self._entries}/{digest}",
        )

    def _make_room(self, nbytes: int) -> None:
        """Remove entries not in use, the least recently used first, until a file fits."""
        wanted = _takes(nbytes)
        entries = self._listed()
        used = sum(size for _, size, _ in entries)
        system = os.statvfs(self._entries)
        free = system.f_bavail * system.f_frsize
        spared = min(SPARED_BYTES, int(system.f_blocks * system.f_frsize * SPARED_PART))
        excess = max(used + wanted - self.max_bytes, wanted + spared - free)
        if wanted > self.max_bytes or excess > used:
            raise self._no_room(nbytes, free)
        for _, size, path in sorted(entries):
            if excess <= 0:
                return
            if remove_unless_held(path):
                excess -= size
        if excess > 0:
            raise self._no_room(nbytes, free)

    def _listed(self) -> list[tuple[int, int, str]]:
        """Last use (ns), size and path of all entries and of what is being fetched."""
        found = []
        with os.scandir(self._entries) as entries:
            for entry in entries:
                with suppress(FileNotFoundError):
                    status = entry.stat(follow_symlinks=False)
                    # Files that a process died fetching go first.
                    used = 0 if entry.name.startswith(_PART) else status.st_mtime_ns
                    found.append((used, _takes(status.st_size), entry.path))
        for used, size, path in list(found):
            if not used and remove_unless_held(path):
                found.remove((used, size, path))
        return found

    def _no_room(self, nbytes: int, free: int) -> CacheUnusable:
        return CacheUnusable(
            f"the cache of weights ({self.max_bytes:,} bytes, {free:,} free on its disk) has no "
            f"room for a file of {nbytes:,} bytes beside those in use",
            hint="give it more by weightsCache.size, or free space on that disk",
            where=self.folder,
        )

    def _full_or(self, fault: OSError, otherwise: str) -> CacheUnusable:
        full = fault.errno in _FULL
        return CacheUnusable(
            f"the cache of weights {'is on a full disk' if full else otherwise}: "
            f"{fault.strerror or fault}",
            where=self.folder,
        )


def _lock(path: str) -> BaseFileLock:
    try:
        from filelock import FileLock
    except ImportError:
        raise CacheUnusable(
            "the cache of weights needs filelock, which is not installed on this host",
            hint="pip install filelock",
            where=path,
        ) from None

    return FileLock(path, mode=0o600, thread_local=False, is_singleton=False)


def _takes(nbytes: int) -> int:
    return max(nbytes, _LEAST_ENTRY_BYTES)
