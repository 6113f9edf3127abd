"""The real processes of an experiment: found, waited for, and ended by their ids."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil


def processes_of(folder: Path) -> list[psutil.Process]:
    """Everything that belongs to an experiment: its processes, and the trials below them.

    It is looked at again and again beside the processes that it waits for, so that it reads no more
    of each process than the two files.
    """
    # Trials, warm workers and the fork server, and what they started, name it there.
    named = b"\0BEQUEATH_EXPERIMENT=%b\0" % os.fsencode(folder.name)
    path = os.fsencode(folder)
    found = []
    for entry in filter(str.isdecimal, os.listdir("/proc")):
        try:
            line = Path("/proc", entry, "cmdline").read_bytes()
            environment = Path("/proc", entry, "environ").read_bytes()
            if path in line or named in b"\0%b\0" % environment:
                found.append(psutil.Process(int(entry)))
        except (OSError, psutil.Error):
            continue  # it has ended, or is somebody else's
    return found


def left_of(folder: Path, timeout_s: float = 60.0) -> list[psutil.Process]:
    """What is left of an experiment that is over; nothing, as soon as nothing is.

    Whoever was killed is gone a moment later, or when the machine finds the time.
    """
    left: list[psutil.Process] = []

    def are_gone() -> bool:
        left[:] = processes_of(folder)
        return not left

    holds_within(are_gone, timeout_s)
    return left


def find_process(folder: Path, module: str) -> psutil.Process:
    """The one process of an experiment that runs a module, such as ``trial_runtime.agent``."""
    found: list[psutil.Process] = []

    def look() -> bool:
        # One that it is just starting has its words for a moment, until it has its own.
        found[:] = [process for process in processes_of(folder) if module in words_of(process)]
        return len(found) == 1

    wait_until(look, f"one process runs {module}")
    return found[0]


def words_of(process: psutil.Process) -> list[str]:
    """Its command line; empty if it has ended."""
    try:
        words: list[str] = process.cmdline()
    except psutil.Error:
        return []
    return words


def is_gone(process: psutil.Process) -> bool:
    """Whether it has ended, if perhaps nobody has asked how."""
    try:
        return not process.is_running() or process.status() == psutil.STATUS_ZOMBIE
    except psutil.Error:
        return True


def end_processes_of(folder: Path) -> None:
    """SIGKILL for all that is left, whatever the test did."""
    for process in processes_of(folder):
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = 120.0) -> None:
    """Look until it holds; a bound on a hang, not a measure of speed."""
    assert holds_within(condition, timeout_s), f"never: {what}"


def holds_within(condition: Callable[[], object], timeout_s: float) -> bool:
    """Whether it comes to hold in time; looked at once more when the time is over."""
    began = time.monotonic()
    while not condition():
        waited = time.monotonic() - began
        if waited > timeout_s:
            return False
        # What takes long is looked at less often: a look may cost more than what it waits for.
        time.sleep(min(max(waited / 10, 0.02), 0.1))
    return True
