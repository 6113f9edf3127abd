"""Place of a share: the machine, the mount, the room, and the owner of files there."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import time
from typing import Any

from nfs_setup.exports_reader import read_exports
from nfs_setup.host import Files
from nfs_setup.local_host import LocalHost
from nfs_setup.mount_table import mount_above
from nfs_setup.verify.facts import Begun, Laid, Moment, Surroundings
from nfs_setup.verify.files import is_ours, put
from nfs_setup.verify.kinds import kind_of
from nfs_setup.walk import widen

#: What exportfs keeps of everything that is exported right now; all may read it on Debian.
_EXPORTED = "/var/lib/nfs/etab"

#: Seconds after which a folder of a verification that died is nobody's.
_OLD_S = 3600.0

_POLL_S = 0.05


def look(path: str) -> Surroundings:
    """The machine and the share. Looks at the share first: that is what mounts an automount."""
    files = LocalHost()
    try:
        status = os.stat(path)
    except (FileNotFoundError, NotADirectoryError):
        status = None
    real = os.path.realpath(path)
    mount = mount_above(files, real)
    room = os.statvfs(path) if status is not None else None
    network = mount is not None and kind_of(mount.kind).network
    return Surroundings(
        host=socket.gethostname(),
        uid=os.geteuid(),
        gid=os.getegid(),
        found=_kind(status),
        owner=status.st_uid if status else 0,
        group=status.st_gid if status else 0,
        mode=stat.S_IMODE(status.st_mode) if status else 0,
        kind=mount.kind if mount else "",
        device=mount.device if mount else "",
        point=mount.point if mount else "",
        options=mount.options if mount else (),
        exports=() if network else _exports_of(files, real),
        total_bytes=room.f_blocks * room.f_frsize if room else 0,
        free_bytes=room.f_bavail * room.f_frsize if room else 0,
        inodes=room.f_files if room else 0,
        inodes_free=room.f_favail if room else 0,
    )


def begin(path: str, name: str, own: str, make: bool, limit_s: float) -> Begun:
    """Make the folder of this verification, or wait for ``limit_s`` until the one that another
    machine has made shows here; and in it one for this machine with a small file.

    Removes what verifications that died have left behind, an hour after.

    Args:
        path: the share, as this machine has it.
        name: the name of the verification's folder.
        own: the name of this machine's folder in it.
        make: whether this machine makes it.
        limit_s: seconds to wait for it otherwise.

    Raises:
        FileNotFoundError: if the other machine's folder does not show.
    """
    folder = os.path.join(path, name)
    if make:
        os.mkdir(folder, 0o770)
        # Whatever the umask: the other machines may run as other users of the same group.
        widen(path, name, 0o070)
    else:
        _wait_for(folder, limit_s)
    parent = os.stat(path)
    mine = os.path.join(folder, own)
    os.mkdir(mine, 0o770)
    widen(folder, own, 0o070)
    put(os.path.join(mine, "mine"), os.urandom(1024))
    before = time.time()
    # By the clock of the server of the files, where that is another machine.
    os.utime(mine, follow_symlinks=False)
    after = time.time()
    made = os.stat(mine)
    file = os.stat(os.path.join(mine, "mine"))
    return Begun(
        uid=file.st_uid,
        gid=file.st_gid,
        parent_set_gid=bool(parent.st_mode & stat.S_ISGID),
        set_gid=bool(os.stat(folder).st_mode & stat.S_ISGID),
        parent_gid=parent.st_gid,
        ahead_least_s=made.st_mtime - after,
        ahead_most_s=made.st_mtime - before,
        leftovers=_remove_leftovers(path, made.st_mtime - _OLD_S),
    )


def end(path: str, name: str) -> Laid:
    """Remove the folder of this verification, whoever made what in it."""
    began = time.monotonic()
    shutil.rmtree(os.path.join(path, name))
    return Laid(time.monotonic() - began)


def now() -> Moment:
    """The time by this machine's clock."""
    return Moment(time.time())


def _wait_for(folder: str, limit_s: float) -> None:
    last = time.monotonic() + limit_s
    while True:
        try:
            os.stat(folder)
        except FileNotFoundError:
            if time.monotonic() > last:
                raise
        else:
            return
        time.sleep(_POLL_S)


def _kind(status: Any) -> str:
    if status is None:
        return "nothing"
    return "folder" if stat.S_ISDIR(status.st_mode) else "other"


def _exports_of(files: Files, path: str) -> tuple[str, ...]:
    """``client(options)`` of everything that exports a folder or one above it."""
    try:
        content = files.read(_EXPORTED) or b""
    except OSError:
        return ()
    exports = [
        f"{export.client}({export.options})"
        for export in read_exports(content)
        if path == export.path or path.startswith(export.path.rstrip("/") + "/")
    ]
    return tuple(dict.fromkeys(exports))


def _remove_leftovers(path: str, before: float) -> int:
    """Folders of verifications that were killed, by the clock of the files' server."""
    removed = 0
    for name in os.listdir(path):
        if not is_ours(name):
            continue
        old = os.path.join(path, name)
        try:
            if os.lstat(old).st_mtime < before:
                shutil.rmtree(old)  # follows no link
                removed += 1
        except OSError:
            pass  # somebody else's, or gone meanwhile
    return removed
