"""File systems of paths by the kernel's table of mounts, and whether machines share them."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

MOUNTINFO: Final = Path("/proc/self/mountinfo")
_NETWORK: Final = frozenset(
    {
        "nfs", "nfs4", "cifs", "smb", "smb2", "smb3", "smbfs", "ncpfs", "afs", "coda", "9p",
        "ceph", "glusterfs", "lustre", "gpfs", "beegfs", "panfs", "pvfs2", "orangefs", "gfs2",
        "ocfs2", "moosefs", "davfs", "webdav", "afpfs", "virtiofs", "vboxsf", "vmhgfs", "prl_fs",
    }
)  # fmt: skip
# FUSE names its real kind after a dot. Plain "fuse" says nothing, and is let through.
_NETWORK_FUSE: Final = frozenset(
    {"sshfs", "s3fs", "gcsfuse", "glusterfs", "ceph", "juicefs", "rclone", "goofys", "beegfs",
     "moosefs", "mfs", "davfs", "cvmfs2", "vmhgfs-fuse", "blobfuse", "blobfuse2", "mount-s3"}
)  # fmt: skip
_OCTAL: Final = re.compile(r"\\([0-7]{3})")


def is_network(kind: str) -> bool:
    """Whether a file system of this type, as the kernel spells it, is shared by machines."""
    kind = kind.lower()
    if kind.startswith("fuse."):
        return kind.removeprefix("fuse.") in _NETWORK_FUSE
    return kind in _NETWORK


def filesystem_type(folder: str | os.PathLike[str], *, mountinfo: Path = MOUNTINFO) -> str | None:
    """The type of the file system that holds the folder; None where the kernel does not say.

    That is everywhere but Linux.
    """
    try:
        lines = mountinfo.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    return type_of_mount(os.path.realpath(folder), lines)


def network_type(folder: str | os.PathLike[str], *, mountinfo: Path = MOUNTINFO) -> str | None:
    """The type of the file system that holds the folder where machines share it, else None."""
    kind = filesystem_type(folder, mountinfo=mountinfo)
    return kind if kind is not None and is_network(kind) else None


def named_on_network(folder: str | os.PathLike[str], *, mountinfo: Path = MOUNTINFO) -> bool:
    """Whether a folder lies on a share by its spelling.

    Reads the kernel's table only, so that a server which is away blocks nobody. Links are not
    followed.
    """
    try:
        lines = mountinfo.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return False
    return is_network(type_of_mount(os.path.abspath(folder), lines) or "")


def unescaped(word: str) -> str:
    """A field of the table, which writes blanks and the like as octal numbers."""
    return _OCTAL.sub(lambda match: chr(int(match[1], 8)), word)


def type_of_mount(path: str, lines: list[str]) -> str | None:
    """The type of the mount nearest above ``path`` in the lines of a mountinfo file.

    A later line covers an earlier one at the same place.
    """
    best: str | None = None
    best_length = -1
    for line in lines:
        fields, separator, rest = line.partition(" - ")
        columns = fields.split(" ")
        if not separator or len(columns) < 5:
            continue
        place = unescaped(columns[4])
        below = path == place or path.startswith(place.rstrip("/") + "/")
        if below and len(place) >= best_length:
            best, best_length = rest.split(" ", 1)[0], len(place)
    return best
