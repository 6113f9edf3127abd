"""Files that lie nowhere but in an experiment: code and data of a notebook."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Mapping
from pathlib import Path

from trial_runtime import durable_file

#: Experiments beside this one in which equal data is looked for.
MOST_NEIGHBOURS = 1_000


def write_files(files: Mapping[str, str | bytes], folder: Path) -> None:
    """Write files into an experiment's folder.

    Data comes whole or not at all, and for its owner only. Equal data of an experiment beside this
    one is not written again: both have one file, by a hard link.

    Args:
        files: texts of code, and contents of data that never change, by their paths.
        folder: of the experiment.

    Raises:
        OSError: they cannot be written.
    """
    neighbours: dict[str, list[Path]] = {}
    for name, content in files.items():
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if isinstance(content, str):
            path.write_text(content, encoding="utf-8")
            continue
        inner = os.path.dirname(name)
        if inner not in neighbours:
            neighbours[inner] = _with_folder(inner, folder)
        if not any(_linked(other / path.name, content, path) for other in neighbours[inner]):
            durable_file.replace(path, content)


def _with_folder(inner: str, folder: Path) -> list[Path]:
    """List the folders of this name in experiments beside this one."""
    with contextlib.suppress(OSError):
        beside = [each for each in os.scandir(folder.parent) if each.name != folder.name]
        places = [Path(each.path, inner) for each in beside[:MOST_NEIGHBOURS]]
        return [each for each in places if each.is_dir()]
    return []


def _linked(there: Path, content: bytes, path: Path) -> bool:
    """Link to a file if it is ours and has this content."""
    try:
        known = os.lstat(there)
        if not stat.S_ISREG(known.st_mode) or stat.S_IMODE(known.st_mode) != 0o600:
            return False
        if known.st_uid != os.geteuid() or known.st_size != len(content):
            return False
        if there.read_bytes() != content:
            return False
        os.link(there, path)
    except OSError:  # it went away, or there are no links here: it is written
        return False
    return True
