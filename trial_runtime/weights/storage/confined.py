"""Opening, making and removing things without following a symbolic link on the way.

A path is checked at one moment and used at a later one. Anyone who may write to the weights root
(a trial, another user of shared storage) could put a link in between and lead a reader, a
writer or, worst, the removal of old weights out of the root. So canonical paths are walked
folder by folder, each opened inside the one before, and none may be a link: the file that is
reached in this way lies where the path says, whatever happens meanwhile.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Final

from trial_runtime.errors import PathThroughLink

# Search permission is enough to pass through a folder, where the system has such a flag.
_PASS: Final = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


@contextmanager
def folder(path: str, *, make: bool = False) -> Iterator[int]:
    """A descriptor of the folder at a canonical path, to be used as ``dir_fd``.

    Args:
        path: absolute, normalised and resolved before: no part of it was a link then.
        make: create what is missing, durably.

    Raises:
        PathThroughLink: a part of it is a symbolic link now.
        FileNotFoundError, NotADirectoryError: it is not there.
    """
    at = os.open("/", _PASS)
    try:
        for part in path.strip("/").split("/"):
            if part:
                at = _step(at, part, path, make)
        yield at
    finally:
        os.close(at)


def _step(at: int, part: str, path: str, make: bool) -> int:
    """The folder below ``at``, which is closed where there is one."""
    try:
        below = os.open(part, _PASS, dir_fd=at)
    except FileNotFoundError:
        if not make:
            raise
        try:
            os.mkdir(part, dir_fd=at)
        except FileExistsError:
            pass  # by somebody else, in this moment
        else:
            sync(at)
        return _step(at, part, path, False)
    except OSError:
        if _is_link(part, at):
            raise PathThroughLink(
                f"a symbolic link is in the way, at {part!r}",
                hint="somebody has put it there since the path was checked",
                where=path,
            ) from None
        raise
    os.close(at)
    return below


def _is_link(name: str, at: int) -> bool:
    try:
        os.readlink(name, dir_fd=at)
    except OSError:
        return False
    return True


def sync(folder_fd: int) -> None:
    """Make the names in a folder durable."""
    fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=folder_fd)
    try:
        os.fsync(fd)
    finally:
        os.close(fd)


def names(path: str) -> list[str]:
    """Names in the folder at a canonical path; empty if there is none.

    Raises:
        PathThroughLink: a part of the path is a symbolic link now.
    """
    try:
        with folder(path) as at:
            fd = os.open(".", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC, dir_fd=at)
    except (FileNotFoundError, NotADirectoryError):
        return []
    try:
        return os.listdir(fd)
    finally:
        os.close(fd)


def remove_tree(path: str) -> None:
    """Remove the folder at a canonical path with all that is in it; links in it go themselves.

    Raises:
        PathThroughLink: a folder on the way is a symbolic link now; nothing was removed.
        FileNotFoundError: it is not there.
        NotADirectoryError: it is a link or a file, and stays.
        OSError, RecursionError: part of it stays.
    """
    above, name = os.path.split(path)
    with folder(above) as at:
        for _, folders, files, inside in os.fwalk(name, topdown=False, dir_fd=at):
            for each in files:
                os.unlink(each, dir_fd=inside)
            for each in folders:
                if _is_link(each, inside):
                    os.unlink(each, dir_fd=inside)
                else:
                    os.rmdir(each, dir_fd=inside)
        os.rmdir(name, dir_fd=at)


def unlink(path: str) -> None:
    """Remove a file, or a link itself, at a canonical path.

    Raises:
        PathThroughLink: a folder on the way is a symbolic link now; nothing was removed.
        FileNotFoundError: it is not there.
    """
    above, name = os.path.split(path)
    with folder(above) as at:
        os.unlink(name, dir_fd=at)
