"""The start time of a process, which distinguishes it from a later one of the same number."""

from __future__ import annotations

import os
from pathlib import Path


def start_time(pid: int) -> str | None:
    """The start of a process, as a text that no other process of this number shares.

    None if there is no such process, or only its zombie. The wall clock plays no part in it.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="ascii", errors="replace")
    except FileNotFoundError:
        return _start_time_by_ps(pid) if not os.path.isdir("/proc/self") else None
    except OSError:
        return None
    fields = stat.rpartition(")")[2].split()
    return None if fields[0] in ("Z", "X") else fields[19]


def boot_id() -> str:
    """The id of the machine's current boot; empty where the system has none.

    After a reboot numbers and start times of processes may be the same again.
    """
    try:
        return Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return ""


def _start_time_by_ps(pid: int) -> str | None:
    """The start of a process on macOS, which has no /proc."""
    import psutil

    try:
        process = psutil.Process(pid)
        if process.status() == psutil.STATUS_ZOMBIE:
            return None
        return repr(process.create_time())
    except psutil.Error:
        return None
