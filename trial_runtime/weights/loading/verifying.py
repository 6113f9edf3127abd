"""Reading everything once, to know that it is still what was published."""

from __future__ import annotations

import os
from dataclasses import dataclass

from trial_runtime.weights.read.choosing import tensor_files
from trial_runtime.weights.read.opening import open_manifest
from trial_runtime.weights.storage.patience import STALE_TIMEOUT_S, Patience
from trial_runtime.weights.storage.roots import locate_to_read


@dataclass(frozen=True)
class Verified:
    """The weights that were checked."""

    digest: str
    tensors: int
    nbytes: int


def verify(
    path: str | os.PathLike[str],
    digest: str | None = None,
    *,
    root: str | None = None,
    read_roots: tuple[str, ...] | None = None,
    stale_timeout_s: float = STALE_TIMEOUT_S,
) -> Verified:
    """Check the manifest and every tensor, inherited ones included; reads all bytes.

    Args:
        path: what was given to ``save``.
        digest: what the manifest's digest must be.
        root: the weights root, see ``load``.
        read_roots: further folders that may be read from.
        stale_timeout_s: seconds to wait for the announced digest.

    Raises:
        WeightsNotFound, StaleWeights, CorruptWeights, PathError: see ``load``.
    """
    opened = open_manifest(
        locate_to_read(path, root, read_roots), digest, Patience(stale_timeout_s)
    )
    manifest = opened.manifest
    files = tensor_files(opened)
    files.prepare(manifest.tensors.values())
    files.verify(manifest.tensors)
    return Verified(opened.digest, len(manifest.tensors), manifest.nbytes)
