"""One program at a time makes a study in a folder; others wait until it is whole.

What a program has left that was killed meanwhile is made use of, and nothing of it is removed.
"""

from __future__ import annotations

import fcntl
import os
import re
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dispatcher.errors import UserError
from dispatcher.folders.experiment_folder import ExperimentFolder
from dispatcher.folders.names import CONFIG_NAME, LED_BY_PROGRAM, LOGS, SHARED_NAME, STORE_NAME
from dispatcher.folders.ownership import demand_ours
from dispatcher.store.migrate import is_blank

#: Seconds that a program waits for another one; a study is made in a tenth of one.
PATIENCE_S: Final = 30.0

#: Seconds between two tries.
_PAUSE_S: Final = 0.02

_CONFIGS: Final = f"({re.escape(CONFIG_NAME)}|{re.escape(SHARED_NAME)})"

#: Files that lie in a folder while a study is made there; and folders, in which nothing is yet.
_FILES: Final = re.compile(
    rf"{_CONFIGS}|\.{_CONFIGS}\.[0-9a-f]{{16}}|{re.escape(STORE_NAME)}(-wal|-shm|-journal)?"
)
_FOLDERS: Final = frozenset({LOGS, "keys", "weights"})


@contextmanager
def alone_in(parent: Path) -> Iterator[None]:
    """Let no other program make or open a study below ``parent`` meanwhile.

    The kernel lets go of it with the process, and nothing stays behind. A folder that cannot be
    read, or lies where there are no locks, is no error.

    Raises:
        UserError: another process has it for too long.
    """
    try:
        parent.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(parent, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    except OSError:
        yield  # who makes something there learns why it cannot be
        return
    try:
        _wait_for(descriptor, parent)
        yield
    finally:
        os.close(descriptor)


def _wait_for(descriptor: int, parent: Path) -> None:
    until = time.monotonic() + PATIENCE_S
    while True:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            if time.monotonic() > until:
                raise UserError(
                    f"another process has locked this folder for {PATIENCE_S:.0f} s, in which "
                    "a study is to be opened",
                    hint="see whether a program hangs that opens a study there; 'fuser' names it",
                    where=str(parent),
                ) from None
            time.sleep(_PAUSE_S)
        except OSError:  # a file system without locks
            return
        else:
            return


def is_laid_down(place: ExperimentFolder) -> bool:
    """Whether an experiment of ours lies there, or what cannot be told from one.

    Raises:
        NotOurs: it is somebody else's.
        OSError: nobody can look.
    """
    if not place.config.exists():
        return False
    demand_ours(place.path)
    if place.leader.exists() or LED_BY_PROGRAM not in place.read_config():
        return True
    return not is_blank(place.journal)


def is_leftover(folder: Path) -> bool:
    """Whether nothing lies there but what a program leaves that was killed while it made a study.

    Raises:
        NotOurs: the folder is somebody else's.
        OSError: nobody can look.
    """
    only_that = all(_is_of_making(each) for each in folder.iterdir())
    if only_that:
        demand_ours(folder)
    return only_that


def _is_of_making(path: Path) -> bool:
    if path.is_symlink():
        return False
    if path.is_dir():
        return path.name in _FOLDERS and not any(path.iterdir())
    return _FILES.fullmatch(path.name) is not None
