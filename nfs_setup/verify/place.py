"""Place of a share: the machine, the mount and its kind, and a folder of one's own there."""

from __future__ import annotations

import os
import shutil
import socket
import stat
import time
from typing import Any, NamedTuple

from nfs_setup.exports import read_exports
from nfs_setup.host import Files
from nfs_setup.local_host import LocalHost
from nfs_setup.mount_table import mount_above
from nfs_setup.mounts import Mount, advice_on
from nfs_setup.verify.facts import Begun, Failure, Laid, MachineFacts, Moment, Probes, Surroundings
from nfs_setup.verify.files import is_ours, put
from nfs_setup.verify.findings import Finding, Level, meaning_of
from nfs_setup.walk import widen


class Kind(NamedTuple):
    """A family of file systems, as people call it."""

    name: str
    network: bool
    remark: str = ""  # what is different there, to know when figures are read


_TIMES = "clients set times by their own clocks"
_OBJECTS = "objects behind a folder: renames copy, and locks are each machine's own"

_KINDS: dict[str, Kind] = {
    "nfs": Kind("NFS", True),
    "nfs4": Kind("NFS", True),
    "lustre": Kind("Lustre", True, f"{_TIMES}; locks need the mount option 'flock'"),
    "ceph": Kind("CephFS", True, _TIMES),
    "gpfs": Kind("GPFS (Spectrum Scale)", True),
    "beegfs": Kind("BeeGFS", True, f"{_TIMES}; locks need tuneUseGlobalFileLocks"),
    "glusterfs": Kind("GlusterFS", True, _TIMES),
    "cifs": Kind("SMB", True, "owners and modes are those that the mount says"),
    "smb3": Kind("SMB", True, "owners and modes are those that the mount says"),
    "smbfs": Kind("SMB", True, "owners and modes are those that the mount says"),
    "afs": Kind("AFS", True, "permissions are those of folders"),
    "9p": Kind("9p", True, "of a virtual machine or container: see the host's own mount"),
    "virtiofs": Kind("virtiofs", True, "of a virtual machine: see the host's own mount"),
    "ocfs2": Kind("OCFS2", True),
    "gfs2": Kind("GFS2", True),
    "sshfs": Kind("sshfs", True, "locks and caches are each machine's own"),
    "juicefs": Kind("JuiceFS", True),
    "s3fs": Kind("s3fs", True, _OBJECTS),
    "gcsfuse": Kind("gcsfuse", True, _OBJECTS),
    "rclone": Kind("rclone", True, _OBJECTS),
    "goofys": Kind("goofys", True, _OBJECTS),
    "mount-s3": Kind("mount-s3", True, _OBJECTS),
    "tmpfs": Kind("memory", False, "gone after a restart"),
    "ramfs": Kind("memory", False, "gone after a restart"),
}


def kind_of(name: str) -> Kind:
    """Return the family of a type of mounts; what nobody knows counts as local.

    >>> kind_of("fuse.sshfs").network
    True
    """
    plain = name.lower()
    plain = plain[len("fuse.") :] if plain.startswith("fuse.") else plain
    return _KINDS.get(plain, Kind(name or "unknown", False))


#: What exportfs keeps of everything that is exported right now; all may read it on Debian.
EXPORTED = "/var/lib/nfs/etab"

#: Seconds after which a folder of a verification that died is nobody's.
_OLD_S = 3600.0

_POLL_S = 0.05


def look(path: str) -> Surroundings:
    """Look at the machine and the share; at the share first, since that mounts an automount."""
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
        exports=() if network else exports_of(files, real),
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
    """Return the time by this machine's clock."""
    return Moment(time.time())


PROBES: Probes = {"look": look, "begin": begin, "end": end, "now": now}


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


def exports_of(files: Files, path: str) -> tuple[str, ...]:
    """Return ``client(options)`` of everything that exports a folder or one above it."""
    try:
        content = files.read(EXPORTED) or b""
    except OSError:
        return ()
    exports = [
        f"{export.client}({export.options})"
        for export in read_exports(content)
        if path == export.path or path.startswith(export.path.rstrip("/") + "/")
    ]
    return tuple(dict.fromkeys(exports))


def _remove_leftovers(path: str, before: float) -> int:
    """Remove folders of verifications that were killed, by the clock of the files' server."""
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


#: Options that are worth a word in the table.
_TELLING = ("rw", "ro", "vers", "hard", "soft", "softerr", "sec", "proto", "nconnect", "noac",
            "actimeo", "acregmin", "acregmax", "acdirmin", "acdirmax", "lookupcache", "local_lock",
            "flock", "localflock", "cache")  # fmt: skip


def judge_mount(machine: MachineFacts) -> list[Finding]:
    """Return one line for the file system, and one for each option that costs something."""
    around = machine.surroundings
    if around is None or isinstance(around, Failure):
        text, change = meaning_of(around) if around else ("it was not looked at", "")
        return [Finding("share", machine.name, Level.WRONG, f"{machine.path}: {text}", change)]
    if around.found != "folder":
        what = "is no folder" if around.found == "other" else "is not there"
        change = "mount the share, or name the folder where it is mounted"
        return [Finding("share", machine.name, Level.WRONG, f"{machine.path} {what}", change)]
    kind = kind_of(around.kind)
    text = f"{kind.name}, {around.device} at {around.point}"
    telling = [o for o in around.options if o.partition("=")[0] in _TELLING]
    text += f" ({','.join(telling)})" if telling and kind.network else ""
    text += f"; {kind.remark}" if kind.remark else ""
    lines = [Finding("share", machine.name, Level.PASSES, text)]
    mount = Mount(around.device, around.point, around.kind, around.options)
    for advice in advice_on(mount):
        meant = mount.kind in ("tmpfs", "ramfs") and "memory" in advice.text
        level = Level.WRONG if advice.level == "trouble" and not meant else Level.NOTE
        lines.append(_advised(machine.name, level, advice.text))
    if around.kind == "lustre" and not {"flock", "localflock"} & set(around.options):
        lines.append(_advised(machine.name, Level.NOTE, "no 'flock': locks do not work"))
    return lines + _exported(machine.name, around)


def _advised(where: str, level: Level, text: str) -> Finding:
    seen, _, change = text.partition("; ")
    return Finding("mount options", where, level, seen, change)


def _exported(where: str, around: Surroundings) -> list[Finding]:
    """Judge exports, on the machine that has them; nobody else can see these."""
    lines = []
    for export in around.exports:
        client, _, rest = export.partition("(")
        options = rest.rstrip(")").split(",")
        if "async" in options:
            text = f"async for {client}: a crash of this server loses what clients believe written"
            change = "export it 'sync'"
            lines.append(Finding("export", where, Level.WRONG, text, change))
        if "no_root_squash" in options:
            lines.append(_open(where, f"no_root_squash for {client}: root there is root here"))
        if client == "*":
            lines.append(_open(where, "to everybody who can reach this machine ('*')"))
        if not {"async", "no_root_squash"} & set(options) and client != "*":
            lines.append(Finding("export", where, Level.PASSES, f"to {client}, synchronously"))
    return lines


def _open(where: str, text: str) -> Finding:
    change = "export it to named machines with root_squash, unless it is meant"
    return Finding("export", where, Level.NOTE, text, change)
