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
from typing import Final, TypeVar

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
WINDOWS_S: Final[Mapping[Behaviour, float]] = {
    Behaviour.REOPEN: 15.0,
    Behaviour.RETRY: 15.0,
    Behaviour.AWAY: 180.0,
}
_FIRST_PAUSE_S: Final = 0.1
_LONGEST_PAUSE_S: Final = 5.0

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
    begun = clock()
    pause = 0.0
    while True:
        try:
            return step()
        except OSError as fault:
            behaviour = behaviour_of(fault, path)
            window_s = WINDOWS_S.get(behaviour, 0.0) if behaviour is not None else 0.0
            left = begun + window_s - clock()
            if left <= 0:
                error = named(fault, path, needed_bytes=needed_bytes, waited_s=clock() - begun)
                if error is None:
                    raise
                raise error from fault
            if pause == 0.0 and behaviour is Behaviour.REOPEN:
                pause = _FIRST_PAUSE_S / 2
                continue
            pause = min(max(2 * pause, _FIRST_PAUSE_S), _LONGEST_PAUSE_S)
            sleep(min(pause, left))


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
    where = path if fault.filename is None or fault.filename2 else _place(path, fault.filename)
    number = fault.errno or 0
    reason = fault.strerror or str(fault)
    tried = f" (tried for {waited_s:.0f} s)" if waited_s >= 1 else ""
    behaviour = behaviour_of(fault, path)
    if behaviour is Behaviour.FULL:
        return DiskFull(path, needed_bytes=needed_bytes, reason=reason, errno=number)
    if behaviour is Behaviour.QUOTA:
        return QuotaExceeded(path, needed_bytes=needed_bytes, reason=reason, errno=number)
    if behaviour is Behaviour.READ_ONLY:
        return StorageReadOnly(
            f"cannot be written: {reason}",
            hint="the file system is mounted or exported read-only, perhaps since a disk "
            "failed: look at the mount here and, on NFS, at exportfs -v on the server",
            where=where,
            errno=number,
        )
    if behaviour is Behaviour.DENIED:
        return StorageDenied(
            f"user {os.geteuid()} (group {os.getegid()}) has no access: {reason}",
            hint="compare with the owner and mode of the folder (ls -ldn). On NFS the server "
            "decides by these numbers, makes root nobody (root_squash), and lets in only "
            "the hosts that its exports name",
            where=where,
            errno=number,
        )
    if behaviour is Behaviour.REOPEN:
        return StorageStale(
            f"the file system says {reason!r} whenever it is opened{tried}",
            hint="the export was taken back, moved or made anew while it was mounted: "
            "export it again as it was, or unmount and mount it on this host",
            where=where,
            errno=number,
        )
    if behaviour is Behaviour.AWAY:
        return StorageAway(
            f"the server does not answer: {reason}{tried}",
            hint="see that it runs and can be reached. A hard mount waits for its server "
            "instead of failing: mount with 'hard'",
            where=where,
            errno=number,
        )
    if behaviour is Behaviour.RETRY:
        return StorageError(
            f"cannot be read or written: {reason}{tried}",
            hint="the kernel's log (dmesg), here and on the server, says which disk or "
            "connection fails",
            where=where,
            errno=number,
        )
    return None


def _place(path: str, filename: object) -> str:
    """A full path that the system named, else the one we know."""
    text = os.fsdecode(filename) if isinstance(filename, (str, bytes)) else ""
    return text if os.path.isabs(text) else path
