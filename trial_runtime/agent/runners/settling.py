"""Taking a trial's share in a process that was there before it: a fork, or a warm worker."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Optional

from trial_runtime.session_file import SessionFile


def settle(session: SessionFile) -> None:
    """Take the share that a session names, before the trial's own code runs.

    CUDA reads its variable at its first use, and threads inherit the cores of their starter.
    """
    os.environ.update(session.variables)
    if session.cgroup:
        from trial_runtime.agent.resources.cgroup import join

        join(session.cgroup)
    pin(session.cores)


_all: Optional[set[int]] = None  # where this process might run before it was pinned


def pin(cores: Collection[int]) -> None:
    """Pin all threads of this process to these cores; if empty, to all it had at first."""
    global _all
    if not cores and _all is None:
        return
    if _all is None:
        _all = os.sched_getaffinity(0)
    for name in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(name), cores or _all)
        except ProcessLookupError:
            pass  # a thread that has just ended
