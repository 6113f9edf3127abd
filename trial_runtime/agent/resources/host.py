"""The cores and the memory that this host has for its agent's trials, and who has which cores."""

from __future__ import annotations

import math
import os
from collections.abc import Hashable, Sequence
from typing import Optional

from trial_runtime.agent.resources.cgroup import own_cgroup


def usable_cores() -> tuple[int, ...]:
    """The cores that this process may run on, by number; all where that cannot be asked."""
    if hasattr(os, "sched_getaffinity"):
        return tuple(sorted(os.sched_getaffinity(0)))
    return tuple(range(os.cpu_count() or 1))


def usable_cpus() -> float:
    """The CPU time in cores: those we may run on, fewer where a container has a quota."""
    cores = float(len(usable_cores()))
    folder = own_cgroup()
    quota, _, period = (_first_line(f"{folder}/cpu.max") if folder else "").partition(" ")
    if quota.isdigit() and period.strip().isdigit():
        return min(cores, int(quota) / int(period))
    return cores


def usable_memory_bytes() -> Optional[int]:
    """The host's memory, or its container's bound; None where the system does not report it."""
    try:
        total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (ValueError, OSError):
        return None
    folder = own_cgroup()
    bounds = [f"{folder}/memory.max"] if folder else []
    for path in (*bounds, "/sys/fs/cgroup/memory/memory.limit_in_bytes"):
        text = _first_line(path)
        if text.isdigit():
            total = min(total, int(text))
    return total


def _first_line(path: str) -> str:
    try:
        with open(path, encoding="ascii") as file:
            return file.readline().strip()
    except (OSError, ValueError):
        return ""


class Cores:
    """The cores that trials are pinned to: the least loaded, distinct while there are enough.

    Owned by the agent's loop.
    """

    def __init__(self, cores: Sequence[int]) -> None:
        self._load = dict.fromkeys(cores, 0.0)
        self._allocated: dict[Hashable, dict[int, float]] = {}

    def allocate(self, key: Hashable, cpus: float) -> tuple[int, ...]:
        """Cores for that many CPUs, never more than there are.

        They are whole ones, and a last one that is shared where a part is left over. A key that
        has some already gets the same again.
        """
        if key in self._allocated:
            return tuple(sorted(self._allocated[key]))
        wanted = max(1, math.ceil(cpus - 1e-9))
        count = min(wanted, len(self._load))
        # The fullest that still has room for a part keeps whole ones free for whole ones.
        part = cpus - (wanted - 1)
        free = sorted(self._load, key=lambda core: (self._load[core], core))
        chosen = free[:count]
        if part < 1 and count == wanted:
            fits = [c for c in free[count - 1 :] if 0 < self._load[c] <= 1 - part + 1e-9]
            if fits:
                chosen[-1] = fits[-1]
        shares = dict.fromkeys(chosen, 1.0)
        if count == wanted:
            shares[chosen[-1]] = part
        for core, share in shares.items():
            self._load[core] += share
        self._allocated[key] = shares
        return tuple(sorted(chosen))

    def release(self, key: Hashable) -> None:
        """Free the cores of a key; does nothing for one without any."""
        for core, share in self._allocated.pop(key, {}).items():
            self._load[core] = max(0.0, self._load[core] - share)
            if self._load[core] < 1e-9:
                self._load[core] = 0.0
