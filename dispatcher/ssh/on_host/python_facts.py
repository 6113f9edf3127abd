"""Facts of the Python that runs this, and of folders that only its user can change: programs of
other files begin with this part.

Written for any Python 3, so that one that is too old can report it.
"""

import os
import stat
import sys

#: Links on the way to a folder; the system follows as many.
MOST_LINKS = 40

#: The library of every driver of GPUs: under WSL there is no /dev/nvidiactl.
DRIVER = "libnvidia-ml.so.1"


def python_facts() -> dict:  # type: ignore[type-arg]
    """Facts that decide which wheels fit, the tag that tells their folders apart, and the exit code
    of the user's prolog."""
    cpu = os.uname().machine
    libc, libc_version = "", [0, 0]
    try:
        libc, _, number = (os.confstr("CS_GNU_LIBC_VERSION") or "").partition(" ")
        libc_version = [int(x) for x in number.split(".")[:2]]
    except (AttributeError, OSError, ValueError):
        libc = ""
    if not libc and os.path.exists("/lib/ld-musl-%s.so.1" % cpu):  # noqa: UP031
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


def folder_trouble(path: str) -> str:
    """Why another user can change a folder, or put another one in its place; empty if it is ours,
    and so is the way to it. Raises ``OSError`` if it is not there."""
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
            return "%s belongs to another user (uid %d)" % (place, status.st_uid)  # noqa: UP031
        if stat.S_ISLNK(status.st_mode):
            links += 1
            if links > MOST_LINKS:
                return "%s: too many links" % path  # noqa: UP031
            target = os.readlink(place)
            done = "/" if target.startswith("/") else done
            left += target.split("/")[::-1]
            continue
        trouble = _open_to_others(place, status, is_last=not any(left))
        if trouble:
            return trouble
        done = place
    return ""


def _open_to_others(place, status, is_last) -> str:  # type: ignore[no-untyped-def]
    """Why others can change a folder. In one such as /tmp they may not rename our entries."""
    if not stat.S_ISDIR(status.st_mode):
        return "%s is no folder" % place  # noqa: UP031
    if is_last and status.st_uid != os.getuid():
        return "%s belongs to another user (uid %d)" % (place, status.st_uid)  # noqa: UP031
    sticky = status.st_mode & stat.S_ISVTX and not is_last
    others = status.st_mode & stat.S_IWOTH
    group = status.st_mode & stat.S_IWGRP and not _is_of_one_user(status)
    if (others or group) and not sticky:
        mode = stat.S_IMODE(status.st_mode)
        return "%s can be changed by other users (mode %o)" % (place, mode)  # noqa: UP031
    return ""


def _is_of_one_user(status) -> bool:  # type: ignore[no-untyped-def]
    """Whether a folder's group is that of its owner alone, as many systems make one for each."""
    try:
        import grp
        import pwd

        owner, group = pwd.getpwuid(status.st_uid), grp.getgrgid(status.st_gid)
    except (ImportError, KeyError):
        return False
    alone = set(group.gr_mem) <= {owner.pw_name}
    return alone and owner.pw_gid == group.gr_gid and owner.pw_name == group.gr_name
