"""At most one head leads an experiment, and each has a number above the one before.

A file lock says *who*, since the kernel lets go of it when the process dies, however it
dies. The number (epoch) says *which*: agents refuse words of an older head, which is what
fences a head that was believed dead. The lock works because the experiment's folder is
local (``filesystem.py``).
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from pathlib import Path
from typing import Final, Self

import msgspec
from filelock import FileLock, Timeout

from dispatcher.errors import ExperimentBusy, StoreError
from trial_runtime.failpoints import failpoint

LOCK_NAME: Final = "head.lock"
LEADER_NAME: Final = "leader.json"

# Somebody who only asks whether a head runs holds the lock for microseconds; a head that
# starts in that moment waits it out rather than giving up.
_PATIENCE_S: Final = 0.5


class Leader(msgspec.Struct, frozen=True):
    """Who leads, or led last: readable by everybody who may read the folder."""

    pid: int
    host: str
    epoch: int
    since: float  # seconds since the epoch, UTC


class Leadership:
    """The lead of one experiment, held from :meth:`acquire` to :meth:`release`.

    Any thread may release it; the process's end does so too.
    """

    def __init__(self, lock: FileLock, leader: Leader) -> None:
        self._lock = lock
        self.leader = leader

    @property
    def epoch(self) -> int:
        """This head's number: one above all heads before it, from 1."""
        return self.leader.epoch

    @classmethod
    def acquire(cls, folder: Path, *, last_epoch: int = 0) -> Self:
        """Take the lead. Blocks for half a second at most.

        Args:
            folder: the experiment's folder, which exists.
            last_epoch: the newest epoch known from elsewhere (the journal), which counts
                when the file that remembers it was lost.

        Raises:
            ExperimentBusy: another head leads; the error names its process and host.
            StoreError: the folder cannot be written.
        """
        # thread_local: the thread that winds up the head need not be the one that began.
        lock = FileLock(folder / LOCK_NAME, mode=0o644, thread_local=False)
        try:
            lock.acquire(timeout=_PATIENCE_S)
        except Timeout:
            raise _busy(folder) from None
        except OSError as error:
            raise StoreError(
                f"cannot lock the experiment: {error.strerror or error}",
                hint="check that you may write to its folder",
                where=str(folder),
            ) from error
        failpoint("leadership.lock.taken")
        try:
            before = read_leader(folder)
            epoch = 1 + max(last_epoch, before.epoch if before else 0)
            leader = Leader(os.getpid(), socket.gethostname(), epoch, time.time())
            _write(folder / LEADER_NAME, msgspec.json.encode(leader))
        except OSError as error:
            lock.release()
            raise StoreError(
                f"cannot write who leads: {error.strerror or error}", where=str(folder)
            ) from error
        failpoint("leadership.written")
        return cls(lock, leader)

    def release(self) -> None:
        """Let the next head lead. Idempotent."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def read_leader(folder: Path) -> Leader | None:
    """Who leads or led last; None before the first head, or when the file makes no sense."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / LEADER_NAME).read_bytes(), type=Leader)
    return None


def _busy(folder: Path) -> ExperimentBusy:
    leader = read_leader(folder)
    who = f"process {leader.pid} on {leader.host}" if leader else "another process"
    return ExperimentBusy(
        f"a head already leads this experiment: {who}",
        hint="'bequeath status' shows it; end it with 'bequeath stop' before you resume here",
        where=str(folder),
    )


def _write(path: Path, content: bytes) -> None:
    """Replace the file durably: an epoch that a crash takes back would not fence."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with draft.open("wb") as file:
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    failpoint("leadership.draft.synced")
    draft.replace(path)
    descriptor = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
