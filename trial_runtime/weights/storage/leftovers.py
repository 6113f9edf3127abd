"""Leftovers of crashes beside weights, recognised by their names and their age.

Three kinds: files that a save had not yet given their name; files that were removed while a
client of NFS had them open, and which that client did not live to remove (``.nfs…``); and what
an earlier attempt left at a save path, which was set aside for the next one.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import shutil
import stat
import sys
from collections.abc import Container
from dataclasses import dataclass
from typing import Final

from trial_runtime.errors import PathThroughLink
from trial_runtime.weights.storage import confined
from trial_runtime.weights.storage.paths import resolve_in_root
from trial_runtime.weights.storage.publishing import TEMPORARY_PREFIX

#: Age from which a file that has no name yet, or none any more, is a leftover, in seconds. A
#: save writes to it all the time; clocks of machines differ by less.
FILE_AGE_S: Final = 3600.0
#: Age from which what an earlier attempt left is of no more interest to people.
SET_ASIDE_AGE_S: Final = 24 * 3600.0

_UNNAMED: Final = re.compile(
    re.escape(TEMPORARY_PREFIX) + r"[0-9a-f]{16}-(manifest\.json|weights-[0-9a-f]{16}\.safetensors)"
)
#: As Linux names them: the file's number and a count, in hexadecimal.
_SILLY: Final = re.compile(r"\.nfs[0-9a-f]{16,24}")


def is_unnamed(name: str) -> bool:
    """Whether a save has made this file, and not yet given it its name."""
    return _UNNAMED.fullmatch(name) is not None


def is_silly(name: str) -> bool:
    """Whether a client of NFS gave a file this name, since it was removed while it was open."""
    return _SILLY.fullmatch(name) is not None


@dataclass(frozen=True)
class Swept:
    """The number of files removed, and whether some are left that a later look may remove."""

    removed: int
    waiting: bool


def sweep_leftovers(
    root: str, path: str, now: float, others: Container[str] = frozenset()
) -> Swept:
    """Remove the leftovers at and beside a save path whose trial has ended. Blocks on the disk.

    Nothing is removed through a link, and nothing that is younger than its kind's age. A file
    that is still open on this host, and a folder that is not empty for it, are left for later.

    Args:
        root: the weights root.
        path: canonical, relative to it.
        now: the time, in seconds since the epoch.
        others: paths of other trials, whatever their names: save paths, and folders above them;
            canonical, relative to the root.

    Raises:
        OSError: the file system refuses.
    """
    full = os.path.join(os.path.realpath(root), resolve_in_root(root, path))
    above, name = os.path.split(full)
    aside = re.compile(re.escape(name) + r"\.superseded\.[0-9]+(-[0-9]+)?")
    removed, waiting = _sweep_files(full, now)
    beside = posixpath.dirname(path)
    try:
        with confined.folder(above) as at:
            for other in _names(above):
                if not aside.fullmatch(other) or posixpath.join(beside, other) in others:
                    continue
                if now - _newest(os.path.join(above, other)) < SET_ASIDE_AGE_S:
                    waiting = True
                elif _remove_all(other, at):
                    removed += 1
                else:
                    waiting = True
    except (FileNotFoundError, NotADirectoryError, PathThroughLink):
        pass  # nothing of ours is there
    return Swept(removed, waiting)


def _sweep_files(folder: str, now: float) -> tuple[int, bool]:
    removed, waiting = 0, False
    try:
        with confined.folder(folder) as at:
            for name in _names(folder):
                if not (is_unnamed(name) or is_silly(name)):
                    continue
                try:
                    age_s = now - os.stat(name, dir_fd=at, follow_symlinks=False).st_mtime
                    if age_s < FILE_AGE_S:
                        waiting = True
                        continue
                    os.unlink(name, dir_fd=at)
                    removed += 1
                except FileNotFoundError:
                    continue
                except OSError as fault:
                    if fault.errno != errno.EBUSY:
                        raise
                    waiting = True  # open on this host: its client removes it at the last close
    except (FileNotFoundError, NotADirectoryError, PathThroughLink):
        pass
    return removed, waiting


def _names(folder: str) -> list[str]:
    return sorted(os.listdir(folder))


def _newest(path: str) -> float:
    """The time of the last write to anything in a folder, or to a file itself."""
    found = [os.lstat(path).st_mtime]
    for folder, _, files in os.walk(path):
        found.extend(_written(os.path.join(folder, name)) for name in (".", *files))
    return max(found)


def _written(path: str) -> float:
    try:
        return os.lstat(path).st_mtime
    except FileNotFoundError:
        return 0.0


def _remove_all(name: str, at: int) -> bool:
    """Remove a file or folder; false if something of it has to stay for now."""
    try:
        if stat.S_ISDIR(os.stat(name, dir_fd=at, follow_symlinks=False).st_mode):
            _remove_folder(name, at)
        else:
            os.unlink(name, dir_fd=at)
    except FileNotFoundError:
        return True
    except OSError as fault:
        if fault.errno not in (errno.EBUSY, errno.ENOTEMPTY, errno.EEXIST):
            raise
        return False
    return True


def _remove_folder(name: str, at: int) -> None:
    if sys.version_info >= (3, 11):
        shutil.rmtree(name, dir_fd=at)
    else:  # the same folder, whatever its path leads to by now
        shutil.rmtree(f"/proc/self/fd/{at}/{name}")
