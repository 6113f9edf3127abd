"""The real processes of an experiment: found, waited for, and ended by their ids."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from pathlib import Path

import psutil


def processes_of(folder: Path) -> list[psutil.Process]:
    """Everything that belongs to an experiment: its processes, and the trials below them."""
    found = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            environment = process.environ()
        except psutil.Error:
            continue
        # Trials, warm workers and the fork server, and what they started, name it there.
        named = environment.get("BEQUEATH_EXPERIMENT") == folder.name
        if named or any(str(folder) in word for word in line):
            found.append(process)
    return found


def end_processes_of(folder: Path) -> None:
    """SIGKILL for all that is left, whatever the test did."""
    for process in processes_of(folder):
        try:
            os.kill(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
    """Look until it holds; a bound on a hang, not a measure of speed."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)
