"""Inheritance: the tensors of a parent whose bytes already lie below the weights root."""

from __future__ import annotations

import os
from dataclasses import dataclass

from trial_runtime.errors import WeightsNotFound
from trial_runtime.weights.format import hashing
from trial_runtime.weights.format.manifest import MANIFEST_NAME, TensorEntry, decode
from trial_runtime.weights.format.staging import Staged
from trial_runtime.weights.read.opening import OpenedManifest, manifest_bytes
from trial_runtime.weights.storage.paths import relative_to
from trial_runtime.weights.storage.patience import revalidate_shared
from trial_runtime.weights.storage.roots import Located, locate_to_read


@dataclass(frozen=True)
class Ancestry:
    """The parent's tensors as seen from the child's folder.

    References lead to the file that holds the bytes, however many generations ago it was
    written: a child never depends on the manifests between.
    """

    digest: str  # of the parent's manifest
    entries: dict[tuple[str, int, str], TensorEntry]  # type, bytes, digest → where it lies
    sizes: dict[str, int]  # of the files, by reference
    digests: dict[str, str]  # of the files as a whole, where known
    _forms: frozenset[tuple[str, int]]

    def resembles(self, tensor: Staged) -> bool:
        """Whether the parent has any tensor of this type and size: only then it may be equal."""
        return (tensor.dtype, tensor.nbytes) in self._forms

    def find(self, tensor: Staged, digest: str) -> TensorEntry | None:
        """The parent's entry with these bytes, under whatever name and shape, or None."""
        entry = self.entries.get((tensor.dtype, tensor.nbytes, digest))
        if entry is None:
            return None
        return TensorEntry(
            file=entry.file,
            offset=entry.offset,
            nbytes=entry.nbytes,
            dtype=tensor.dtype,
            shape=tensor.shape,
            blake3=digest,
            like=tensor.like,
        )


def find_ancestry(
    parent: str | os.PathLike[str],
    child: Located,
    root: str | None,
    expected: str | None = None,
) -> Ancestry | None:
    """Find what the weights at ``parent`` bequeath; None for weights that are not of our format.

    Files outside the child's root are left out: retention there is not ours, so the child
    keeps its own copy. So are files that are gone or were cut.

    With ``expected``, the digest of the parent's manifest, None also where another one is
    seen: a file system that lags may show a folder that was set aside, and what lies there
    is nobody's to refer to.

    Args:
        parent: the path of the parent's weights.
        child: the place that the child saves to.
        root: the weights root; None: that of this process, see ``save``.
        expected: the digest of the parent's manifest, hex; None: any will do.

    Raises:
        WeightsNotFound: nothing is at ``parent``, and none was expected.
        CorruptWeights: its manifest cannot be read.
    """
    source = locate_to_read(parent, root)
    raw = manifest_bytes(source.path)
    if expected is not None and _digest_of(raw) != expected:
        revalidate_shared(source.path)
        raw = manifest_bytes(source.path)
        if _digest_of(raw) != expected:
            return None
    if raw is None and not os.path.lexists(source.path):
        raise WeightsNotFound(
            "there is nothing at parent", hint="leave parent out to save in full", where=source.path
        )
    if raw is None:
        return None
    manifest = decode(raw, os.path.join(source.path, MANIFEST_NAME))
    return _bequeathed(
        OpenedManifest(source.path, source.root, manifest, hashing.digest(raw)), child
    )


def _bequeathed(opened: OpenedManifest, child: Located) -> Ancestry:
    """The tensors of a parent that lie in whole files of the child's root."""
    manifest = opened.manifest
    seen_from_child: dict[str, str] = {}
    sizes: dict[str, int] = {}
    for reference, size in manifest.files.items():
        file = opened.file(reference)
        if relative_to(child.root, file) is not None and _has_size(file, size):
            relative = os.path.relpath(file, child.path)
            seen_from_child[reference] = relative
            sizes[relative] = size
    entries = {
        (e.dtype, e.nbytes, e.blake3): TensorEntry(
            seen_from_child[e.file], e.offset, e.nbytes, e.dtype, e.shape, e.blake3, e.like
        )
        for e in manifest.tensors.values()
        if e.nbytes and e.file in seen_from_child
    }
    digests = {
        seen_from_child[reference]: whole
        for reference, whole in manifest.digests.items()
        if reference in seen_from_child
    }
    return Ancestry(opened.digest, entries, sizes, digests, frozenset(key[:2] for key in entries))


def _digest_of(raw: bytes | None) -> str | None:
    return hashing.digest(raw) if raw is not None else None


def _has_size(path: str, size: int) -> bool:
    try:
        return os.stat(path).st_size == size
    except OSError:
        return False
