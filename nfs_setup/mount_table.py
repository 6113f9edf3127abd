"""Mounts of a machine, by its own /proc/self/mountinfo (proc(5)), and processes that use them."""

from __future__ import annotations

import re

from nfs_setup.errors import SetupError
from nfs_setup.host import Files
from nfs_setup.mounts import Mount

#: Processes that are named in an error; the rest is counted.
_MOST_NAMED = 5


def mounts(files: Files) -> list[Mount]:
    """Return all mounts, the oldest first. A mount over another hides it and comes later."""
    found = []
    for line in (files.read("/proc/self/mountinfo") or b"").decode("utf-8", "replace").splitlines():
        before, _, after = line.partition(" - ")
        fields, rest = before.split(" "), after.split(" ")
        if len(fields) < 6 or len(rest) < 3:
            continue
        options = tuple(dict.fromkeys([*fields[5].split(","), *rest[2].split(",")]))
        mount = Mount(_plain(rest[1]), _plain(fields[4]), rest[0], options, _plain(fields[3]))
        found.append(mount)
    return found


def mount_at(files: Files, point: str) -> Mount | None:
    """Return the mount that is seen exactly there; a waiting automount does not count."""
    found = [m for m in mounts(files) if m.point == point and m.kind != "autofs"]
    return found[-1] if found else None


def mount_above(files: Files, path: str) -> Mount | None:
    """Return the mount that a path lies on, there or not yet."""
    best: Mount | None = None
    for mount in mounts(files):
        below = path == mount.point or path.startswith(mount.point.rstrip("/") + "/")
        if below and (best is None or len(mount.point) >= len(best.point)):
            best = mount
    return best


def users_of(files: Files, point: str) -> list[str]:
    """Return ``PID (name)`` of processes with a file, a program or their folder on a mount.

    Sees all of them as root, one's own otherwise. Never touches the mount itself, which may
    hang.
    """
    found = []
    for pid in files.names("/proc"):
        if not pid.isdigit():
            continue
        links = [f"/proc/{pid}/{name}" for name in ("cwd", "root", "exe")]
        links += [f"/proc/{pid}/fd/{number}" for number in files.names(f"/proc/{pid}/fd")]
        if any(_below(files.link(link), point) for link in links) or _maps(files, pid, point):
            found.append(f"{pid} ({_text(files, f'/proc/{pid}/comm').strip() or '?'})")
    return found


def named(users: list[str]) -> str:
    """Return a text that names a few of many users."""
    more = len(users) - _MOST_NAMED
    return ", ".join(users[:_MOST_NAMED]) + (f" and {more} more" if more > 0 else "")


def _maps(files: Files, pid: str, point: str) -> bool:
    lines = _text(files, f"/proc/{pid}/maps").splitlines()
    return any(_below(_plain(line.split(None, 5)[-1]), point) for line in lines if line)


def _text(files: Files, path: str) -> str:
    """Return a file of a process; empty if it has ended meanwhile or may not be read."""
    try:
        return (files.read(path) or b"").decode("utf-8", "replace")
    except (OSError, SetupError):
        return ""


def _below(path: str | None, point: str) -> bool:
    return path is not None and (path == point or path.startswith(point + "/"))


def _plain(text: str) -> str:
    return re.sub(r"\\([0-7]{3})", lambda m: chr(int(m[1], 8)), text)
