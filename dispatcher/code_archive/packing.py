"""Packs a listing as a tar archive that does not depend on its author, place or time."""

from __future__ import annotations

import hashlib
import os
import stat
import tarfile
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, BinaryIO

from dispatcher.code_archive.listing import CodeEntry, Listing
from dispatcher.errors import UserError

_READ_BYTES = 1 << 20

#: tarfile writes 10 KiB at a time.
_WRITE_BYTES = 1 << 18


class CodeChanged(UserError):
    """Raised when a file of the code folder changed while it was packed."""


@dataclass(frozen=True)
class Packed:
    """A packed archive. ``digest`` is its SHA-256, in hex: the same code has the same."""

    digest: str
    files: int
    nbytes: int
    archive_bytes: int


class _Digesting:
    """A file to write to that keeps the digest of what went through."""

    def __init__(self, file: IO[bytes]) -> None:
        self._file = file
        self.digest = hashlib.sha256()
        self.size = 0

    def write(self, data: bytes) -> int:
        self.digest.update(data)
        self.size += len(data)
        return self._file.write(data)


def pack_code(listing: Listing, into: Path | BinaryIO) -> Packed:
    """Write the archive; reads every file. A path appears whole or not at all.

    No times, no owners, and of the modes only whether it runs: two checkouts of the same code
    give the same bytes. Nobody but its owner may read it, here and where it is unpacked: private
    files stay private, whatever the mode of the rest.

    Raises:
        CodeChanged: a file is shorter or longer than it was, was written to, or is gone.
        UserError: a file cannot be read.
        OSError: ``into`` cannot be written.
    """
    if not isinstance(into, Path):
        return _write(listing, into)
    new = into.with_name(f"{into.name}.{os.getpid()}.part")
    new.unlink(missing_ok=True)
    try:
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        with open(os.open(new, flags, 0o600), "wb", buffering=_WRITE_BYTES) as file:
            packed = _write(listing, file)
            file.flush()
            os.fsync(file.fileno())
        new.replace(into)
    finally:
        new.unlink(missing_ok=True)
    return packed


def _write(listing: Listing, file: IO[bytes]) -> Packed:
    through = _Digesting(file)
    stream: Any = through
    with tarfile.open(
        fileobj=stream,
        mode="w|",
        format=tarfile.PAX_FORMAT,
        encoding="utf-8",
        errors="surrogateescape",
    ) as tar:
        for entry in listing.entries:
            _add(tar, entry)
    return Packed(through.digest.hexdigest(), listing.files, listing.nbytes, through.size)


def _add(tar: tarfile.TarFile, entry: CodeEntry) -> None:
    member = tarfile.TarInfo(entry.name)
    if entry.kind == stat.S_IFDIR:
        member.type, member.mode = tarfile.DIRTYPE, 0o700
        tar.addfile(member)
        return
    if entry.kind == stat.S_IFLNK:
        member.type, member.mode, member.linkname = tarfile.SYMTYPE, 0o777, entry.link
        tar.addfile(member)
        return
    member.size, member.mode = entry.size, 0o700 if entry.runs else 0o600
    with os.fdopen(_opened(entry), "rb", buffering=_READ_BYTES) as file:
        if os.fstat(file.fileno()).st_size != entry.size:
            raise _changed(entry)
        before = _written(file)
        try:
            tar.addfile(member, file)
        except OSError as error:
            if "unexpected end of data" not in str(error):
                raise
            raise _changed(entry) from error
        if _written(file) != before:
            raise _changed(entry)


def _opened(entry: CodeEntry) -> int:
    """A descriptor of the file that was listed; something else may stand there by now."""
    try:
        # No link is followed, and nobody is waited for at a pipe.
        source = os.open(entry.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    except FileNotFoundError as error:
        raise CodeChanged("went away while the code was packed", where=str(entry.path)) from error
    except OSError as error:
        text = f"cannot be read: {error.strerror}"
        raise UserError(text, hint="is it code?", where=str(entry.path)) from error
    if not stat.S_ISREG(os.fstat(source).st_mode):
        os.close(source)
        raise _changed(entry)
    return source


def _written(file: BinaryIO) -> tuple[int, int]:
    """Size and time of a file, which differ once it was written to."""
    status = os.fstat(file.fileno())
    return status.st_size, status.st_mtime_ns


def _changed(entry: CodeEntry) -> CodeChanged:
    return CodeChanged(
        "changed while the code was packed",
        hint="does something write there? name it in .bequeathignore",
        where=str(entry.path),
    )
