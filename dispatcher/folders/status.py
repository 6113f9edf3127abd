"""The status of an experiment, running or how it ended: read from its folder, not from a head."""

from __future__ import annotations

import fcntl
import os
from enum import StrEnum
from pathlib import Path
from typing import Any

from dispatcher.folders.names import LEADER_NAME, LOCK_NAME
from dispatcher.folders.small_file import read_object

# What the head writes and holds in its experiment's folder.


class ExperimentStatus(StrEnum):
    """The status of an experiment."""

    CREATED = "created"  # no head has led it yet
    RUNNING = "running"
    STOPPED = "stopped"  # can be resumed
    INTERRUPTED = "interrupted"  # its head is gone without an end on record; can be resumed
    COMPLETED = "completed"
    FAILED = "failed"  # can be resumed, too


def status_of(folder: Path, phase: str | None, epoch: str | None) -> ExperimentStatus:
    """Find the status by the lock, and by the phase that a head wrote down at its end.

    Heads are numbered (``epoch``). The record of an earlier one says nothing about the last one,
    which was then killed before it could write its own.

    Args:
        folder: the experiment's.
        phase: as a head recorded it at its end; None if none did.
        epoch: of the head that recorded it.
    """
    if is_led(folder):
        return ExperimentStatus.RUNNING
    last = leader_of(folder).get("epoch")
    if phase in ("completed", "stopped", "failed") and (last is None or str(last) == epoch):
        return ExperimentStatus(phase)
    led_before = (folder / LEADER_NAME).exists()
    return ExperimentStatus.INTERRUPTED if led_before else ExperimentStatus.CREATED


def is_led(folder: Path) -> bool:
    """Whether a process of this machine leads the experiment now.

    The kernel knows, since it holds the lock for the head and drops it with the head. Asking
    takes the lock, shared and for microseconds; a head that starts waits longer than that.
    """
    try:
        # Non-blocking: somebody may have put a pipe there.
        with open(os.open(folder / LOCK_NAME, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    except OSError:
        return False  # no lock file: nobody has ever led it
    return False


def leader_of(folder: Path) -> dict[str, Any]:
    """Read ``pid``, ``host``, ``epoch`` and ``since`` of the head that leads or led last."""
    return read_object(folder / LEADER_NAME)
