"""The limit on open files: raised for our processes, restored for those of the user."""

from __future__ import annotations

import resource
from typing import Optional

#: Enough for any head; macOS takes no more than about ten thousand.
MOST = 10_240

_before: Optional[tuple[int, int]] = None


def raise_limit() -> int:
    """Raise the limit of this process as far as allowed; returns the new limit.

    Called at the start of the process: each connection takes a descriptor, and without a free one
    the process could not even write its journal.
    """
    global _before
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = MOST if hard == resource.RLIM_INFINITY else min(MOST, hard)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return soft
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError):
        return soft
    _before = (soft, hard)
    return wanted


def give_back(pid: int) -> None:
    """Give a process that we have just started the limit that this process was started with.

    Some programs fail with higher descriptor numbers (``select``), or try all possible ones.
    """
    if _before is None or not hasattr(resource, "prlimit"):
        return
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, _before)
    except OSError:
        pass  # it is gone, or another user's
