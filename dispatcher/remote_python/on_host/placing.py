"""Puts a tree that comes by stdin into its folder, which appears whole or not."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
import time
from collections.abc import Callable

#: Fills a folder, not there yet, and may use another one above it.
Fill = Callable[[str, str], None]

_DAY_S = 86400


def clear_up(parent: str) -> None:
    """Remove folders that others left half done, long ago."""
    for name in os.listdir(parent):
        path = os.path.join(parent, name)
        try:
            if name.startswith(".part-") and time.time() - os.stat(path).st_mtime > _DAY_S:
                shutil.rmtree(path, ignore_errors=True)
        except OSError:
            pass


def place(folder: str, fill: Fill) -> str:
    """Fill a folder, unless it is there; returns ``there``, or ``unpacked``."""
    folder = os.path.abspath(os.path.expanduser(folder))
    if os.path.isdir(folder):
        return "there"
    parent = os.path.dirname(folder)
    os.makedirs(parent, mode=0o700, exist_ok=True)
    clear_up(parent)
    part = tempfile.mkdtemp(prefix=".part-", dir=parent)
    try:
        tree = os.path.join(part, "tree")
        os.mkdir(tree)
        os.chmod(tree, 0o755)  # noqa: S103 - mkdtemp shuts everybody out
        fill(tree, part)
        try:
            os.rename(tree, folder)
        except OSError:
            # Somebody else was quicker: it is the same.
            if not os.path.isdir(folder):
                raise
            return "there"
        return "unpacked"
    finally:
        shutil.rmtree(part, ignore_errors=True)


def placed(folder: str, fill: Fill, damaged: type[Exception]) -> dict[str, str]:
    """Place it: {"state": "there"} or {"state": "unpacked"}, or {"error": NAME, "text": ...}.

    Args:
        folder: the one to make; ``~`` stands for the home folder.
        fill: see :data:`Fill`.
        damaged: raised for an archive that cannot be read.
    """
    try:
        return {"state": place(folder, fill)}
    except OSError as error:
        name = errno.errorcode.get(error.errno or 0, "EIO")
        return {"error": name, "text": error.strerror or str(error)}
    except (damaged, ValueError) as error:
        return {"error": "EBADMSG", "text": str(error)}
