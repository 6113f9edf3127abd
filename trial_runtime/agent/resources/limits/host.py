"""The cores and the memory that this host has for its agent's trials."""

from __future__ import annotations

import os
from typing import Optional

from trial_runtime.agent.resources.limits.cgroup import own_cgroup


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
