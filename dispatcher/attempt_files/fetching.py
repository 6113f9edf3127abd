"""Fetching of an attempt's files from another machine: whole, confined to a folder, and bounded.

A file appears under its name when all of it is there. A fetch that was cut short goes on where it
ended, as long as the file there is the same; one that changes meanwhile is begun anew. No answer
of the other side leads out of the folder.
"""

from __future__ import annotations

import errno
import fcntl
import fnmatch
import hashlib
import os
import shutil
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from pathlib import Path
from typing import BinaryIO

from dispatcher.attempt_files.fetched import Fetched
from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.ports import AttemptFiles, FileEntry
from trial_runtime.attempt_folder import is_stream
from trial_runtime.errors import PathError
from trial_runtime.weights.storage import confined

#: Kinds of files that an attempt may leave: its output, the files it kept, its working directory,
#: and its trial's checkpoints.
KINDS = ("logs", "artefacts", "work", "checkpoints")

#: Files of one attempt that are looked at, and bytes of one read.
MOST_FILES = 10_000
CHUNK_BYTES = 4 << 20

#: How often a file is begun anew that changes while it is read.
TRIES = 3

_UNFINISHED = ".fetching"
_LONGEST_PATH = 4096


class ChangesMeanwhile(Exception):
    """A file is written to faster than it can be read."""


@dataclass
class FetchResult:
    """The result of a fetch: names that were fetched, the bytes that this took, how many files were
    here already, and why others were left."""

    fetched: list[str] = field(default_factory=list)
    nbytes: int = 0
    same: int = 0
    left: dict[str, str] = field(default_factory=dict)
    cut: bool = False  # there are more files than are looked at


def kind_of(path: str) -> str:
    """Return the one of :data:`KINDS` that a file belongs to."""
    top, below, _ = path.partition("/")
    return top if below and top in KINDS else "logs"


def matches(path: str, patterns: Collection[str]) -> bool:
    """Whether one of them means this file; the name of a folder means all that is in it."""
    return any(
        fnmatch.fnmatchcase(path, p) or path.startswith(p.rstrip("/") + "/") for p in patterns
    )


def why_refused(path: str) -> str:
    """Return why a name from another machine is refused here; empty if it is a good one."""
    names = path.split("/")
    if "\0" in path or any(name in ("", ".", "..") for name in names):
        return "leads out of its folder"
    try:
        if len(os.fsencode(path)) > _LONGEST_PATH or max(len(os.fsencode(x)) for x in names) > 255:
            return "its name is too long"
    except UnicodeEncodeError:
        return "has a name that no file can have"
    if len(names) == 1 and not is_stream(path):
        return "is nothing that an attempt leaves"
    return "" if len(names) == 1 or names[0] in KINDS[1:] else "is nothing that an attempt leaves"


def fetch(
    files: AttemptFiles,
    into: Path,
    attempt: str,
    wanted: Callable[[FileEntry], bool],
    *,
    most_bytes: int | None = None,
    over: Collection[str] = (),
    progress: Callable[[str, int, int], None] = lambda path, have, size: None,
) -> FetchResult:
    """Fetch files into a folder here. Blocks.

    Args:
        files: the attempt's, on its machine.
        into: the folder; made if it is not there.
        attempt: ``3.1``.
        wanted: whether to fetch a file.
        most_bytes: of all together; files that do not fit are left. None: no limit.
        over: kinds that are complete with this fetch, since the attempt has ended.
        progress: called with path, bytes so far and bytes in all, as it goes on.

    Raises:
        PassingBackendError: no room here; or the place is not to be reached. What was fetched
            is here, and another call goes on.
        PermanentBackendError: the folder cannot be written.
    """
    listing = files.list(most=MOST_FILES)
    entries = [each for each in listing.entries if wanted(each) and not each.link]
    outcome = FetchResult(cut=listing.cut)
    if not entries and not into.exists():
        return outcome
    try:
        into.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise _here(error, into) from error
    root = os.path.realpath(into)
    record = Fetched.read(into, attempt)
    record.place = files.place
    left_bytes = most_bytes
    try:
        for entry in entries:
            why = why_refused(entry.path)
            if not why and _is_here(root, entry, record):
                outcome.same += 1
            elif not why and left_bytes is not None and entry.size > left_bytes:
                why = f"{entry.size:,} bytes are more than may be fetched"
            elif not why:
                why, count = _fetch_one(files, entry, root, record, progress)
                outcome.nbytes += count
                if not why:
                    outcome.fetched.append(entry.path)
            if left_bytes is not None and not why:
                left_bytes -= entry.size
            if why:
                outcome.left[entry.path] = why
                record.left[entry.path] = why
            else:
                record.left.pop(entry.path, None)
        record.kinds = sorted({*record.kinds, *over})
    finally:
        try:
            record.write(into)
            os.rmdir(into / _UNFINISHED)
        except OSError:
            pass  # more is under way there; or there is no room, and an error was raised
    return outcome


def _is_here(root: str, entry: FileEntry, record: Fetched) -> bool:
    if record.files.get(entry.path) != entry.version:
        return False
    try:
        info = os.lstat(os.path.join(root, entry.path))
    except OSError:
        return False
    return info.st_size == entry.size


def _fetch_one(
    files: AttemptFiles,
    entry: FileEntry,
    root: str,
    record: Fetched,
    progress: Callable[[str, int, int], None],
) -> tuple[str, int]:
    """Fetch a file; return why it was not fetched, or an empty text, and how many bytes came."""
    above, name = os.path.split(os.path.join(root, entry.path))
    try:
        with (
            confined.folder(os.path.join(root, _UNFINISHED), make=True) as drafts,
            confined.folder(above, make=True) as place,
        ):
            draft = _Draft(drafts, files, entry, progress)
            version = draft.complete()
            os.replace(draft.name, name, src_dir_fd=drafts, dst_dir_fd=place)
    except ChangesMeanwhile as error:
        return str(error), 0
    except (PathError, PermanentBackendError) as error:
        return error.message, 0
    except OSError as error:
        if error.errno in (errno.ENOSPC, errno.EDQUOT):
            shutil.rmtree(os.path.join(root, _UNFINISHED), ignore_errors=True)
            raise _here(error, Path(root)) from error
        return error.strerror or str(error), 0
    record.files[entry.path] = version
    record.begins.pop(entry.path, None)
    return "", draft.came


class _Draft:
    """A file on its way, under a name made of its path and version."""

    def __init__(
        self,
        folder: int,
        files: AttemptFiles,
        entry: FileEntry,
        progress: Callable[[str, int, int], None],
    ) -> None:
        self._folder = folder
        self._files = files
        self._path = entry.path
        self._grows = kind_of(entry.path) == "logs"  # what was written stays as it is
        self._version = entry.version
        self._progress = progress
        self.name = ""
        self.came = 0

    def complete(self) -> str:
        """Fetch all of it; return its version. Raises ``ChangesMeanwhile``."""
        for _ in range(TRIES):
            marked = f"{self._path}\0{self._version}".encode(errors="surrogateescape")
            self.name = hashlib.blake2s(marked, digest_size=16).hexdigest()
            with self._opened() as file:
                if self._read_into(file.fileno()):
                    return self._version
            os.unlink(self.name, dir_fd=self._folder)
        raise ChangesMeanwhile("changes while it is fetched")

    def _opened(self) -> BinaryIO:
        """Open it for us alone: another process may fetch the same."""
        flags = os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(self.name, flags, 0o644, dir_fd=self._folder)
        file = open(descriptor, "wb")  # noqa: SIM115 - closed by the caller
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            named = os.stat(self.name, dir_fd=self._folder, follow_symlinks=False)
            if os.path.samestat(named, os.fstat(file.fileno())):
                return file
        except (BlockingIOError, FileNotFoundError):
            pass
        file.close()
        raise ChangesMeanwhile("somebody else fetches it at this moment")

    def _read_into(self, descriptor: int) -> bool:
        have = os.fstat(descriptor).st_size
        size, identity = None, None
        while True:
            piece = self._files.read(self._path, have, CHUNK_BYTES)
            if piece is None:
                os.unlink(self.name, dir_fd=self._folder)
                raise FileNotFoundError(errno.ENOENT, "is gone meanwhile")
            grown = self._grows and identity in (None, piece.identity)
            if piece.version != self._version and not (grown and piece.size >= (size or 0)):
                self._version = piece.version
                return False
            if size is None:
                size, identity = piece.size, piece.identity
                if have and piece.version != self._version:
                    os.ftruncate(descriptor, 0)
                    have, size = 0, None
                    self._version = piece.version
                    continue
                self._version = piece.version
            data = piece.data[: size - have]
            if not data:
                if have < size:
                    raise ChangesMeanwhile("ends before its end")
                return True
            _write(descriptor, data)
            have += len(data)
            self.came += len(data)
            self._progress(self._path, have, size)
            if have >= size:
                return True


def _write(descriptor: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(descriptor, view) :]


def _here(error: OSError, folder: Path) -> PassingBackendError | PermanentBackendError:
    """Make the error of a disk of this machine."""
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return PassingBackendError("no space left here for what is fetched", where=str(folder))
    return PermanentBackendError(f"cannot be written: {error.strerror}", where=str(folder))
