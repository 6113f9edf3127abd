"""Whether a folder lies on a file system that several machines share.

SQLite in WAL mode maps a file into the memory of each reader; on a network file system
that memory is not shared between machines and locks may be lost with their server, so a
store there can be torn without anybody noticing.
"""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Final

from dispatcher.errors import StoreError

#: Set to 1 by somebody who knows that only one machine mounts the folder, and its risks.
OVERRIDE: Final = "BEQUEATH_ALLOW_NETWORK_STORE"

_MOUNTINFO: Final = Path("/proc/self/mountinfo")
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


def refuse_network_filesystem(
    folder: Path, *, allow: bool | None = None, mountinfo: Path = _MOUNTINFO
) -> None:
    """Raise ``StoreError`` if the folder lies on a network file system.

    Args:
        folder: an existing folder.
        allow: whether such a folder is taken all the same; by default what the environment
            variable :data:`OVERRIDE` says.
        mountinfo: where the kernel lists its mounts; another file in tests.
    """
    if allow is None:
        allow = os.environ.get(OVERRIDE) == "1"
    kind = filesystem_type(folder, mountinfo=mountinfo)
    if allow or kind is None or not is_network(kind):
        return
    raise StoreError(
        f"the store cannot lie on a network file system ({kind}): its locks and its shared "
        "memory do not work across machines, so the journal could be torn",
        hint="set experimentWorkingDirectory to a local disk of this machine; "
        "the weights root may stay on the network",
        where=str(folder),
    )


def is_network(kind: str) -> bool:
    """Whether a file system of this type, as the kernel spells it, is shared by machines."""
    kind = kind.lower()
    if kind.startswith("fuse."):
        return kind.removeprefix("fuse.") in _NETWORK_FUSE
    return kind in _NETWORK


def filesystem_type(folder: Path, *, mountinfo: Path = _MOUNTINFO) -> str | None:
    """The type of the file system that holds the folder; None where the kernel does not say.

    That is everywhere but Linux, so that a network store is refused on Linux only.
    """
    try:
        lines = mountinfo.read_text(encoding="utf-8", errors="surrogateescape").splitlines()
    except OSError:
        return None
    return type_of_mount(os.path.realpath(folder), lines)


def type_of_mount(path: str, lines: list[str]) -> str | None:
    """The type of the mount nearest above ``path`` in the lines of a mountinfo file.

    A later line covers an earlier one at the same place.
    """
    best: str | None = None
    best_length = -1
    for line in lines:
        fields, separator, rest = line.partition(" - ")
        words = fields.split(" ")
        if not separator or len(words) < 5:
            continue
        place = _OCTAL.sub(lambda m: chr(int(m[1], 8)), words[4])
        below = path == place or path.startswith(place.rstrip("/") + "/")
        if below and len(place) >= best_length:
            best, best_length = rest.split(" ", 1)[0], len(place)
    return best
