"""File systems by the names that kernels have for them: what they are, and whether shared."""

from __future__ import annotations

from typing import NamedTuple


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
    """The family of what a mount table calls it; what nobody knows counts as local.

    >>> kind_of("fuse.sshfs").network
    True
    """
    plain = name.lower()
    plain = plain[len("fuse.") :] if plain.startswith("fuse.") else plain
    return _KINDS.get(plain, Kind(name or "unknown", False))
