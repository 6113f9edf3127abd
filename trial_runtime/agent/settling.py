"""A trial's share, where its process was there before it: a fork, or a worker that goes on."""

from __future__ import annotations

import os
from collections.abc import Collection
from typing import Optional

from trial_runtime.session_file import SessionFile


def settle(session: SessionFile) -> None:
    """Take what a session lends, before the trial's own code runs: CUDA reads its variable at
    its first use, and threads inherit what the one that starts them is pinned to."""
    os.environ.update(session.variables)
    if session.cgroup:
        from trial_runtime.agent.limits.cgroup import join

        join(session.cgroup)
    pin(session.cores)


_all: Optional[set[int]] = None  # where this process might run before it was pinned


def pin(cores: Collection[int]) -> None:
    """Pin all threads of this process to these cores; to none is to all it had at first."""
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
