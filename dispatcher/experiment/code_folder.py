"""The files of a code directory, and whether they are too much to copy, send or digest.

Files that a ``.bequeathignore`` leaves out do not count."""

from __future__ import annotations

import os
import posixpath
import shutil
from collections import Counter
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from dispatcher.code_archive.ignoring import built_in_rules, is_environment, rules_in
from dispatcher.experiment.quantities import format_size

MOST_SEEN = 100_000
"""Entries after which counting stops; the folder is probably a home folder."""


@dataclass(frozen=True, slots=True)
class FolderSize:
    """Measures of a code directory, links not followed.

    Attributes:
        entries: files and folders.
        size: bytes of all files.
        largest: the largest file and its bytes; None without files.
        fullest: the folder directly below with the most entries, and how many.
        complete: False if counting stopped at :data:`MOST_SEEN`.
    """

    entries: int
    size: int
    largest: tuple[Path, int] | None
    fullest: tuple[Path, int] | None
    complete: bool


def walk_code(folder: Path, excluded: Collection[Path] = ()) -> Iterator[os.DirEntry[str]]:
    """Yield the files and folders that belong to the code, in no order, links not followed.

    Raises:
        OSError: a folder cannot be read.
        UserError: a file of rules cannot be read.
    """
    left_out = {str(path) for path in excluded}
    waiting = [(str(folder), "", rules_in(folder, "", built_in_rules()))]
    while waiting:
        path, base, rules = waiting.pop()
        with os.scandir(path) as entries:
            for entry in entries:
                is_folder = entry.is_dir(follow_symlinks=False)
                name = posixpath.join(base, entry.name)
                if entry.path in left_out or rules.leaves_out(name, is_folder=is_folder):
                    continue
                if is_folder and is_environment(entry.path):
                    continue
                yield entry
                if is_folder:
                    waiting.append((entry.path, name, rules_in(Path(entry.path), name, rules)))


def measure(folder: Path, excluded: Collection[Path] = ()) -> FolderSize:
    """Count a code directory's entries and bytes; stops at :data:`MOST_SEEN` entries."""
    count = size = 0
    largest: tuple[Path, int] | None = None
    below: Counter[str] = Counter()
    for entry in walk_code(folder, excluded):
        count += 1
        parts = Path(entry.path).relative_to(folder).parts
        if len(parts) > 1:
            below[parts[0]] += 1
        if entry.is_file(follow_symlinks=False):
            taken = entry.stat(follow_symlinks=False).st_size
            size += taken
            if largest is None or taken > largest[1]:
                largest = (Path(entry.path), taken)
        if count >= MOST_SEEN:
            break
    fullest = None
    if below:
        name, held = below.most_common(1)[0]
        fullest = (folder / name, held)
    return FolderSize(count, size, largest, fullest, count < MOST_SEEN)


def too_large(folder: Path, measured: FolderSize, most_entries: int, most_bytes: int) -> str:
    """Return why a code directory is too large, naming the culprit; empty if it is not.

    Args:
        folder: the code directory.
        measured: its measures, from :func:`measure`.
        most_entries: bound of its files and folders.
        most_bytes: bound of its size in bytes.
    """
    if measured.entries > most_entries:
        more = "" if measured.complete else "at least "
        text = f"holds {more}{measured.entries:,} files and folders, {most_entries:,} are allowed"
        if measured.fullest is not None:
            path, held = measured.fullest
            text += f"; {path.relative_to(folder)}/ has {held:,} of them"
        return text
    if measured.size > most_bytes:
        text = f"holds {_rounded(measured.size)}, {format_size(most_bytes)} are allowed"
        if measured.largest is not None:
            path, taken = measured.largest
            text += f"; {path.relative_to(folder)} alone has {_rounded(taken)}"
        return text
    return ""


def _rounded(size: int) -> str:
    for unit, name in ((1 << 30, "gb"), (1 << 20, "mb"), (1 << 10, "kb")):
        if size >= unit:
            return f"{size / unit:.1f}{name}"
    return f"{size}b"


def copy_code(folder: Path, to: Path, excluded: Collection[Path] = ()) -> None:
    """Copy the files of a code directory; links stay links.

    Args:
        folder: the code directory.
        to: the copy, which must not exist yet.
        excluded: folders below the code directory that are no code.

    Raises:
        OSError: something cannot be read or written.
    """
    to.mkdir(parents=True)
    for entry in walk_code(folder, (*excluded, to)):
        target = to / Path(entry.path).relative_to(folder)
        target.parent.mkdir(parents=True, exist_ok=True)
        if entry.is_dir(follow_symlinks=False):
            target.mkdir(exist_ok=True)
        else:
            shutil.copy2(entry.path, target, follow_symlinks=False)
