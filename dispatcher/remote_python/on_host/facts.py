"""Facts of the Python that runs this, and of folders that only its user can change."""

from __future__ import annotations

import os
import stat
import sys
from typing import Any

#: Links on the way to a folder; the system follows as many.
MOST_LINKS = 40

#: The library of every driver of GPUs: under WSL there is no /dev/nvidiactl.
DRIVER = "libnvidia-ml.so.1"


def python_facts() -> dict[str, Any]:
    """Facts that decide which wheels fit, the tag that tells their folders apart, and the exit code
    of the user's prolog."""
    cpu = os.uname().machine
    libc, libc_version = "", [0, 0]
    try:
        libc, _, number = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        libc_version = [int(x) for x in number.split(".")[:2]]
    except (AttributeError, OSError, ValueError):
        libc = ""
    if not libc and os.path.exists(f"/lib/ld-musl-{cpu}.so.1"):
        libc, libc_version = "musl", [1, 2]
    threads = "t" if "t" in getattr(sys, "abiflags", "") else ""
    return {
        "implementation": sys.implementation.name + threads,
        "tag": sys.implementation.cache_tag,
        "cpu": cpu if sys.maxsize > 2**32 else "",
        "libc": libc,
        "libc_version": libc_version,
        "gpus": _has_driver(),
        "prolog": int(os.environ.get("BEQUEATH_PROLOG_ENDED") or 0),
    }


def _has_driver() -> bool:
    try:
        import ctypes

        ctypes.CDLL(DRIVER)
    except (ImportError, OSError):
        return os.path.exists("/dev/nvidiactl")
    return True


def folder_trouble(path: str, *, way: bool = False) -> str:
    """Why another user can change a folder, or put another one in its place; empty if it is ours,
    and so is the way to it. Raises ``OSError`` if it is not there.

    Args:
        path: the folder, absolute.
        way: it is only on the way to one of ours, as ``/tmp`` may be.
    """
    done, links = "/", 0
    left = path.split("/")[::-1]
    while left:
        name = left.pop()
        if name == "..":
            done = os.path.dirname(done)
        if name in ("", ".", ".."):
            continue
        place = os.path.join(done, name)
        status = os.lstat(place)
        if status.st_uid not in (0, os.getuid()):
            return f"{place} belongs to another user (uid {status.st_uid})"
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MOST_LINKS:
                return f"{path}: too many links"
            target = os.readlink(place)
            done = "/" if target.startswith("/") else done
            left += target.split("/")[::-1]
            continue
        trouble = _open_to_others(place, status, is_last=not (way or any(left)))
        if trouble:
            return trouble
        done = place
    return ""


def _open_to_others(place: str, status: os.stat_result, is_last: bool) -> str:
    """Why others can change a folder. In one such as /tmp they may not rename our entries."""
    if not stat.S_ISDIR(status.st_mode):
        return f"{place} is no folder"
    if is_last and status.st_uid != os.getuid():
        return f"{place} belongs to another user (uid {status.st_uid})"
    sticky = status.st_mode & stat.S_ISVTX and not is_last
    others = status.st_mode & stat.S_IWOTH
    group = status.st_mode & stat.S_IWGRP and not _is_of_one_user(status)
    if (others or group) and not sticky:
        return f"{place} can be changed by other users (mode {stat.S_IMODE(status.st_mode):o})"
    return ""


def _is_of_one_user(status: os.stat_result) -> bool:
    """Whether a folder's group is that of its owner alone, as many systems make one for each."""
    try:
        import grp
        import pwd

        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except (ImportError, KeyError):
        return False
    alone = set(group.gr_mem) <= {owner.pw_name}
    return alone and owner.pw_gid == group.gr_gid and owner.pw_name == group.gr_name
