"""Publishing a file: it appears whole and durable under its name, or not at all."""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable
from contextlib import ExitStack, suppress
from typing import Final

from trial_runtime.failpoints import failpoint
from trial_runtime.weights.storage import confined

TEMPORARY_PREFIX: Final = ".tmp-"
# One write call: large enough that calls do not count, small enough that write-back of the
# first piece is under way while the second is copied.
WRITE_PIECE_BYTES: Final = 8 * 1024 * 1024
_SYNC_FILE_RANGE_WRITE: Final = 2


class NewFile:
    """A file under a temporary name beside its final one, in a folder at a canonical path.

    Use as a context manager: leaving it without :meth:`publish` removes the file.

    Args:
        path: its final name.
        at: a descriptor of its folder, where several files belong together: they stay
            together though another folder is given the name meanwhile.
    """

    def __init__(self, path: str, at: int | None = None) -> None:
        folder, self._name = os.path.split(path)
        self.path = path
        self._temporary = f"{TEMPORARY_PREFIX}{secrets.token_hex(8)}-{self._name}"
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        self._stack = ExitStack()
        self._folder = self._stack.enter_context(confined.folder(folder)) if at is None else at
        try:
            # Never for a group to write, whatever the umask: what is published does not change,
            # and readers map only what nobody else can change.
            self.fd = os.open(self._temporary, flags, 0o644, dir_fd=self._folder)
        except BaseException:
            self._stack.close()
            raise
        self._published = False
        self._unflushed = 0  # bytes just before the end of the last write

    def __enter__(self) -> NewFile:
        return self

    def __exit__(self, *_: object) -> None:
        # Without publish there is an error on its way, which what fails here must not hide.
        with suppress(OSError):
            if self.fd >= 0:
                os.close(self.fd)
        with suppress(OSError):
            if not self._published:
                os.unlink(self._temporary, dir_fd=self._folder)
        self._stack.close()

    def write_at(self, data: memoryview, offset: int) -> None:
        """Write all of ``data`` at ``offset``; if it is much, make the disk begin at once."""
        while data.nbytes:
            written = os.pwrite(self.fd, data[:WRITE_PIECE_BYTES], offset)
            self._unflushed += written
            # Small files are better flushed in one go: the header is written last, and would
            # have to wait for the write-back of its own page.
            if self._unflushed >= WRITE_PIECE_BYTES:
                end = offset + written
                _start_write_back()(self.fd, end - self._unflushed, self._unflushed)
                self._unflushed = 0
            data = data[written:]
            offset += written

    def publish(self, what: str) -> None:
        """Make it durable and give it its name, replacing any file of it; blocks on the disk."""
        failpoint(f"weights.{what}.written")
        os.fsync(self.fd)
        failpoint(f"weights.{what}.synced")
        own = os.fstat(self.fd)
        fd, self.fd = self.fd, -1
        os.close(fd)  # NFS reports a full server here at the latest
        at = self._folder
        try:
            os.rename(self._temporary, self._name, src_dir_fd=at, dst_dir_fd=at)
        except FileNotFoundError:
            # A server that crashed after the rename has forgotten that it answered nobody: the
            # request comes again, and finds nothing to rename.
            if not self._has_name(own):
                raise
        self._published = True
        confined.sync(at)
        failpoint(f"weights.{what}.renamed")

    def _has_name(self, own: os.stat_result) -> bool:
        with suppress(FileNotFoundError):
            there = os.stat(self._name, dir_fd=self._folder, follow_symlinks=False)
            return os.path.samestat(own, there)
        return False


def make_folder(path: str) -> None:
    """Create the folder at a canonical path with all above it, durably.

    Raises:
        PathThroughLink: a part of the path is a symbolic link now.
    """
    with confined.folder(path, make=True):
        pass


_write_back: Callable[[int, int, int], object] | None = None


def _start_write_back() -> Callable[[int, int, int], object]:
    """``sync_file_range`` where the system has it, else a function that does nothing.

    Without it the kernel keeps all of a gigabyte in memory until fsync, and disk and
    processor work one after the other. It is a hint: its failure is of no consequence.
    """
    global _write_back
    if _write_back is None:
        import ctypes

        try:
            call = ctypes.CDLL(None, use_errno=True).sync_file_range
        except (OSError, AttributeError):
            _write_back = lambda fd, offset, nbytes: None  # noqa: E731  (one line, one use)
        else:
            call.argtypes = (ctypes.c_int, ctypes.c_int64, ctypes.c_int64, ctypes.c_uint)
            _write_back = lambda fd, offset, nbytes: call(  # noqa: E731  (one line, one use)
                fd, offset, nbytes, _SYNC_FILE_RANGE_WRITE
            )
    return _write_back
