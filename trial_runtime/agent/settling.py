"""A trial's share, where its process was there before it: a fork, or a worker that goes on."""

from __future__ import annotations

import os

from trial_runtime.session_file import SessionFile


def settle(told: SessionFile) -> None:
    """Take what a session lends, before the trial's own code runs: CUDA reads its variable at
    its first use, and threads inherit what the one that starts them is pinned to."""
    os.environ.update(told.variables)
    if told.cgroup:
        from trial_runtime.agent.limits.cgroup import join

        join(told.cgroup)
    if told.cores:
        pin(told.cores)


def pin(cores: tuple[int, ...]) -> None:
    """Pin all threads of this process to these cores."""
    for name in os.listdir("/proc/self/task"):
        try:
            os.sched_setaffinity(int(name), cores)
        except ProcessLookupError:
            pass  # a thread that has just ended
