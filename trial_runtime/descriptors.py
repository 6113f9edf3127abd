"""How many files a process may open: more for ours, and as before for those of its users."""

from __future__ import annotations

import resource
from typing import Optional

#: Enough for any head; macOS takes no more than about ten thousand.
MOST = 10_240

_before: Optional[tuple[int, int]] = None


def raise_limit() -> int:
    """Let this process open as many files as it may; how many that are. Called at its start:
    whoever connects costs it one, and without any it could not even write its journal."""
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
    """Let a process that we have just started have the limit that we were started with: some
    programs fail with numbers beyond it (``select``), or try all that there could be."""
    if _before is None or not hasattr(resource, "prlimit"):
        return
    try:
        resource.prlimit(pid, resource.RLIMIT_NOFILE, _before)
    except OSError:
        pass  # it is gone, or another user's
