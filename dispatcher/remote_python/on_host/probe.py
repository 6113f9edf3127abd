"""The verb ``probe``: what a machine has, and whether its work folder is ours alone.

Modules are imported, since one that is there may be broken. Of packages only the version is
looked up: torch takes long to import.
"""

from __future__ import annotations

import errno
import importlib
import os
import shutil
import sys
import tempfile
import time
from typing import Any

from .facts import folder_trouble, python_facts

#: Folders of the work folder that have trees in them, known by their names.
FOLDERS = ("code", "runtime", "modules", "experiments")

#: No reason to take a folder for one that cannot be written.
_FULL = (errno.ENOSPC, errno.EDQUOT)

#: Programs that mount a store of objects, as the table of mounts names them.
OBJECTS = (
    *("blobfuse", "blobfuse2", "gcsfuse", "geesefs", "goofys", "mount-s3", "mountpoint-s3"),
    *("ossfs", "ossfs2", "rclone", "s3fs"),
)


def answer(arguments: dict[str, Any]) -> dict[str, Any]:
    """Look.

    Arguments: ``work_folder``; ``make``, whether to make it where it is missing; ``trees``, paths
    below it that are about to be used, whose times then show it (see ``tidy``); ``first`` and
    ``last``, digests of modules there that are searched before and after this Python's own;
    names of ``modules`` and ``packages``; and ``folders`` with the name of a file that must be in
    it already, an empty one for none, or null for a folder that is only read from.
    """
    folder = os.path.abspath(os.path.expanduser(arguments["work_folder"]))
    trees = os.path.join("modules", sys.implementation.cache_tag or "")
    used = [x for x in arguments["trees"] if os.path.lexists(os.path.join(folder, x))]
    trouble = work_folder_trouble(folder, [*FOLDERS, trees, *used], make=arguments["make"])
    brought = os.path.join(folder, trees)
    if not trouble:
        for name in used if arguments["make"] else []:
            _mark_used(os.path.join(folder, name))
        sys.path[:0] = [os.path.join(brought, x) for x in arguments["first"]]
        sys.path += [os.path.join(brought, x) for x in arguments["last"]]
    return {
        **facts_of_place(folder, trouble, arguments),
        "code": [] if trouble else names_in(os.path.join(folder, "code")),
        "runtime": [] if trouble else whole(os.path.join(folder, "runtime")),
        "modules": [] if trouble else names_in(brought),
        "folders": {
            path: look_at_folder(path, token) for path, token in arguments["folders"].items()
        },
    }


def facts_of_place(folder: str, trouble: str, asked: dict[str, Any]) -> dict[str, Any]:
    """Facts of this Python, its modules and the disk below a folder.

    Args:
        folder: the folder, absolute.
        trouble: why it cannot be used; empty if it can.
        asked: names of ``modules`` and ``packages``.
    """
    now = time.time()
    looked = {name: look_at_module(name) for name in asked["modules"]}
    return {
        "time": now,
        "python": python_facts(),
        "version": list(sys.version_info[:3]),
        "executable": sys.executable,
        "cores": os.cpu_count() or 0,
        "folder": folder,
        "folder_trouble": trouble,
        "free": free(folder),
        "missing": {name: missing for name, (missing, _) in looked.items()},
        "versions": {name: version for name, (missing, version) in looked.items() if not missing},
        "packages": {name: version_of(name) for name in asked["packages"]},
    }


def work_folder_trouble(folder: str, names: list[str], *, make: bool) -> str:
    """Why trees in the work folder may not be trusted, or cannot be put there; nothing if all is
    well.

    They are known by their names alone, which anybody can know: another user who made the folder
    before us, or can change it, could have our code replaced.

    Args:
        folder: the work folder, absolute.
        names: folders below it.
        make: whether to make what is missing. Without that it is only looked whether it could be.
    """
    try:
        for place in [folder, *[os.path.join(folder, name) for name in names]]:
            if not os.path.lexists(place) or place == folder:
                if make:
                    os.makedirs(place, 0o700, exist_ok=True)  # others may make it meanwhile
                elif place != folder:
                    continue
                elif not os.path.lexists(place):
                    return _cannot_be_made(folder)
            trouble = folder_trouble(place)
            if trouble:
                return trouble
        return _cannot_be_written(folder)
    except OSError as error:
        return f"{folder}: {error.strerror}"


def _cannot_be_made(folder: str) -> str:
    above = os.path.dirname(folder)
    while not os.path.lexists(above):
        above = os.path.dirname(above)
    trouble = folder_trouble(above, way=True)
    if not trouble and not os.access(above, os.W_OK | os.X_OK):
        trouble = f"{folder} cannot be made: no permission to write in {above}"
    return trouble


def _cannot_be_written(folder: str) -> str:
    try:
        with tempfile.TemporaryFile(dir=folder):
            return ""
    except OSError as error:
        return "" if error.errno in _FULL else f"{folder}: {error.strerror}"


def free(path: str) -> int:
    """Room where a folder is, or will be (bytes)."""
    while not os.path.isdir(path):
        path = os.path.dirname(path)
    return shutil.disk_usage(path).free


def look_at_module(name: str) -> tuple[str, str]:
    """Why a module cannot be imported, or nothing; and its version."""
    try:
        module = importlib.import_module(name)
        return "", str(getattr(module, "__version__", ""))
    except Exception as error:  # noqa: BLE001 - whatever it raises is what is wrong with it
        return f"{type(error).__name__}: {error}", ""


def version_of(package: str) -> str:
    """The installed version; empty if there is none."""
    from importlib.metadata import version

    try:
        return str(version(package))
    except Exception:  # noqa: BLE001 - it has none that we could know
        return ""


def names_in(folder: str) -> list[str]:
    """Names in a folder; nothing if there is none."""
    try:
        return sorted(os.listdir(folder))
    except OSError:
        return []


def whole(folder: str) -> list[str]:
    """Runtimes with our package in them: an unpacking that was cut short leaves none."""
    names = names_in(folder)
    return [x for x in names if os.path.isdir(os.path.join(folder, x, "trial_runtime"))]


def look_at_folder(path: str, token: str | None) -> dict[str, Any]:
    """Whether a folder is there, may be written, and is the one that is meant.

    Args:
        path: the folder; ``~`` stands for the home folder.
        token: the name of a file that is in it if it is that one; empty: any is. None: it is only
            read from.
    """
    path = os.path.abspath(os.path.expanduser(path))
    facts: dict[str, Any] = {"path": path, "there": os.path.isdir(path)}
    if not facts["there"]:
        return facts
    if token is None:
        facts["readable"] = os.access(path, os.R_OK | os.X_OK)
        return facts
    try:
        with tempfile.TemporaryFile(dir=path) as file:
            file.write(b"bequeath")
            file.flush()
        facts["writable"] = True
        facts["renames"] = rename_trouble(path)
    except OSError as error:
        facts["trouble"] = error.strerror or str(error)
    facts["same"] = bool(token) and os.path.exists(os.path.join(path, token))
    return facts


def rename_trouble(path: str, mountinfo: str = "/proc/self/mountinfo") -> str:
    """Why a file there does not take the place of another one at once, so that somebody else could
    see half of it; empty if it does. A store of objects behind a folder copies, or refuses.

    Args:
        path: the folder, which can be written.
        mountinfo: the kernel's table of mounts.
    """
    kind = objects_behind(path, mountinfo)
    if kind:
        return f"is mounted by {kind}, which renames no file at once"
    try:
        with tempfile.TemporaryDirectory(prefix=".bequeath-", dir=path) as own:
            name, new = os.path.join(own, "name"), os.path.join(own, "new")
            for each in (name, new):
                with open(each, "w") as file:
                    file.write(os.path.basename(each))
            with open(new) as file:
                os.replace(new, name)
                same = os.path.samestat(os.fstat(file.fileno()), os.stat(name))
            with open(name) as file:
                whole = file.read() == "new"
            return "" if same and whole else "copies a file where it is to be renamed"
    except OSError as error:
        return "" if error.errno in _FULL else f"renames no file: {error.strerror}"


def objects_behind(path: str, mountinfo: str) -> str:
    """The program that mounts a store of objects at a folder; empty: none does, or nobody says."""
    place, best, found = os.path.realpath(path) + "/", -1, ""
    try:
        with open(mountinfo, errors="surrogateescape") as lines:
            for line in lines:
                fields, _, rest = line.partition(" - ")
                point = fields.split(" ")[4].replace("\\040", " ").rstrip("/") + "/"
                if place.startswith(point) and len(point) >= best:
                    kind, source = rest.split(" ")[:2]
                    names = [kind.rpartition(".")[2], source]
                    best, found = len(point), next((x for x in names if x in OBJECTS), "")
    except (OSError, ValueError, IndexError):
        return ""
    return found


def _mark_used(folder: str) -> None:
    try:
        os.utime(folder)
    except OSError:
        pass
