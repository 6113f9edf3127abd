"""The watch whether the kernel has lately killed a process for lack of memory."""

from __future__ import annotations

import os
from collections import deque

#: A kill may lie so far back (seconds): tearing down a large process takes a while.
WINDOW_S = 10.0


class OutOfMemoryWatch:
    """Samples the kernel's counters: cheap enough once a second, too expensive for each trial."""

    def __init__(self) -> None:
        self._cgroup_events = _cgroup_events_path()
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
        total = _field("/proc/vmstat", "oom_kill")
        if self._cgroup_events is not None:
            total += _field(self._cgroup_events, "oom_kill")
        return total


def _field(path: str, name: str) -> int:
    try:
        with open(path, encoding="ascii") as file:
            for line in file:
                key, _, value = line.partition(" ")
                if key == name:
                    return int(value)
    except (OSError, ValueError):
        pass
    return 0


def _cgroup_events_path() -> str | None:
    try:
        with open("/proc/self/cgroup", encoding="utf-8") as file:
            for line in file:
                if line.startswith("0::"):
                    path = f"/sys/fs/cgroup{line[3:].strip()}/memory.events"
                    return path if os.path.exists(path) else None
    except OSError:
        pass
    return None
