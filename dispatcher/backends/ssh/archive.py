"""Folders as archives that are called by their content: the same files give the same bytes."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import blake2b
from pathlib import Path

import trial_runtime

_DIGEST_BYTES = 16


@dataclass(frozen=True)
class Archive:
    """A gzipped tar file; ``digest`` is of the files in it, and not of how they are packed."""

    digest: str
    content: bytes | Path = field(repr=False)


def pack(folder: Path, files: Iterable[Path], *, below: str = "") -> Archive:
    """Pack files of a folder, in the order of their names, without owners and times.

    Args:
        folder: that the names in the archive count from.
        files: below it; links stay links.
        below: a folder of the archive that all go into.

    Raises:
        OSError: one cannot be read.
    """
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as archive:
        for path in sorted(files):
            name = str(Path(below) / path.relative_to(folder))
            info = archive.gettarinfo(str(path), name)
            info.uid = info.gid = 0
            info.uname = info.gname = ""
            info.mtime = 0
            info.mode = 0o755 if info.isdir() or info.mode & 0o100 else 0o644
            if info.isreg():
                with path.open("rb") as file:
                    archive.addfile(info, file)
            else:
                archive.addfile(info)
    raw = buffer.getvalue()
    digest = blake2b(raw, digest_size=_DIGEST_BYTES).hexdigest()
    return Archive(digest, gzip.compress(raw, compresslevel=6, mtime=0))


@lru_cache(maxsize=1)
def runtime_archive() -> Archive:
    """``trial_runtime``, which is all of ours that a machine needs."""
    package = Path(trial_runtime.__file__).parent
    return pack(package.parent, package.rglob("*.py"))
