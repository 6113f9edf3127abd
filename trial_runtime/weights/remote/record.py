"""The record of one publication: the object of each of its files.

The record is written when all of its objects are there. Readers know the digest of the weights
from the head; a record only has the places of the bytes, and each of its numbers is checked.
"""

from __future__ import annotations

import posixpath
import re
from typing import Final, Literal
from urllib.parse import quote

import msgspec

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.format import hashing
from trial_runtime.weights.format.manifest import MANIFEST_NAME, now
from trial_runtime.weights.storage.paths import nested

FORMAT: Final = "bequeath-publication"
VERSION: Final = 1
MAX_RECORD_BYTES: Final = 64 * 1024 * 1024

OBJECTS: Final = "objects"
PUBLISHED: Final = "published"
UPLOADS: Final = ".uploads"

_DIGEST: Final = re.compile(r"[0-9a-f]{64}")
#: Longer names of folders are cut and distinguished by a digest: servers take 255 bytes.
_LONGEST_NAME: Final = 200

Kind = Literal["bequeath", "files"]


class StoredFile(msgspec.Struct, frozen=True):
    """One file of a publication."""

    path: str  # below the weights root, canonical
    nbytes: int
    blake3: str
    owner: str  # the save path among whose objects it lies: an ancestor's for inherited tensors

    @property
    def name(self) -> str:
        """The object, as seen from the experiment's place."""
        return f"{objects_of(self.owner)}/{self.blake3}"


class Record(msgspec.Struct, frozen=True):
    """One publication; ``digest`` is what the head commits."""

    format: str
    version: int
    kind: Kind
    digest: str
    nbytes: int  # of everything a reader may have to read
    writer: str  # trial and attempt
    created: str  # UTC, ISO 8601
    save_path: str
    files: tuple[StoredFile, ...]

    @property
    def name(self) -> str:
        """The name of the record's file, as seen from the experiment's place."""
        return record_name(self.save_path, self.digest)


def make(
    kind: Kind, digest: str, nbytes: int, writer: str, save_path: str, files: list[StoredFile]
) -> Record:
    """A record with the time of now.

    Args:
        kind: of the weights.
        digest: of the weights, as the head commits it.
        nbytes: of everything a reader may have to read.
        writer: trial and attempt.
        save_path: canonical.
        files: all that belong to the weights, inherited ones too.
    """
    return Record(FORMAT, VERSION, kind, digest, nbytes, writer, now(), save_path, tuple(files))


def objects_of(save_path: str) -> str:
    """The folder of a save path's objects."""
    return f"{OBJECTS}/{_encoded(save_path)}"


def records_of(save_path: str) -> str:
    """The folder of a save path's records."""
    return f"{PUBLISHED}/{_encoded(save_path)}"


def record_name(save_path: str, digest: str) -> str:
    """The name of a record."""
    return f"{records_of(save_path)}/{digest}.json"


def _encoded(save_path: str) -> str:
    """A spelling of a path that every file system takes as it is: no blanks, ``?`` or ``#``."""
    return "/".join(_name(part) for part in save_path.split("/"))


def _name(part: str) -> str:
    plain = quote(part, safe="").replace("%", "=").replace("~", "=7E")
    if len(plain) <= _LONGEST_NAME and plain not in (".", ".."):
        return plain
    return f"~{hashing.digest(part.encode())[:40]}"


def encode(record: Record) -> bytes:
    """The bytes that are written."""
    return msgspec.json.encode(record)


def decode(
    raw: bytes, where: str, *, save_path: str, digest: str, kind: Kind | None = None
) -> Record:
    """Read and check a record.

    Args:
        raw: its bytes.
        where: its place, for the error.
        save_path: of the weights that it has to be about.
        digest: of these weights.
        kind: of these weights; None: either.

    Raises:
        CorruptWeights: it is none, of a newer version, or not that of these weights.
    """
    try:
        record = msgspec.json.decode(raw, type=Record)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as fault:
        raise CorruptWeights(f"not the record of weights: {fault}", where=where) from None
    if (record.format, record.version) != (FORMAT, VERSION):
        raise CorruptWeights(
            f"a record of {record.format!r} version {record.version} is not known here",
            where=where,
            writer=record.writer,
        )
    fault_found = _fault(record, save_path, digest, kind)
    if fault_found:
        raise CorruptWeights(fault_found, where=where, writer=record.writer)
    return record


def tree_digest(save_path: str, files: tuple[StoredFile, ...]) -> str:
    """The digest of these files, as :func:`trial_runtime.weights.read.plain.digest_tree`."""
    listing = sorted(
        (
            "." if file.path == save_path else file.path[len(save_path) + 1 :],
            file.nbytes,
            file.blake3,
        )
        for file in files
    )
    return hashing.digest(msgspec.json.encode(listing))


def manifest_path(save_path: str) -> str:
    """The path of the manifest of our own kind of weights, below the weights root."""
    return f"{save_path}/{MANIFEST_NAME}"


def _fault(record: Record, save_path: str, digest: str, kind: Kind | None) -> str:
    expected = (save_path, digest, kind or record.kind)
    if (record.save_path, record.digest, record.kind) != expected:
        return f"is the record of {record.digest} at {record.save_path!r} ({record.kind})"
    seen: set[str] = set()
    for file in record.files:
        for path in (file.path, file.owner):
            if path != posixpath.normpath(path) or path.startswith(("/", "..")) or "\0" in path:
                return f"{path!r} is not a path below the weights root"
        if not _DIGEST.fullmatch(file.blake3) or file.nbytes < 0 or file.path in seen:
            return f"contradicts itself about {file.path!r}"
        seen.add(file.path)
    if record.kind == "files":
        if any(not nested(save_path, path) or len(path) < len(save_path) for path in seen):
            return "names files outside its own folder"
        if tree_digest(save_path, record.files) != digest:
            return "its files do not have the digest that was committed"
        return ""
    manifest = next((f for f in record.files if f.path == manifest_path(save_path)), None)
    if manifest is None or manifest.blake3 != digest:
        return "its manifest is not the one that was committed"
    return ""
