"""Behaviour of a file system where they differ: each habit tried once, alone."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable

from nfs_setup.verify.facts import Habits
from nfs_setup.verify.files import code_of, get, put

_LONGEST_NAME = 255
_SPARSE_BYTES = 16 << 20


def habits(folder: str) -> Habits:
    """Try each habit in a folder of its own machine. What the system refuses is an answer."""
    os.mkdir(os.path.join(folder, "habits"))
    found: dict[str, str] = {}
    for name, habit in HABITS.items():
        place = os.path.join(folder, "habits", name)
        os.mkdir(place)
        try:
            found[name] = "yes" if habit(place) else "no"
        except OSError as error:
            found[name] = code_of(error)
    return Habits(found)


def _fsync(folder: str) -> bool:
    put(os.path.join(folder, "file"), b"content")
    return True


def _fsync_folder(folder: str) -> bool:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return True


def _exclusive(folder: str) -> bool:
    """A second one to make the same name is refused."""
    path = os.path.join(folder, "file")
    put(path, b"first")
    try:
        put(path, b"second")
    except FileExistsError:
        return get(path) == b"first"
    return False


def _replaces_open(folder: str) -> bool:
    """A file can be replaced while somebody reads it, who goes on with the old one."""
    path = os.path.join(folder, "file")
    put(path, b"old")
    put(path + ".new", b"new")
    with open(path, "rb") as reader:
        os.rename(path + ".new", path)
        return reader.read() == b"old" and get(path) == b"new"


def _reads_removed(folder: str) -> bool:
    """A removed file stays for readers that have it open, and leaves nothing behind then."""
    path = os.path.join(folder, "file")
    put(path, b"content")
    with open(path, "rb") as reader:
        os.unlink(path)
        content = reader.read()
    return content == b"content" and not os.listdir(folder)  # no .nfsXXXX


def _case(folder: str) -> bool:
    put(os.path.join(folder, "name"), b"")
    return not os.path.exists(os.path.join(folder, "NAME"))


def _long_names(folder: str) -> bool:
    put(os.path.join(folder, "n" * _LONGEST_NAME), b"")
    return True


def _odd_names(folder: str) -> bool:
    name = "a b:c*?é"
    put(os.path.join(folder, name), b"")
    return os.listdir(folder) == [name]


def _modes(folder: str) -> bool:
    path = os.path.join(folder, "file")
    # By the descriptor that made it: root may verify a share in which others can swap names.
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW, 0o660)
    try:
        os.fchmod(descriptor, 0o640)
    finally:
        os.close(descriptor)
    return stat.S_IMODE(os.stat(path).st_mode) == 0o640


def _sparse(folder: str) -> bool:
    """A hole takes no room."""
    path = os.path.join(folder, "file")
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o660)
    try:
        os.pwrite(descriptor, b"x", _SPARSE_BYTES)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    found = os.stat(path)
    return found.st_size == _SPARSE_BYTES + 1 and found.st_blocks * 512 < _SPARSE_BYTES // 2


HABITS: dict[str, Callable[[str], bool]] = {
    "fsync": _fsync,
    "fsync of a folder": _fsync_folder,
    "exclusive create": _exclusive,
    "replace an open file": _replaces_open,
    "remove an open file": _reads_removed,
    "upper and lower case": _case,
    "names of 255 bytes": _long_names,
    "odd names": _odd_names,
    "file modes": _modes,
    "sparse files": _sparse,
}
