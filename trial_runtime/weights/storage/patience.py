"""A reader's wait for weights that were announced and are not visible yet."""

from __future__ import annotations

import functools
import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final

from trial_runtime.retry import Retry
from trial_runtime.weights.storage.mounted import mount_of

# NFS clients may show a folder as it was acdirmax ago: 60 s by default, and a margin.
STALE_TIMEOUT_S: Final = 75.0
_MARGIN_S: Final = 15.0
_FIRST_PAUSE_S: Final = 0.05
_LONGEST_PAUSE_S: Final = 2.0

_AT_FDCWD: Final = -100
_AT_STATX_FORCE_SYNC: Final = 0x2000
_STATX_BASIC: Final = 0x7FF
_STATX_BYTES: Final = 256


def bound_for(timeout_s: float, root: str) -> float:
    """The longest wait for weights below a root, in seconds.

    Longer than the mount of this host may show an older state, whatever it was mounted with.

    Args:
        timeout_s: the head's bound: less than :data:`STALE_TIMEOUT_S` where all trials run on
            one host, which sees its own writes.
        root: the weights root; a real path.
    """
    if timeout_s < STALE_TIMEOUT_S:
        return timeout_s
    mount = mount_of(root)
    return max(timeout_s, mount.cached_s + _MARGIN_S if mount is not None else 0.0)


@dataclass(frozen=True)
class Patience:
    """A bound on waiting; tests replace clock and sleep."""

    timeout_s: float = STALE_TIMEOUT_S
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def looks(self, path: str) -> Iterator[None]:
        """Yield once at once, then again after growing pauses, the last time at the bound.

        Makes a network file system ask its server about ``path`` before each look but the
        first; the second look on such a file system comes without a pause.
        """
        tries = Retry(_FIRST_PAUSE_S, _LONGEST_PAUSE_S, clock=self.clock, sleep=self.sleep)
        yield
        mount = mount_of(path)
        if self.timeout_s > 0 and mount is not None and mount.shared:
            revalidate(path, mount.point)
            yield
        while tries.pause(self.timeout_s):
            revalidate(path, mount.point if mount is not None else "/")
            yield


def revalidate(path: str, top: str = "/") -> None:
    """Make a client compare its cached view of the way to a path with the server's.

    A client that once found a name missing believes so for as long as it believes to know
    the folder, and a folder that was renamed away keeps its name for as long. So each folder
    from the mount on is asked about, the highest first. Costs a round trip for each.
    """
    parts = os.path.relpath(path, top).split("/")
    at = top
    for part in ("", *parts):
        at = os.path.join(at, part) if part else at
        try:
            # Opening asks the server (close-to-open), unless the mount says nocto. So does
            # statx with this flag, whatever the mount's options.
            fd = os.open(at, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:
            return  # not there yet, or a file: the look that follows will find out
        try:
            ask_server(at)
        finally:
            os.close(fd)


def revalidate_shared(path: str) -> None:
    """Call :func:`revalidate` where machines share the file system; else do nothing."""
    mount = mount_of(path)
    if mount is not None and mount.shared:
        revalidate(path, mount.point)


def ask_server(path: str) -> None:
    statx = _statx()
    if statx is not None:
        import ctypes

        answer = ctypes.create_string_buffer(_STATX_BYTES)
        # Its failure is of no consequence: the look that follows is what counts.
        statx(_AT_FDCWD, os.fsencode(path), _AT_STATX_FORCE_SYNC, _STATX_BASIC, answer)


@functools.cache
def _statx() -> Callable[..., int] | None:
    """The C library's statx, which Python has no name for; None where there is none."""
    import ctypes

    try:
        call: Callable[..., int] = ctypes.CDLL(None, use_errno=True).statx
    except (OSError, AttributeError):
        return None
    return call
