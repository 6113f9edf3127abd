"""The response to each error of a file system, in one table, and its execution.

A network file system fails in more ways than a disk. Some faults pass (a handle that is stale
is good again once the file is opened by its name), some are over when a server is back, and
some are for people to mend: these are named, with what to do.

A server that is away behind a hard mount is no error at all: calls wait for it, and nothing
here bounds how long.
"""

from __future__ import annotations

import errno
import os
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from enum import Enum
from typing import Final, NamedTuple, TypeVar

from trial_runtime.errors import (
    DiskFull,
    QuotaExceeded,
    StorageAway,
    StorageDenied,
    StorageError,
    StorageReadOnly,
    StorageStale,
    WeightsError,
)
from trial_runtime.retry import Retry
from trial_runtime.weights.storage.mounted import mount_of

T = TypeVar("T")


class Behaviour(Enum):
    """The response to an error."""

    ABSENT = "there is nothing: waited for where it was announced"
    REOPEN = "opened again by its name: at once, then with growing pauses"
    RETRY = "tried again a few times: a disk or a server has stumbled"
    AWAY = "tried again for longer than a server takes to restart"
    FULL = "the trial fails: DiskFull"
    QUOTA = "the trial fails: QuotaExceeded"
    READ_ONLY = "the trial fails: StorageReadOnly"
    DENIED = "the trial fails: StorageDenied"


#: Errors that are not here pass through as they are: they are not about the storage.
BEHAVIOURS: Final[Mapping[int, Behaviour]] = {
    errno.ENOENT: Behaviour.ABSENT,
    errno.ENOTDIR: Behaviour.ABSENT,
    errno.ESTALE: Behaviour.REOPEN,
    errno.EIO: Behaviour.RETRY,
    errno.EREMOTEIO: Behaviour.RETRY,
    errno.ETIMEDOUT: Behaviour.AWAY,
    errno.ENOTCONN: Behaviour.AWAY,
    errno.ECONNREFUSED: Behaviour.AWAY,
    errno.ECONNRESET: Behaviour.AWAY,
    errno.ECONNABORTED: Behaviour.AWAY,
    errno.EHOSTDOWN: Behaviour.AWAY,
    errno.EHOSTUNREACH: Behaviour.AWAY,
    errno.ENETDOWN: Behaviour.AWAY,
    errno.ENETUNREACH: Behaviour.AWAY,
    errno.ENOSPC: Behaviour.FULL,
    errno.EFBIG: Behaviour.FULL,
    errno.EDQUOT: Behaviour.QUOTA,
    errno.EROFS: Behaviour.READ_ONLY,
    errno.EACCES: Behaviour.DENIED,
    errno.EPERM: Behaviour.DENIED,
}

#: Seconds for which a step is tried again. An export that is made anew is back within moments;
#: a server that restarts is away for a minute, and NFS has a time of grace after that.
WINDOWS_S: Final[Mapping[Behaviour | None, float]] = {
    Behaviour.REOPEN: 15.0,
    Behaviour.RETRY: 15.0,
    Behaviour.AWAY: 180.0,
}
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0


class _Report(NamedTuple):
    error: type[StorageError]
    text: str
    hint: str


_REPORTS: Final[Mapping[Behaviour | None, _Report]] = {
    Behaviour.READ_ONLY: _Report(
        StorageReadOnly,
        "cannot be written: {reason}",
        "the file system is mounted or exported read-only, perhaps since a disk failed: look at "
        "the mount here and, on NFS, at exportfs -v on the server",
    ),
    Behaviour.DENIED: _Report(
        StorageDenied,
        "user {uid} (group {gid}) has no access: {reason}",
        "compare with the owner and mode of the folder (ls -ldn). On NFS the server decides by "
        "these numbers, makes root nobody (root_squash), and lets in only the hosts that its "
        "exports name",
    ),
    Behaviour.REOPEN: _Report(
        StorageStale,
        "the file system says {reason!r} whenever it is opened",
        "the export was taken back, moved or made anew while it was mounted: export it again as "
        "it was, or unmount and mount it on this host",
    ),
    Behaviour.AWAY: _Report(
        StorageAway,
        "the server does not answer: {reason}",
        "see that it runs and can be reached. A hard mount waits for its server instead of "
        "failing: mount with 'hard'",
    ),
    Behaviour.RETRY: _Report(
        StorageError,
        "cannot be read or written: {reason}",
        "the kernel's log (dmesg), here and on the server, says which disk or connection fails",
    ),
}
_NO_ROOM: Final[Mapping[Behaviour | None, type[DiskFull]]] = {
    Behaviour.FULL: DiskFull,
    Behaviour.QUOTA: QuotaExceeded,
}

#: The time that steps are repeated by, and how their pauses pass: for whoever has another one.
clock: Callable[[], float] = time.monotonic
sleep: Callable[[float], None] = time.sleep


def behaviour_of(fault: OSError, path: str) -> Behaviour | None:
    """The response to an error at a path; None where it passes through."""
    behaviour = BEHAVIOURS.get(fault.errno or 0)
    if behaviour is Behaviour.RETRY and (mount := mount_of(path)) is not None and mount.soft:
        return Behaviour.AWAY  # soft mounts fail with EIO where the server does not answer
    return behaviour


def persist(step: Callable[[], T], path: str, *, needed_bytes: int = 0) -> T:
    """Do a step on the storage, and again while its error is one that passes; name the rest.

    Blocks, with pauses, at most for the time that the last error is worth
    (:data:`WINDOWS_S`), not counting what the calls themselves wait for.

    Args:
        step: to be done from its beginning each time.
        path: what it is about.
        needed_bytes: what a full disk has no room for.

    Raises:
        StorageError: see :func:`named`.
        OSError: what the table does not have, and that nothing is there.
    """
    tries = Retry(_FIRST_PAUSE_S, _LONGEST_PAUSE_S, clock=clock, sleep=sleep)
    is_first = True
    while True:
        try:
            return step()
        except OSError as fault:
            behaviour = behaviour_of(fault, path)
            at_once = is_first and behaviour is Behaviour.REOPEN
            is_first = False
            if not at_once and not tries.pause(WINDOWS_S.get(behaviour, 0.0)):
                error = named(fault, path, needed_bytes=needed_bytes, waited_s=tries.spent_s)
                if error is None:
                    raise
                raise error from fault


@contextmanager
def named_faults(path: str, *, needed_bytes: int = 0) -> Iterator[None]:
    """Raise errors of the storage as :func:`named` ones, without trying again.

    Raises:
        StorageError: see :func:`named`.
    """
    try:
        yield
    except OSError as fault:
        error = named(fault, path, needed_bytes=needed_bytes)
        if error is None:
            raise
        raise error from fault


def named(
    fault: OSError, path: str, *, needed_bytes: int = 0, waited_s: float = 0.0
) -> WeightsError | None:
    """The error that states the fault and its remedy; None where the table has none.

    Args:
        fault: as the system raised it.
        path: that was worked on; a full path in ``fault`` is more exact and goes first.
        needed_bytes: of the file that a full disk has no room for.
        waited_s: seconds for which it was tried again.
    """
    behaviour = behaviour_of(fault, path)
    number, reason = fault.errno or 0, fault.strerror or str(fault)
    if behaviour in _NO_ROOM:
        return _NO_ROOM[behaviour](path, needed_bytes=needed_bytes, reason=reason, errno=number)
    if behaviour not in _REPORTS:
        return None
    report = _REPORTS[behaviour]
    text = report.text.format(reason=reason, uid=os.geteuid(), gid=os.getegid())
    if waited_s >= 1 and behaviour in WINDOWS_S:
        text += f" (tried for {waited_s:.0f} s)"
    where = path if fault.filename is None or fault.filename2 else _place(path, fault.filename)
    return report.error(text, hint=report.hint, where=where, errno=number)


def _place(path: str, filename: object) -> str:
    """A full path that the system named, else the one we know."""
    text = os.fsdecode(filename) if isinstance(filename, (str, bytes)) else ""
    return text if os.path.isabs(text) else path
