"""The manifest of one save: which tensor lies where, and the state around the tensors.

The manifest is the only thing that readers believe, and only as far as its digest and the
checks below carry it: every number in it was chosen by somebody else.
"""

from __future__ import annotations

import math
import re
from datetime import datetime, timezone
from typing import Any, Final

import msgspec

from trial_runtime.errors import CorruptWeights
from trial_runtime.weights.format import skeleton
from trial_runtime.weights.format.dtypes import DTYPES

MANIFEST_NAME: Final = "manifest.json"
FORMAT: Final = "bequeath-weights"
VERSION: Final = 1

# A manifest line takes about 250 bytes: 64 MiB is a quarter of a million tensors.
MAX_MANIFEST_BYTES: Final = 64 * 1024 * 1024
# A list or an object takes two bytes there and up to a hundred in memory. A tensor has three: its
# entry, its shape, its place in the state.
MAX_PARTS: Final = 4_000_000
# No dimension and no size reaches this; it keeps products of forged shapes small.
_MAX_SIZE: Final = 1 << 62
_MAX_DIMENSIONS: Final = 64
_DIGEST: Final = re.compile(r"[0-9a-f]{64}")


class TensorEntry(msgspec.Struct, frozen=True):
    """The place of the bytes of one tensor; tied tensors have entries with the same place."""

    # Relative to the manifest's folder, '/' between parts; may be an ancestor's. Empty for a
    # tensor without elements.
    file: str
    offset: int  # bytes from the beginning of the file
    nbytes: int
    dtype: str
    shape: tuple[int, ...]
    blake3: str  # of the bytes, hex
    like: str = "torch"  # "torch" or "numpy": what the writer held


class Manifest(msgspec.Struct, frozen=True):
    """One save."""

    format: str
    version: int
    created: str  # UTC, ISO 8601
    writer: str  # trial and attempt, such as "17.1"; empty when run by hand
    parent: str  # digest of the manifest that tensors were inherited from; may be empty
    tensors: dict[str, TensorEntry]
    files: dict[str, int]  # every data file referred to: size in bytes
    state: Any = None  # the nested state with references to tensors, see skeleton.py
    ties: list[list[str]] = []
    # BLAKE3 of whole data files, hex, by which hosts keep copies of them. Weights that were
    # published where nobody keeps copies have none, and are read where they lie.
    digests: dict[str, str] = {}

    @property
    def nbytes(self) -> int:
        """Bytes of all tensors, tied ones counted once."""
        return sum(self.places().values())

    def places(self) -> dict[tuple[str, int, int], int]:
        """Every distinct stretch of bytes, as ``(file, offset, nbytes) -> nbytes``."""
        return {(e.file, e.offset, e.nbytes): e.nbytes for e in self.tensors.values()}


def now() -> str:
    """The time, as manifests have it."""
    return datetime.now(timezone.utc).isoformat(timespec="microseconds")


def encode(manifest: Manifest) -> bytes:
    """The bytes of a manifest on disk; their digest is announced to readers."""
    return msgspec.json.encode(manifest)


def parts_of(raw: bytes) -> int:
    """An upper bound of the lists and objects in some JSON: brackets within texts count, too."""
    return raw.count(b"[") + raw.count(b"{")


def decode(raw: bytes, where: str) -> Manifest:
    """Read and check a manifest.

    Args:
        raw: at most :data:`MAX_MANIFEST_BYTES` bytes.
        where: the path they came from, for the error.

    Raises:
        CorruptWeights: it is no manifest, of a newer version, or contradicts itself.
    """
    parts = parts_of(raw)
    if parts > MAX_PARTS:
        raise CorruptWeights(
            f"has {parts:,} lists and objects ({MAX_PARTS:,} are allowed)", where=where
        )
    try:
        manifest = msgspec.json.decode(raw, type=Manifest)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as fault:
        raise CorruptWeights(f"not a manifest of weights: {fault}", where=where) from None
    if manifest.format != FORMAT:
        raise CorruptWeights(f"not a manifest of weights: format {manifest.format!r}", where=where)
    if manifest.version != VERSION:
        raise CorruptWeights(
            f"manifest version {manifest.version} is not known here (version {VERSION} is)",
            where=where,
            writer=manifest.writer,
        )
    fault_found = _fault(manifest)
    if fault_found:
        raise CorruptWeights(fault_found, where=where, writer=manifest.writer)
    return manifest


def _fault(manifest: Manifest) -> str:
    for name, entry in manifest.tensors.items():
        fault = entry_fault(entry, manifest.files.get(entry.file, -1))
        if fault:
            return f"tensor {name!r}: {fault}"
    for file in manifest.files:
        if not file or file.startswith("/") or "\0" in file or "\\" in file:
            return f"{file!r} is not a relative path of a data file"
    for file, digest in manifest.digests.items():
        if not _DIGEST.fullmatch(digest):
            return f"{digest!r} is not the digest of a data file ({file!r})"
    for tied in manifest.ties:
        for name in tied:
            if name not in manifest.tensors:
                return f"tied tensor {name!r} is not in the manifest"
    return skeleton.fault(manifest.state)


def entry_fault(entry: TensorEntry, file_size: int) -> str:
    """The fault of an entry in a file of that many bytes (-1: unknown file), or ''."""
    spec = DTYPES.get(entry.dtype)
    if spec is None:
        return f"unknown element type {entry.dtype!r}"
    if entry.like not in ("torch", "numpy"):
        return f"unknown library {entry.like!r}"
    if len(entry.shape) > _MAX_DIMENSIONS or any(not 0 <= n < _MAX_SIZE for n in entry.shape):
        return f"impossible shape {entry.shape}"
    if math.prod(entry.shape) * spec.itemsize != entry.nbytes:
        return f"{entry.nbytes} bytes do not make a {entry.dtype} tensor of shape {entry.shape}"
    if not entry.nbytes:
        return ""
    if file_size < 0:
        return f"file {entry.file!r} is not declared"
    if entry.offset < 0 or entry.offset + entry.nbytes > file_size:
        return (
            f"bytes {entry.offset} to {entry.offset + entry.nbytes} of a file of {file_size} bytes"
        )
    return ""
