"""A file lock that can be taken away from a holder that does not answer any more.

The kernel lets go of a lock when its holder dies, however it dies; a holder that was stopped,
or hangs, keeps it. So the *file* is replaced by another one, which is locked by its successor
from the beginning. A process that opens the path finds the successor's lock, and the old holder can
see that the file it holds is not the one at the path.

Fencing needs no death: what an older head still wants to write is refused. There is one thing
that it can keep from us, SQLite's write lock, if it was stopped in the middle of a commit. Then it
is ended (:class:`Predecessor`).
"""

from __future__ import annotations

import fcntl
import os
import signal
import time
import weakref
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, Self

from trial_runtime.process_start import start_time

_LOOK_EVERY_S = 0.02

#: All that this process holds. The kernel keeps a lock until the last fork has let go of it.
_held: weakref.WeakSet[LockFile] = weakref.WeakSet()


class FileId(NamedTuple):
    """The identity of a file, whatever its name."""

    device: int
    inode: int


class LockFile:
    """An exclusive lock, held from :meth:`take` or :meth:`replace` to :meth:`release` or the
    end of the process. Any thread may release it, or ask whether it is current. Forks of the
    process do not hold it."""

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path = path
        self._descriptor = descriptor
        _held.add(self)

    @classmethod
    def take(cls, path: Path, patience_s: float) -> Self | None:
        """Take the lock, making the file if it is missing; None if another process keeps it
        for all of ``patience_s``. Raises ``OSError``."""
        deadline = time.monotonic() + patience_s
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
            if _lock(descriptor, fcntl.LOCK_EX):
                lock = cls(path, descriptor)
                if lock.is_current:
                    return lock
                lock.release()  # replaced between our opening and our locking it
                continue
            os.close(descriptor)
            if time.monotonic() >= deadline:
                return None
            time.sleep(_LOOK_EVERY_S)  # the kernel offers no lock with a timeout

    @classmethod
    def replace(cls, path: Path) -> Self:
        """Put a file of our own, locked, in the place of one that another process holds.

        The caller sees to it that no two processes do so at once. Raises ``OSError``.
        """
        draft = path.with_name(f".{path.name}.{os.getpid()}")
        descriptor = os.open(draft, os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o644)
        if not _lock(descriptor, fcntl.LOCK_EX):
            os.close(descriptor)
            raise BlockingIOError(f"{draft} is held by another process")
        os.replace(draft, path)
        return cls(path, descriptor)

    @property
    def is_current(self) -> bool:
        """Whether the file at the path is the one we hold, so that the lock means something.
        One that somebody has deleted counts as ours: nobody else holds another."""
        if self._descriptor < 0:
            return False
        try:
            there = file_id(self._path)
        except OSError:
            return True
        mine = os.fstat(self._descriptor)
        return there == FileId(mine.st_dev, mine.st_ino)

    def release(self) -> None:
        """Let go. Idempotent."""
        descriptor, self._descriptor = self._descriptor, -1
        if descriptor >= 0:
            os.close(descriptor)


def _let_go() -> None:
    """Leave the locks to the process that has taken them: this one is a fork of it."""
    for lock in list(_held):
        lock.release()


os.register_at_fork(after_in_child=_let_go)


def is_held(path: Path) -> bool:
    """Whether some process holds the lock now. Takes it, shared and for microseconds."""
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except OSError:
        return False
    try:
        return not _lock(descriptor, fcntl.LOCK_SH)
    finally:
        os.close(descriptor)


def file_id(path: Path | str) -> FileId:
    """Raises ``OSError``."""
    status = os.stat(path)
    return FileId(status.st_dev, status.st_ino)


def _lock(descriptor: int, kind: int) -> bool:
    try:
        fcntl.flock(descriptor, kind | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


@dataclass(frozen=True, slots=True)
class Predecessor:
    """The head whose lock file was replaced.

    It is ended only if it is proven to be that very head: its number, the moment it started, and
    the lock file that was replaced, open in it.
    """

    pid: int
    started: str
    lock: FileId

    def end(self) -> bool:
        """SIGKILL it; false, and nothing done, unless it is proven to be that head."""
        if not hasattr(os, "pidfd_open"):
            return False  # without it, its number may be another's when the signal goes out
        try:
            handle = os.pidfd_open(self.pid)
        except OSError:
            return False
        try:
            if not self._is_there():
                return False
            signal.pidfd_send_signal(handle, signal.SIGKILL)
        except OSError:
            return False
        finally:
            os.close(handle)
        return True

    def _is_there(self) -> bool:
        return bool(self.started) and start_time(self.pid) == self.started and self._holds_lock()

    def _holds_lock(self) -> bool:
        folder = f"/proc/{self.pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        for name in names:
            try:
                if file_id(f"{folder}/{name}") == self.lock:
                    return True
            except OSError:
                continue
        return False
