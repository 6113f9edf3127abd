"""At most one head leads an experiment, and each has a number above the one before.

A file lock says which *process* leads, since the kernel lets go of it when the process dies,
however it dies. The number (epoch) says which *head*: the journal and the agents refuse an older
one, which fences a head that was believed dead, or was taken over while it did not answer. The lock
works because the experiment's folder is local (``filesystem.py``).

A take-over asks the head that leads to step down; one that does not answer loses the lock by
``lock_file.py``'s replacement, and can commit nothing from the moment at which its successor
opens the journal under the next epoch. A head that takes the lead holds a second lock meanwhile, so
that of several that want to take over from the same head one does.
"""

from __future__ import annotations

import contextlib
import math
import os
import socket
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from dispatcher.errors import ExperimentBusy, StoreError
from dispatcher.folders.names import CHANGE_LOCK_NAME, LEADER_NAME, LOCK_NAME
from dispatcher.store.lock_file import LockFile, Predecessor, file_id, is_held
from trial_runtime.durable_file import Draft
from trial_runtime.failpoints import failpoint
from trial_runtime.process_start import start_time

# A process that only asks whether a head runs holds the lock for microseconds; a head that
# starts in that moment waits it out rather than giving up.
_PATIENCE_S: Final = 0.5
CHANGE_PATIENCE_S: Final = 5.0

# A head that has agreed to step down ends its tuner and closes its journal first.
_STEP_DOWN_S: Final = 20.0

# So long (seconds) the answer to who asks in passing stays the same: two system calls for each of a
# thousand workers, twice a second, are what a head would do most. Fences do not rest on it.
_LATELY_S: Final = 0.02


class Leader(msgspec.Struct, frozen=True):
    """The head that leads, or led last: readable by everybody who may read the folder."""

    pid: int
    host: str
    epoch: int
    since: float  # seconds since the epoch, UTC
    started: str = ""  # distinguishes this process from a later one of the same number
    fenced: bool = False  # the journal refuses it once a later head has opened it


class Leadership:
    """The lead of one experiment, held from :meth:`acquire` or :meth:`take_over` to
    :meth:`release`, or until another head takes over.

    Any thread may release it, or ask whether it holds; the process's end releases it too.
    """

    def __init__(
        self, lock: LockFile, leader: Leader, predecessor: Predecessor | None = None
    ) -> None:
        self._lock = lock
        self._predecessor = predecessor
        self._held = True
        self._look_at = 0.0  # moment of the monotonic clock
        self.leader = leader

    @property
    def epoch(self) -> int:
        """This head's number: one above all heads before it, from 1."""
        return self.leader.epoch

    @property
    def holds(self) -> bool:
        """Whether no other head has taken over. Two system calls."""
        return self._lock.is_current

    def held_lately(self) -> bool:
        """As :attr:`holds`, of a moment ago: for those who ask one after another, a thousand of
        them in a turn. A lead that was lost stays lost."""
        now = time.monotonic()
        if now >= self._look_at:
            self._held = self.holds
            self._look_at = now + _LATELY_S if self._held else math.inf
        return self._held

    @classmethod
    def acquire(cls, folder: Path, *, last_epoch: int = 0) -> Self:
        """Take the lead. Blocks for half a second, or for some while another head begins.

        Args:
            folder: the experiment's folder, which exists.
            last_epoch: the newest epoch known from elsewhere (the journal), which counts
                when the file that remembers it was lost.

        Raises:
            ExperimentBusy: another head leads; the error names its process and host.
            StoreError: the folder cannot be written.
        """
        with _errors(folder), _alone(folder):
            lock = _take_lock(folder)
            return cls._begin(folder, lock, last_epoch)

    @classmethod
    def take_over(cls, folder: Path, *, last_epoch: int = 0, step_down: Callable[[], bool]) -> Self:
        """Take the lead from the head that has it; the same as :meth:`acquire` if none has.

        The head that leads now is asked first, and gets 20 s to wind up if it agrees. If it
        does not answer, or does not end, it has lost the lead all the same: it can commit
        nothing once the journal was opened under our epoch. Nothing is killed.

        Args:
            folder: the experiment's folder, which exists.
            last_epoch: as for :meth:`acquire`.
            step_down: asks the head that leads; true if it agreed. Must be bounded.

        Raises:
            ExperimentBusy: another head has taken over meanwhile, or the one that leads
                cannot be fenced, since it is of an older bequeath.
            StoreError: the folder cannot be written.
        """
        path = folder / LOCK_NAME
        before = read_leader(folder)
        if is_held(path) and step_down():
            _wait_until_free(path, _STEP_DOWN_S)
        with _errors(folder), _alone(folder):
            if read_leader(folder) != before:
                raise _busy(folder)
            lock = LockFile.take(path, _PATIENCE_S)
            if lock is not None:
                return cls._begin(folder, lock, last_epoch)
            if before is None or not before.fenced:
                raise _cannot_fence(folder)
            predecessor = Predecessor(before.pid, before.started, file_id(path))
            lock = LockFile.replace(path)
            failpoint("leadership.lock.replaced")
            here = before.host == socket.gethostname()
            return cls._begin(folder, lock, last_epoch, predecessor if here else None)

    @classmethod
    def keep_heads_out(cls, folder: Path) -> Self:
        """Hold the lock for a command that looks after an experiment and decides nothing in it.

        No head begins meanwhile. How the last head's lead ended stays true afterwards, whatever
        becomes of the command: it takes no number of its own. Blocks as :meth:`acquire` does.

        Raises:
            ExperimentBusy: a head leads; the error names its process and host.
            StoreError: the folder cannot be written.
        """
        with _errors(folder), _alone(folder):
            lock = _take_lock(folder)
            before = read_leader(folder)
            if before is None:  # nobody has led it: that stays so
                return cls(lock, _leader(0))
            return cls._write_down(folder, lock, _leader(before.epoch))

    @classmethod
    def _begin(
        cls,
        folder: Path,
        lock: LockFile,
        last_epoch: int,
        predecessor: Predecessor | None = None,
    ) -> Self:
        """Lead under the next number. Lets go of the lock if that fails."""
        failpoint("leadership.lock.taken")
        before = read_leader(folder)
        epoch = 1 + max(last_epoch, before.epoch if before else 0)
        return cls._write_down(folder, lock, _leader(epoch), predecessor)

    @classmethod
    def _write_down(
        cls, folder: Path, lock: LockFile, leader: Leader, predecessor: Predecessor | None = None
    ) -> Self:
        try:
            _write(folder / LEADER_NAME, msgspec.json.encode(leader))
        except OSError as error:
            lock.release()
            raise StoreError(
                f"cannot write who leads: {error.strerror or error}", where=str(folder)
            ) from error
        failpoint("leadership.written")
        return cls(lock, leader, predecessor)

    def end_predecessor(self) -> bool:
        """SIGKILL the head that was taken over, if it is proven to be that process; false, and
        nothing done, otherwise. Needed in one case only: it was stopped while it held the store's
        own lock."""
        return self._predecessor is not None and self._predecessor.end()

    def release(self) -> None:
        """Let the next head lead. Idempotent."""
        self._lock.release()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


@contextlib.contextmanager
def heads_locked_out(folder: Path) -> Iterator[None]:
    """Let no head begin, and none take over, in a folder that is about to go. Writes nothing.

    Raises:
        ExperimentBusy: a head leads, or is just taking the lead.
        StoreError: the folder cannot be written.
    """
    with _errors(folder), _alone(folder):
        lock = _take_lock(folder)
        try:
            yield
        finally:
            lock.release()


def _take_lock(folder: Path) -> LockFile:
    """Take the lock of the lead. Raises :class:`ExperimentBusy` if another head leads."""
    lock = LockFile.take(folder / LOCK_NAME, _PATIENCE_S)
    if lock is None:
        raise _busy(folder)
    return lock


def _leader(epoch: int) -> Leader:
    """Describe this process as leader."""
    pid = os.getpid()
    started = start_time(pid) or ""
    return Leader(pid, socket.gethostname(), epoch, time.time(), started, fenced=True)


def read_leader(folder: Path) -> Leader | None:
    """Read which head leads or led last; None before the first one, or if the file is damaged."""
    with contextlib.suppress(OSError, msgspec.MsgspecError):
        return msgspec.json.decode((folder / LEADER_NAME).read_bytes(), type=Leader)
    return None


def claimed_epoch(journal: Path) -> int:
    """Read the newest epoch under which a head has opened this journal; 0 if it cannot be read,
    or is not there."""
    if not journal.exists():
        return 0
    try:
        raw = sqlite3.connect(f"{journal.resolve().as_uri()}?mode=ro", uri=True)
    except sqlite3.Error:
        return 0
    try:
        row = raw.execute("SELECT value FROM meta WHERE key = 'epoch'").fetchone()
        return 0 if row is None else int(row[0])
    except (sqlite3.Error, ValueError):
        return 0
    finally:
        raw.close()


def _wait_until_free(path: Path, patience_s: float) -> None:
    deadline = time.monotonic() + patience_s
    while is_held(path) and time.monotonic() < deadline:
        time.sleep(0.05)  # another process's end; there is nothing of it to wait on


@contextlib.contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Hold the lock under which the lead changes."""
    lock = LockFile.take(folder / CHANGE_LOCK_NAME, CHANGE_PATIENCE_S)
    if lock is None:
        raise ExperimentBusy(
            "another head is just taking the lead of this experiment",
            hint="'bequeath status' shows which one leads",
            where=str(folder),
        )
    try:
        yield
    finally:
        lock.release()


@contextlib.contextmanager
def _errors(folder: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise StoreError(
            f"cannot lock the experiment: {error.strerror or error}",
            hint="check that you may write to its folder",
            where=str(folder),
        ) from error


def _busy(folder: Path) -> ExperimentBusy:
    return ExperimentBusy(
        f"a head already leads this experiment: {_who(folder)}",
        hint="'bequeath status' shows it; end it with 'bequeath stop' before you resume here, "
        "or take over from it with 'bequeath resume --take-over'",
        where=str(folder),
    )


def _cannot_fence(folder: Path) -> ExperimentBusy:
    return ExperimentBusy(
        f"the head that leads this experiment cannot be taken over: {_who(folder)} is of an "
        "older bequeath, which would go on writing",
        hint="end it with 'bequeath stop' or 'bequeath kill', then resume",
        where=str(folder),
    )


def _who(folder: Path) -> str:
    leader = read_leader(folder)
    return f"process {leader.pid} on {leader.host}" if leader else "another process"


def _write(path: Path, content: bytes) -> None:
    """Replace the file durably: an epoch that a crash takes back would not fence."""
    with Draft(path, content, mode=None) as draft:
        failpoint("leadership.draft.synced")
        draft.place()
