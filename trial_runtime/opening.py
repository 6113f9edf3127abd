"""Opening files where the code of trials, or anybody who guesses a name, may have put anything.

A pipe would be waited for without end, and a link would lead to another place.
"""

from __future__ import annotations

import errno
import os
import stat
from typing import Optional


def open_regular(path: str, flags: int, mode: int = 0o644, *, dir_fd: Optional[int] = None) -> int:
    """A descriptor of a regular file that is no link; never waits for another process.

    Args:
        path: of the file, relative to ``dir_fd`` if that is given.
        flags: as for :func:`os.open`; no links, no blocking and close-on-exec are added.
        mode: permissions of a file that is created.
        dir_fd: an open folder.

    Raises:
        OSError: there is none, or it is something else.
    """
    flags |= os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC
    descriptor = os.open(path, flags, mode, dir_fd=dir_fd)
    if not stat.S_ISREG(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "is no regular file", path)
    return descriptor


def create_private(path: str, mode: int = 0o600) -> int:
    """A descriptor of a new file in place of what was there; ``mode``: who may use it.

    Raises:
        OSError: it cannot be made, or somebody makes one of that name meanwhile.
    """
    try:
        os.unlink(path)
    except FileNotFoundError:
        pass
    flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
    return os.open(path, flags, mode)
