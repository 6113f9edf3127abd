"""Copies of committed weights out of the weights root, without following any link."""

from __future__ import annotations

import os
import shutil
import stat
from pathlib import Path

from trial_runtime.errors import PathThroughLink
from trial_runtime.weights.storage import confined


def copy_tree(source: Path, target: Path) -> bool:
    """Copy a file or a folder; whether hard links did it. Committed weights never change.

    Links within stay links, and what is neither file, folder nor link is left out.

    Args:
        source: a canonical path: no part of it was a link when it was resolved.
        target: a path that is free; folders above it are made.

    Raises:
        PathThroughLink: it is a link now, or one is on the way.
        FileNotFoundError: it is not there, or went while it was copied.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    with confined.folder(str(source.parent)) as at:
        kind = os.stat(source.name, dir_fd=at, follow_symlinks=False).st_mode
        if stat.S_ISLNK(kind):
            raise PathThroughLink("is a symbolic link", where=str(source))
        if not stat.S_ISDIR(kind):
            return _copy(source.name, at, target)
        linked = True
        target.mkdir(exist_ok=True)
        for below, folders, files, inside in os.fwalk(source.name, dir_fd=at, onerror=_raise):
            place = target / os.path.relpath(below, source.name)
            for name in folders:
                if not stat.S_ISDIR(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode):
                    files.append(name)  # a link to a folder
                else:
                    (place / name).mkdir(exist_ok=True)
            for name in files:
                linked = _copy(name, inside, place / name) and linked
    return linked


def _raise(error: OSError) -> None:
    raise error


def _copy(name: str, at: int, target: Path) -> bool:
    kind = os.stat(name, dir_fd=at, follow_symlinks=False).st_mode
    if not (stat.S_ISREG(kind) or stat.S_ISLNK(kind)):
        return True
    try:
        os.link(name, target, src_dir_fd=at, follow_symlinks=False)
    except FileNotFoundError:
        raise
    except OSError:  # another file system, or one without links
        if stat.S_ISLNK(kind):
            target.symlink_to(os.readlink(name, dir_fd=at))
            return False
        flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
        with open(os.open(name, flags, dir_fd=at), "rb") as opened, target.open("xb") as copy:
            shutil.copyfileobj(opened, copy, 1 << 20)
            found = os.fstat(opened.fileno())
            os.fchmod(copy.fileno(), stat.S_IMODE(found.st_mode))
            os.utime(copy.fileno(), ns=(found.st_atime_ns, found.st_mtime_ns))
        return False
    return True
