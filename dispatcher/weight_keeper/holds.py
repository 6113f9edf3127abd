"""Holds: weights that a process is reading now stay for as long as it does.

A hold is a locked file beside the keeper's own lock. It is made under that lock, so that a sweep
that is under way ends first, and one that begins later sees it. The system lets go of the lock with
its process, so that nothing is kept because a reader was killed; the next look removes its file.
"""

from __future__ import annotations

import errno
import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from filelock import FileLock, Timeout

from dispatcher.errors import PassingBackendError
from trial_runtime.opening import open_regular

#: The keeper's lock, in the experiment's folder.
LOCK_NAME: Final = "keeper.lock"

FOLDER_NAME: Final = "held"

_NAME: Final = re.compile(r"([0-9]{1,18})\.[0-9a-f]{16}")

#: Seconds for a sweep that is under way.
PATIENCE_S: Final = 30.0


@contextmanager
def hold(folder: Path, trial: int) -> Iterator[None]:
    """Keep a trial's weights from being removed. Blocks while a sweep is under way.

    Whether they are there has to be asked inside: a sweep before may have taken them.

    Args:
        folder: the experiment's.
        trial: its number.

    Raises:
        PassingBackendError: a sweep goes on for long, or the folder cannot be written to.
    """
    path = folder / FOLDER_NAME / f"{trial}.{os.urandom(8).hex()}"
    try:
        with FileLock(folder / LOCK_NAME, thread_local=False).acquire(timeout=PATIENCE_S):
            path.parent.mkdir(mode=0o700, exist_ok=True)
            descriptor = _locked(path)
    except Timeout:
        raise PassingBackendError(
            "weights are being removed right now", hint="try again in a while", where=str(folder)
        ) from None
    except OSError as error:
        raise PassingBackendError(
            f"the weights of trial {trial} cannot be held: {error.strerror}", where=str(path)
        ) from error
    try:
        yield
    finally:
        path.unlink(missing_ok=True)
        os.close(descriptor)


def _locked(path: Path) -> int:
    """Make a file and lock it; return its descriptor. Raises ``OSError``."""
    while True:
        descriptor = open_regular(str(path), os.O_RDWR | os.O_CREAT, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX)
        except OSError:
            os.close(descriptor)
            raise
        if os.fstat(descriptor).st_nlink:
            return descriptor
        os.close(descriptor)  # a plan, which takes no lock, took it for one that was left behind


def held(folder: Path) -> set[int]:
    """Return the trials whose weights are held now."""
    found: set[int] = set()
    try:
        names = os.listdir(folder / FOLDER_NAME)
    except (FileNotFoundError, NotADirectoryError):
        return found
    for name in names:
        matched = _NAME.fullmatch(name)
        if matched and _is_locked(folder / FOLDER_NAME / name):
            found.add(int(matched[1]))
    return found


def _is_locked(path: Path) -> bool:
    """Whether a process has it; the file of one that was killed is removed."""
    try:
        descriptor = open_regular(str(path), os.O_RDWR)
    except OSError as error:
        return error.errno != errno.ENOENT  # in doubt they stay
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        return True
    else:
        path.unlink(missing_ok=True)
        return False
    finally:
        os.close(descriptor)
