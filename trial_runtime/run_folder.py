"""The folder for sockets and session files of one experiment on one host."""

from __future__ import annotations

import os
import stat
import tempfile
from hashlib import blake2s
from pathlib import Path

from trial_runtime import durable_file
from trial_runtime.errors import BequeathError


class RunFolderTaken(BequeathError):
    """Raised when the folder's place is taken by somebody else's folder, or by no folder."""

    def __init__(self, path: Path) -> None:
        super().__init__("is not a folder of ours", where=str(path))


#: In the experiment's folder: where the folder is if somebody else's was in the usual place.
RECORD = "run_folder"


def run_folder_below(base: Path, experiment: Path) -> Path:
    """Make the folder, unless it is there: private, short, and the same each time.

    Short, since the path of a socket is limited to about a hundred bytes. Where somebody else's
    folder is in the way, one by a name of chance is made and noted in the experiment's folder: in a
    place where all may write, nobody can keep us from having one.

    Args:
        base: a folder in which others may write, too, such as ``/tmp``.
        experiment: the experiment's folder on this host.

    Raises:
        RunFolderTaken: somebody else's is in the way, and there is no folder of the experiment to
            note another one in; nothing in it is touched.
        OSError: it cannot be made.
    """
    noted = _noted(experiment)
    if noted is not None:
        return noted
    try:
        return _usual(base, experiment)
    except RunFolderTaken:
        if not experiment.is_dir():
            raise
    made = tempfile.mkdtemp(prefix="bequeath-", dir=base)
    content = os.fsencode(f"{made}\0{experiment.resolve()}")
    durable_file.replace(experiment / RECORD, content, durable=False)
    noted = _noted(experiment)  # another process of ours may just have noted its own
    if noted is None or noted == Path(made):
        return Path(made)
    os.rmdir(made)
    return noted


def is_private(folder: Path) -> bool:
    """Whether a path is a folder, no link, that is ours and closed to all others."""
    try:
        info = folder.lstat()
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid() and not info.st_mode & 0o077


def _usual(base: Path, experiment: Path) -> Path:
    ours = base / f"bequeath-{os.getuid()}"
    name = blake2s(os.fsencode(experiment.resolve()), digest_size=6).hexdigest()
    folder = ours / name
    for path in (ours, folder):
        try:
            path.mkdir(mode=0o700, exist_ok=True)
        except FileExistsError:  # no folder, or a link that leads nowhere
            raise RunFolderTaken(path) from None
        info = path.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise RunFolderTaken(path)
        if info.st_mode & 0o077:
            path.chmod(0o700)
    return folder


def _noted(experiment: Path) -> Path | None:
    """The folder that was noted, if it is still there, and ours.

    None in a copy of the experiment's folder, which must not share the sockets of the original.
    """
    try:
        with open(experiment / RECORD, "rb") as file:
            name, _, noted_by = os.fsdecode(file.read(1 << 14)).partition("\0")
    except OSError:
        return None
    folder = Path(name)
    if noted_by != str(experiment.resolve()) or not folder.is_absolute():
        return None
    return folder if is_private(folder) else None
