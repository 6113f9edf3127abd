"""The watch whether the kernel has lately killed a process for lack of memory."""

from __future__ import annotations

import os
from collections import deque

from trial_runtime.agent.resources.cgroup import count_in, own_cgroup

#: A kill may lie so far back (seconds): tearing down a large process takes a while.
WINDOW_S = 10.0


class OutOfMemoryWatch:
    """Samples the kernel's counter: cheap enough once a second, too expensive for each trial.

    The counter is that of our control group, where it has one: a kill of somebody else's process
    on the same host explains nothing here. Else it is the host's.
    """

    def __init__(self) -> None:
        own = f"{own_cgroup()}/memory.events"
        self._counter = own if os.path.exists(own) else "/proc/vmstat"
        self._samples: deque[tuple[float, int]] = deque()

    def sample(self, now: float) -> None:
        """Remember the counter at ``now`` (monotonic seconds)."""
        self._samples.append((now, self._count()))
        while len(self._samples) > 1 and self._samples[1][0] < now - WINDOW_S:
            self._samples.popleft()

    def struck(self) -> bool:
        """Whether a process was killed for memory within the window."""
        return bool(self._samples) and self._count() > self._samples[0][1]

    def _count(self) -> int:
        return count_in(self._counter, "oom_kill")
