"""One self-contained file out of weights whose tensors lie with several ancestors."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from trial_runtime.errors import WeightsError
from trial_runtime.weights.format import datafile
from trial_runtime.weights.format.dtypes import DTYPES
from trial_runtime.weights.format.manifest import TensorEntry
from trial_runtime.weights.format.skeleton import references, subtree
from trial_runtime.weights.read.mapped import tensor_files
from trial_runtime.weights.read.opening import open_manifest
from trial_runtime.weights.read.tensor_files import TensorFiles
from trial_runtime.weights.storage import faults, publishing
from trial_runtime.weights.storage.patience import STALE_TIMEOUT_S, Patience
from trial_runtime.weights.storage.roots import locate_to_read


@dataclass(frozen=True)
class Exported:
    """The file that an export wrote."""

    path: str
    tensors: int
    nbytes: int  # of the file


def export(
    path: str | os.PathLike[str],
    out_file: str | os.PathLike[str],
    *,
    key: str = "",
    digest: str | None = None,
    root: str | None = None,
    read_roots: tuple[str, ...] | None = None,
    stale_timeout_s: float = STALE_TIMEOUT_S,
) -> Exported:
    """Write all tensors into one ``.safetensors`` file that any tool can read.

    Every name is in the file, tied tensors once for each of their names; what is not a
    tensor (step counts, generator states of Python) is left behind. Every digest is
    checked. The file appears whole or not at all. Blocks on the disk.

    Args:
        path: what was given to ``save``.
        out_file: where to write; may lie anywhere, and is replaced if it exists.
        key: export only this part of the state, with names relative to it ("model").
        digest: what the manifest's digest must be.
        root: the weights root, see ``load``.
        read_roots: further folders that may be read from.
        stale_timeout_s: seconds to wait for the announced digest.

    Raises:
        WeightsError: nothing to export.
        WeightsNotFound, StaleWeights, CorruptWeights, PathError: see ``load``.
        DiskFull: it did not fit; an earlier file is untouched.
    """
    opened = open_manifest(
        locate_to_read(path, root, read_roots), digest, Patience(stale_timeout_s)
    )
    tensors = opened.manifest.tensors
    names = list(dict.fromkeys(references(subtree(opened.manifest.state, key, opened.folder))))
    if not names:
        raise WeightsError("there is no tensor to export", where=opened.folder)
    entries = {name: tensors[name] for name in names if name in tensors}
    files = tensor_files(opened)
    files.prepare(entries.values())
    files.verify(entries)
    above, name = os.path.split(os.path.abspath(os.fspath(out_file)))
    target = os.path.join(os.path.realpath(above), name)
    cut = len(key) + 1 if key else 0
    nbytes = _write(target, {name[cut:]: entry for name, entry in entries.items()}, files)
    return Exported(target, len(entries), nbytes)


def _write(target: str, entries: Mapping[str, TensorEntry], files: TensorFiles) -> int:
    """Write tensors into a new file at a canonical path; returns its bytes."""
    metadata = {"format": "pt"}
    # Wide elements first: back to back, each tensor then begins at a multiple of its width.
    ordered = sorted(entries.items(), key=lambda item: -DTYPES[item[1].dtype].itemsize)
    room = [(name, entry.dtype, entry.shape, entry.nbytes) for name, entry in ordered]
    start = offset = datafile.data_start(room, metadata)
    total = start + sum(entry.nbytes for entry in entries.values())
    with faults.named_faults(target, needed_bytes=total):
        publishing.make_folder(os.path.dirname(target))
        with publishing.NewFile(target) as file:
            described = []
            for name, entry in ordered:
                file.write_at(files.view(entry), offset)
                described.append((name, entry.dtype, entry.shape, offset, entry.nbytes))
                offset += entry.nbytes
            file.write_at(memoryview(datafile.header(described, start, metadata)), 0)
            file.publish("export")
    return offset
