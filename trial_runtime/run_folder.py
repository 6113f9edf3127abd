"""The folder for sockets and session files of one experiment on one host."""

from __future__ import annotations

import os
import stat
from hashlib import blake2s
from pathlib import Path


class NotOurs(PermissionError):
    """What lies where the folder belongs is somebody else's, or no folder."""

    def __init__(self, path: Path) -> None:
        super().__init__(13, "is not a folder of ours", str(path))


def run_folder_below(base: Path, experiment: Path) -> Path:
    """Make it, unless it is there: private, short, and the same each time.

    Short, since the path of a socket is limited to about a hundred bytes.

    Args:
        base: a folder in which others may write, too.
        experiment: the experiment's folder on this host.

    Raises:
        NotOurs: see there; nothing in it is touched.
        OSError: it cannot be made.
    """
    ours = base / f"bequeath-{os.getuid()}"
    name = blake2s(os.fsencode(experiment.resolve()), digest_size=6).hexdigest()
    folder = ours / name
    for path in (ours, folder):
        path.mkdir(mode=0o700, exist_ok=True)
        info = path.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise NotOurs(path)
        if info.st_mode & 0o077:
            path.chmod(0o700)
    return folder
