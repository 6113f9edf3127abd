"""Small files that a trial keeps with its attempt: confined to its folder, and bounded."""

from __future__ import annotations

import os
from typing import BinaryIO, Final

from trial_runtime.api_errors import ArtefactRefused
from trial_runtime.weights.storage import confined

#: Largest artefact (bytes). Larger things are weights, or belong on a disk of the author's.
MAX_BYTES: Final = 64 << 20

#: All artefacts of an attempt together.
MAX_SUM_BYTES: Final = 256 << 20
MAX_FILES: Final = 1000


def keep(folder: str, name: str, content: str | bytes | os.PathLike[str]) -> str:
    """Put a file below ``folder``, replacing one of the same name; return its path.

    No folder on the way may be a link, whoever has put it there and when.

    Args:
        folder: the attempt's folder for artefacts.
        name: a relative path below it.
        content: bytes, or the path of a file to copy.

    Raises:
        ArtefactRefused: it is too large, or with it all are, or the name leads out.
        PathThroughLink: a link is in the way.
        OSError: the file cannot be read, or the disk is full.
    """
    root = os.path.realpath(folder)
    target = os.path.normpath(os.path.join(root, name))
    if not name or "\0" in name or os.path.commonpath((root, target)) != root or target == root:
        raise ArtefactRefused(
            f"{name!r} leads out of the attempt's folder", hint="use a plain relative name"
        )
    size = len(content) if isinstance(content, bytes) else os.path.getsize(content)
    _check_size(name, size)
    _check_sum(root, target, name, size)
    above, last = os.path.split(target)
    partial = f".{last}.{os.getpid()}.partial"
    with confined.folder(above, make=True) as at:
        flags = os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(partial, flags, 0o644, dir_fd=at)
        try:
            with open(descriptor, "wb") as file:
                _write(file, content, name)
            os.replace(partial, last, src_dir_fd=at, dst_dir_fd=at)
        except BaseException:
            os.unlink(partial, dir_fd=at)
            raise
    return target


def _write(file: BinaryIO, content: str | bytes | os.PathLike[str], name: str) -> None:
    if isinstance(content, bytes):
        file.write(content)
        return
    taken = 0
    with open(content, "rb") as source:
        while piece := source.read(1 << 20):
            taken += len(piece)
            _check_size(name, taken)  # it may have grown since we asked
            file.write(piece)


def _check_size(name: str, size: int) -> None:
    if size > MAX_BYTES:
        raise ArtefactRefused(
            f"{name!r} has {size:,} bytes; {MAX_BYTES:,} are allowed",
            hint="large things belong into save_weights() or on a disk of your own",
        )


def _check_sum(root: str, target: str, name: str, size: int) -> None:
    files, total = 1, size
    for folder, _, names in os.walk(root):
        for one in names:
            path = os.path.join(folder, one)
            if path != target:
                files += 1
                total += os.lstat(path).st_size
    if files > MAX_FILES or total > MAX_SUM_BYTES:
        raise ArtefactRefused(
            f"with {name!r} this attempt would keep {files:,} files of {total:,} bytes; "
            f"{MAX_FILES:,} of {MAX_SUM_BYTES:,} are allowed",
            hint="keep fewer, or write them to a disk of your own",
        )
