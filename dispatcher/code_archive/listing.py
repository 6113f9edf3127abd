"""Lists the files and folders that belong to a code folder, within limits."""

from __future__ import annotations

import os
import posixpath
import stat
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from dispatcher.code_archive.ignoring import (
    FILE_NAMES,
    Rules,
    below,
    built_in_rules,
    is_environment,
    rules_in,
    secret_rules,
)
from dispatcher.errors import UserError

MOST_FILES = 20_000
MOST_BYTES = 2 << 30

#: Entries after which nobody counts on: somebody named a home folder, or the root.
_MOST_SEEN = 200_000


class TooMuchCode(UserError):
    """Raised when a code folder holds more than may be sent; the text names what is largest."""


@dataclass(frozen=True)
class CodeEntry:
    """A file, folder or link. ``name`` is its path below the code folder, with slashes."""

    name: str
    path: Path
    kind: int  # stat.S_IFREG, S_IFDIR or S_IFLNK
    size: int = 0
    runs: bool = False  # executable by its owner
    link: str = ""  # the path that it leads to, relative to its folder


@dataclass(frozen=True)
class Listing:
    """All that belongs to the code, sorted by name.

    ``skipped`` are sockets, pipes and devices: nothing that could be sent. ``secrets`` are files
    and folders that are left out since they are likely to hold one.
    """

    folder: Path
    entries: tuple[CodeEntry, ...]
    skipped: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def files(self) -> int:
        """Number of files."""
        return sum(entry.kind == stat.S_IFREG for entry in self.entries)

    @property
    def nbytes(self) -> int:
        """Bytes of all files."""
        return sum(entry.size for entry in self.entries)


def scan_code(
    folder: Path,
    *,
    excluded: Iterable[Path] = (),
    most_files: int = MOST_FILES,
    most_bytes: int = MOST_BYTES,
    secrets: Iterable[Path] = (),
) -> Listing:
    """Look through a code folder; opens no file but those that say what to leave out.

    Args:
        folder: The code folder.
        excluded: Folders that never belong to it, such as that of the experiments.
        most_files: How many files there may be.
        most_bytes: How many bytes all files may have.
        secrets: Files that are known to hold a secret; those that usually do are left out anyway.
            A file of rules may take either back in.

    Raises:
        TooMuchCode: it holds more than that.
        UserError: a folder cannot be read, a link leads out of the code folder, or a file of
            rules cannot be understood.
    """
    root = Path(os.path.realpath(folder))
    left_out = {os.path.realpath(path) for path in excluded}
    entries: list[CodeEntry] = []
    skipped: list[CodeEntry] = []
    hidden = secret_rules(_names_below(root, folder, secrets))
    secret_names: list[str] = []
    rules = rules_in(root, "", below(built_in_rules(), hidden))
    try:
        for entry in _walk(root, rules, left_out, hidden, secret_names):
            (entries if entry.kind else skipped).append(entry)
            if len(entries) > _MOST_SEEN:
                raise _too_much(entries, f"more than {_MOST_SEEN:,} files and folders", folder)
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
        hint = f"is it code? if not, name it in {FILE_NAMES[-1]}"
        raise UserError(text, hint=hint, where=str(error.filename or folder)) from error
    entries.sort(key=lambda entry: entry.name.encode(errors="surrogateescape"))
    names = tuple(sorted(entry.name for entry in skipped))
    listing = Listing(root, tuple(entries), names, tuple(sorted(secret_names)))
    if listing.files > most_files:
        text = f"{listing.files:,} files, and {most_files:,} may be sent"
        raise _too_much(entries, text, folder, by_files=True)
    if listing.nbytes > most_bytes:
        text = f"{_size(listing.nbytes)}, and {_size(most_bytes)} may be sent"
        raise _too_much(entries, text, folder)
    return listing


def _names_below(root: Path, folder: Path, paths: Iterable[Path]) -> Iterator[str]:
    """Names below the code folder of paths that lie there, and of what they link to."""
    for path in paths:
        for one, above in ((os.path.realpath(path), root), (os.path.abspath(path), folder)):
            name = os.path.relpath(one, os.path.abspath(above))
            if name != ".." and not name.startswith("../"):
                yield name


def _walk(
    root: Path, rules: Rules, left_out: set[str], hidden: Rules, secret_names: list[str]
) -> Iterator[CodeEntry]:
    waiting = [(root, "", rules)]
    while waiting:
        folder, base, rules = waiting.pop()
        with os.scandir(folder) as entries:
            here = list(entries)
        for item in here:
            name = posixpath.join(base, item.name)
            is_folder = item.is_dir(follow_symlinks=False)
            if item.path in left_out:
                continue
            if rules.leaves_out(name, is_folder=is_folder):
                if hidden.leaves_out(name, is_folder=is_folder):
                    secret_names.append(name)
                continue
            if is_folder and is_environment(item.path):
                continue
            yield _entry(root, item, name)
            if is_folder:
                path = Path(item.path)
                waiting.append((path, name, rules_in(path, name, rules)))


def _entry(root: Path, item: os.DirEntry[str], name: str) -> CodeEntry:
    status = item.stat(follow_symlinks=False)
    kind = stat.S_IFMT(status.st_mode)
    path = Path(item.path)
    if kind == stat.S_IFLNK:
        return CodeEntry(name, path, kind, link=_within(root, path, name))
    if kind == stat.S_IFDIR:
        return CodeEntry(name, path, kind)
    if kind == stat.S_IFREG:
        return CodeEntry(name, path, kind, status.st_size, bool(status.st_mode & stat.S_IXUSR))
    return CodeEntry(name, path, 0)


def _within(root: Path, path: Path, name: str) -> str:
    """The target of a link, written so that it leads there on another machine as well."""
    text = str(path.readlink())
    real = os.path.realpath(path)
    place = posixpath.normpath(posixpath.join(posixpath.dirname(name), text))
    if real != str(root) and not real.startswith(f"{root}/"):
        raise UserError(
            f"leads out of the code folder, to {text}",
            hint=f"copy what it leads to, name the link in {FILE_NAMES[-1]}, or keep data where "
            "all machines see it",
            where=str(path),
        )
    if not text.startswith("/") and place != ".." and not place.startswith("../"):
        return text
    return os.path.relpath(real, path.parent)


def _too_much(
    entries: list[CodeEntry], text: str, folder: Path, *, by_files: bool = False
) -> TooMuchCode:
    """The error, with the folders and files directly below that weigh most."""
    weights: Counter[str] = Counter()
    for entry in entries:
        top, slash, _ = entry.name.partition("/")
        if entry.kind == stat.S_IFREG:
            weights[f"{top}{slash}"] += 1 if by_files else entry.size
    unit = (lambda n: f"{n:,} files") if by_files else _size
    largest = ", ".join(f"{name} ({unit(n)})" for name, n in weights.most_common(3))
    return TooMuchCode(
        f"the code folder holds {text}; the most is in {largest}",
        hint=f"name in {FILE_NAMES[-1]} what is no code (gitignore(5) has the rules)",
        where=str(folder),
    )


def _size(nbytes: int) -> str:
    for unit, one in (("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if nbytes >= one:
            return f"{nbytes / one:.1f} {unit}"
    return f"{nbytes} B"
