"""Ownership of an experiment's folder: the one judge, asked before anything in it is believed.

Ours is a folder that we own, or that root owns if nobody else may write there and we may read it.
An experiment of somebody else is opened only by its path, only to be read: it is never resumed or
changed, nobody asks its head anything, and references in its file (``env:``, ``file:``) are not
looked up.
"""

from __future__ import annotations

import os
import pwd
import re
import stat
import tempfile
from pathlib import Path
from typing import Final

from dispatcher.errors import UserError
from dispatcher.folders.names import CONFIG_NAME, RUN_FILE_NAME, STORE_NAME

#: The files of a folder that are judged with it: they decide what is run, and who is asked.
_JUDGED: Final = (CONFIG_NAME, STORE_NAME, RUN_FILE_NAME)

#: Ids, which are names of folders, hold nothing that a shell or a terminal would obey.
ID_LETTERS: Final = "A-Za-z0-9_-"
_ID: Final = re.compile(f"(?!-)[{ID_LETTERS}]{{1,200}}")

_WRITABLE_FOR_OTHERS: Final = stat.S_IWGRP | stat.S_IWOTH


class NotOurs(UserError):
    """Raised when somebody else's experiment would be changed, led or believed."""


def is_id(name: str) -> bool:
    """Whether a folder's name can be the id of an experiment of ours."""
    return _ID.fullmatch(name) is not None


def is_ours(folder: Path) -> bool:
    """Whether an experiment's folder is ours. Raises nothing."""
    return not why_foreign(folder)


def why_foreign(folder: Path) -> str:
    """Why an experiment's folder is somebody else's; empty if it is ours, or not there."""
    try:
        judged = [folder / name for name in _JUDGED]
        leads = [path.resolve() for path in judged if path.is_symlink()]
        for path in (folder, folder.resolve(), *judged, *leads):
            reason = _why(path)
            if reason:
                return reason
    except (OSError, RuntimeError) as error:  # no permission to look, or links in a circle
        return f"it cannot be looked at: {error}"
    return ""


def demand_ours(folder: Path) -> None:
    """Raise :class:`NotOurs` unless an experiment's folder is ours.

    On a file system that gives all files one owner, as FUSE and a squashing server do, the folder
    is ours if a file that we make there has the same owner; that is tried only where we own
    nothing by the numbers.
    """
    reason = why_foreign(folder)
    if reason and not _has_owner_of_new_files(folder):
        raise NotOurs(
            f"this is somebody else's experiment: {reason}",
            hint="only its owner can go on with it or change it; its path is enough to look at it, "
            f"as in: bequeath status {folder}",
            where=str(folder),
        )


def _why(path: Path) -> str:
    try:
        info = path.lstat()
    except FileNotFoundError:
        return ""
    if info.st_uid == os.geteuid():
        return ""
    if info.st_uid != 0:
        return f"{path} belongs to {_name_of(info.st_uid)}"
    if not stat.S_ISLNK(info.st_mode) and info.st_mode & _WRITABLE_FOR_OTHERS:
        return f"{path} belongs to root, and others may write to it"
    if not os.access(path, os.R_OK):
        return f"{path} belongs to root, and we may not read it"
    return ""


def _has_owner_of_new_files(folder: Path) -> bool:
    try:
        owner = folder.stat().st_uid
        with tempfile.NamedTemporaryFile(prefix=".bequeath-owner-", dir=folder) as file:
            if os.fstat(file.fileno()).st_uid != owner:
                return False
        there = [path for name in _JUDGED if os.path.lexists(path := folder / name)]
        return all({path.lstat().st_uid, path.stat().st_uid} == {owner} for path in there)
    except OSError:
        return False


def _name_of(uid: int) -> str:
    try:
        return f"{pwd.getpwuid(uid).pw_name} (user {uid})"
    except KeyError:
        return f"user {uid}"
