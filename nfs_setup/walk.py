"""Folders reached without following a link and changed by descriptor: how root works on files.

A path is looked at in one moment and used in a later one. In between, whoever may rename in a
folder on the way can put a link, or another folder, in the place of what was looked at, and root
would change that. So each folder on the way is opened inside the one before, none may be a link,
and none may be one in which others than root can rename; what is found at the end is changed by
its descriptor.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from collections.abc import Collection, Iterator

from nfs_setup.errors import MachineRefuses

# Search permission is enough to pass through a folder, where the system has such a flag.
_PASS = getattr(os, "O_PATH", os.O_RDONLY) | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC
_CHANGE = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: What a folder's mode may have. Set-uid means nothing on a folder and much on a program.
MODE_BITS = 0o3777

_ROOT = (0,)


@contextlib.contextmanager
def above(
    path: str, *, root: str = "/", trusted: Collection[int] = _ROOT
) -> Iterator[tuple[int, str]]:
    """A descriptor of the folder that holds ``path``, and the name in it.

    Args:
        path: absolute, in its plain form.
        root: what ``/`` stands for. Tests use a folder.
        trusted: users in whose folders nothing is moved against root's will.

    Raises:
        MachineRefuses: a link is on the way, or others can rename there.
        FileNotFoundError, NotADirectoryError: it is not there.
    """
    *way, name = path.strip("/").split("/")
    at = os.open(root or "/", _PASS & ~os.O_NOFOLLOW)
    try:
        here = ""
        for part in way:
            _refuse_movable(at, part, here or "/", path, trusted)
            here = f"{here}/{part}"
            below = _open(part, at, _PASS, here, path)
            os.close(at)
            at = below
        _refuse_movable(at, name, here or "/", path, trusted)
        yield at, name or "."
    finally:
        os.close(at)


def why_movable(path: str, *, root: str = "/", trusted: Collection[int] = _ROOT) -> str:
    """Why others than root could put something else at a path; empty if they cannot.

    Args:
        path: absolute, there or not yet.
        root: what ``/`` stands for. Tests use a folder.
        trusted: see :func:`above`.
    """
    try:
        with above(path, root=root, trusted=trusted):
            return ""
    except FileNotFoundError:
        # What is missing is made by root in the last folder that is there.
        return why_movable(os.path.dirname(path), root=root, trusted=trusted)
    except MachineRefuses as refusal:
        return refusal.message


def make_folder(path: str, mode: int, *, root: str = "/", trusted: Collection[int] = _ROOT) -> None:
    """Make one folder, whatever the umask; see :func:`above`.

    Args:
        path: absolute; its parent must be there.
        mode: permission bits, set-gid and sticky.
        root: what ``/`` stands for. Tests use a folder.
        trusted: see :func:`above`.
    """
    with above(path, root=root, trusted=trusted) as (at, name):
        os.mkdir(name, 0o700, dir_fd=at)
        with _opened(name, at, path) as made:
            os.fchmod(made, mode & MODE_BITS)


def set_owner(
    path: str, mode: int, uid: int, gid: int, *, root: str = "/", trusted: Collection[int] = _ROOT
) -> None:
    """Set owner, group and mode of a folder, and of nothing but a folder; see :func:`above`.

    Args:
        path: absolute.
        mode: permission bits, set-gid and sticky.
        uid: the owner.
        gid: the group.
        root: what ``/`` stands for. Tests use a folder.
        trusted: see :func:`above`.
    """
    with above(path, root=root, trusted=trusted) as (at, name), _opened(name, at, path) as folder:
        found = os.fstat(folder)
        if (found.st_uid, found.st_gid) != (uid, gid):
            os.fchown(folder, uid, gid)  # before the mode: it takes set-gid away
        os.fchmod(folder, mode & MODE_BITS)


def remove_folder(path: str, *, root: str = "/", trusted: Collection[int] = _ROOT) -> bool:
    """Remove an empty folder; one that is not there counts as removed. False if it stays.

    Args:
        path: absolute.
        root: what ``/`` stands for. Tests use a folder.
        trusted: see :func:`above`.
    """
    try:
        with above(path, root=root, trusted=trusted) as (at, name):
            os.rmdir(name, dir_fd=at)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    return True


def widen(folder: str, name: str, mode: int) -> None:
    """Add to the mode of a folder that this process has just made in one that may be anybody's.

    It is left as it is where it is no folder by now, or, for root, not root's. Links on the way
    to ``folder`` are followed once, before: the path of a share that is verified may have one.

    Args:
        folder: the folder in which it was made.
        name: its name there.
        mode: the bits to add.
    """
    real = os.path.join(os.path.realpath(folder), name)
    at = os.open("/", _PASS)
    try:
        for part in real.strip("/").split("/")[:-1]:
            below = os.open(part, _PASS, dir_fd=at)
            os.close(at)
            at = below
        made = os.open(name, _CHANGE, dir_fd=at)
    except OSError:
        return
    finally:
        os.close(at)
    try:
        found = os.fstat(made)
        # Others than root change only what is theirs, whatever number a server shows for them.
        if os.geteuid() != 0 or found.st_uid == 0:
            os.fchmod(made, (stat.S_IMODE(found.st_mode) | mode) & MODE_BITS)
    except PermissionError:
        pass  # an owner that is not who made it (everybody squashed), or SMB
    finally:
        os.close(made)


@contextlib.contextmanager
def _opened(name: str, at: int, path: str) -> Iterator[int]:
    descriptor = _open(name, at, _CHANGE, path, path)
    try:
        yield descriptor
    finally:
        os.close(descriptor)


def _open(name: str, at: int, flags: int, here: str, path: str) -> int:
    try:
        return os.open(name, flags, dir_fd=at)
    except OSError as error:
        if error.errno not in (errno.ELOOP, errno.ENOTDIR):
            raise
        raise MachineRefuses(
            f"{here} is a symbolic link, or no folder",
            where=path,
            hint="name the folder that it leads to, or move it away",
        ) from None


def _refuse_movable(at: int, name: str, here: str, path: str, trusted: Collection[int]) -> None:
    folder, entry = os.fstat(at), _status(name, at)
    whose = ""
    if folder.st_uid not in trusted:
        whose = f"belongs to user {folder.st_uid}"
    elif folder.st_mode & 0o002 or (folder.st_mode & 0o020 and folder.st_gid != 0):
        # In a folder like /tmp only owners rename what is theirs.
        sticky = folder.st_mode & stat.S_ISVTX
        if not sticky or entry is None or entry.st_uid not in trusted:
            whose = "can be written to by others"
    if whose:
        raise MachineRefuses(
            f"{here} {whose}, who could put something else in the place of {name!r} meanwhile",
            where=path,
            hint="choose a place below folders that only root can write to, such as /srv/weights",
        )


def _status(name: str, at: int) -> os.stat_result | None:
    try:
        return os.stat(name, dir_fd=at, follow_symlinks=False)
    except (FileNotFoundError, NotADirectoryError):
        return None
