"""The files that commands write for people: replaced as a whole, or not at all."""

from __future__ import annotations

import stat
from pathlib import Path

from dispatcher.errors import UserError
from trial_runtime import durable_file


def write_out(path: Path, content: bytes) -> None:
    """Write a file that a user has named. A full disk leaves what was there; of a link there the
    link is replaced, and not what it leads to. What is no file, such as a pipe, is written into.

    Args:
        path: of the file.
        content: all of it.

    Raises:
        UserError: it cannot be written.
    """
    try:
        mode = stat.S_IMODE(path.stat().st_mode) if path.is_file() else None
        if mode is None and path.exists():
            with path.open("wb") as file:
                file.write(content)
            return
        durable_file.replace(path.absolute(), content, mode=mode)
    except OSError as error:
        raise UserError(f"cannot be written: {error.strerror}", where=str(path)) from error
