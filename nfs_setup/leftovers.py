"""Folders in which the NFS services keep their state; package managers leave them behind."""

from __future__ import annotations

from nfs_setup.host import Host
from nfs_setup.mount_table import mounts

#: Each comes with the packages, and holds nothing of anybody else's.
_FOLDERS = ("/var/lib/nfs",)


def missing_folders(host: Host) -> list[str]:
    """State folders that are not there, before packages are installed."""
    return [folder for folder in _FOLDERS if host.stat(folder) is None]


def remove_leftovers(host: Host, missing: list[str]) -> str:
    """Remove the folders that were missing before, and all that is in them. No link is followed.

    Returns:
        Why one was kept; an empty text if none was.
    """
    for folder in missing:
        inside = [m.point for m in mounts(host) if f"{m.point}/".startswith(f"{folder}/")]
        if inside:
            return f"{folder} stays: {inside[0]} is mounted in it"
        if folder in _FOLDERS:  # a ledger that somebody edited removes nothing else
            _remove(host, folder)
    return ""


def _remove(host: Host, path: str) -> None:
    found = host.stat(path)
    if found is None:
        return
    if found.kind != "folder":
        host.remove(path)
        return
    for name in host.names(path):
        _remove(host, f"{path}/{name}")
    host.remove_folder(path)
