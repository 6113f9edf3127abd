"""One program at a time makes a study in a folder; others wait until it is whole."""

from __future__ import annotations

import fcntl
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from dispatcher.errors import UserError

#: Seconds that a program waits for another one; a study is made in a tenth of one.
PATIENCE_S: Final = 30.0

#: Seconds between two tries.
_PAUSE_S: Final = 0.02


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
