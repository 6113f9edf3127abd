"""Saving weights: one data file with what changed, then the manifest that makes it real."""

from __future__ import annotations

import os
from collections.abc import Hashable, Iterable
from dataclasses import dataclass
from typing import Any

from trial_runtime.errors import PathThroughLink, WeightsError, WeightsTaken
from trial_runtime.weights.format import hashing
from trial_runtime.weights.format.manifest import (
    FORMAT,
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    MAX_PARTS,
    VERSION,
    Manifest,
    TensorEntry,
    decode,
    encode,
    now,
    parts_of,
)
from trial_runtime.weights.format.skeleton import flatten
from trial_runtime.weights.format.staging import Staged, stage
from trial_runtime.weights.read.opening import manifest_bytes
from trial_runtime.weights.saving.ancestry import find_ancestry
from trial_runtime.weights.saving.tensor_writer import Written, write_tensors
from trial_runtime.weights.storage import confined, faults, publishing
from trial_runtime.weights.storage.roots import CACHE_VARIABLE, Located, current, locate_to_write


@dataclass(frozen=True)
class Published:
    """The result of a save; its ``digest`` is announced to readers."""

    path: str
    digest: str  # BLAKE3 of the manifest's bytes, hex
    bytes_written: int  # to the data file and the manifest
    bytes_total: int  # of all tensors, tied ones counted once
    tensors_written: int
    tensors_inherited: int


def save(
    state: Any,
    path: str | os.PathLike[str],
    *,
    parent: str | os.PathLike[str] | None = None,
    root: str | None = None,
    writer: str | None = None,
    parent_digest: str | None = None,
) -> Published:
    """Publish weights and training state at a path, durably and all at once.

    Blocks until the disk has it. Readers see what was there before, or all of this.

    Args:
        state: a torch module, or nested dicts, lists and tuples of tensors (torch or
            numpy), modules, optimisers, schedulers and scalars. Tensors are stored by
            value; those that share their memory are stored once and come back tied.
        path: the folder to publish; created where missing. Relative paths count from the
            weights root when there is one, else from the current folder.
        parent: weights this state descends from. Tensors the parent has with the same
            bytes, under whatever name, are referred to and not written.
        root: the weights root; by default that of the session or the environment, else
            the folder that ``path`` stands in. Only files below it are referred to.
        writer: trial and attempt, for error messages of readers; default from the session.
        parent_digest: what the digest of the parent's manifest must be. Where the file system
            shows another one, everything is written and nothing referred to.

    Returns:
        The digest to announce, and what was written.

    Raises:
        WeightsError: something in the state cannot be stored; nothing was written.
        WeightsNotFound: there is nothing at ``parent``.
        WeightsTaken: another attempt has published here.
        DiskFull, QuotaExceeded: it did not fit; nothing was published.
        StorageError: the file system refused it, and went on to: what is tried again, and for
            how long, is in :mod:`~trial_runtime.weights.storage.faults`. A server that is away
            behind a hard mount is waited for without a bound.
        PathOutsideRoot, PathThroughLink: ``path`` may not be written to.
    """
    located = locate_to_write(path, root)
    author = current().writer if writer is None else writer
    if os.path.lexists(located.path) and not os.path.isdir(located.path):
        raise WeightsError(
            "is a file; weights are published as a folder",
            hint="choose another save_path or remove the file",
            where=located.path,
        )
    skeleton, tensors = flatten(state)
    staged, ties = _stage_all(tensors)
    total = sum(s.nbytes for s in staged.values())

    def save_once() -> Published:
        before = _published_before(located, author)
        ancestry = (
            find_ancestry(parent, located, root, parent_digest) if parent is not None else None
        )
        # One folder for both files: an attempt that was given up meanwhile goes on writing
        # into what was set aside, and not into its successor's.
        with confined.folder(located.path, make=True) as at:
            written = write_tensors(
                list(staged.values()),
                located.path,
                ancestry,
                author,
                at,
                digest_file=bool(os.environ.get(CACHE_VARIABLE)),
            )
            manifest = Manifest(
                format=FORMAT,
                version=VERSION,
                created=now(),
                writer=author,
                parent=ancestry.digest if ancestry else "",
                tensors=_entries_of(tensors, ties, written),
                files=written.files,
                state=skeleton,
                ties=ties,
                digests=written.digests,
            )
            try:
                _published_before(located, author)  # by a successor, since we looked
                raw = publish_manifest(located.path, manifest, at)
            except BaseException:
                _take_back(located.path, written, manifest)
                raise
        _forget_superseded(located.path, before, manifest)
        return Published(
            path=located.path,
            digest=hashing.digest(raw),
            bytes_written=written.bytes_written + len(raw),
            bytes_total=total,
            tensors_written=written.tensors_written,
            tensors_inherited=written.tensors_inherited,
        )

    # From the beginning each time: what a failed fsync was to make durable is nowhere but here.
    return faults.persist(save_once, located.path, needed_bytes=total)


def publish_manifest(folder: str, manifest: Manifest, at: int) -> bytes:
    """Make a manifest the one of its folder; returns its bytes. Blocks on the disk.

    Args:
        folder: its canonical path.
        manifest: what to publish.
        at: a descriptor of the folder.

    Raises:
        WeightsError: it is larger than readers accept, or has more parts.
    """
    raw = encode(manifest)
    parts = parts_of(raw)
    if parts > MAX_PARTS:
        raise WeightsError(
            f"the state around the tensors has {parts:,} lists and dicts ({MAX_PARTS:,} are "
            "allowed)",
            hint="store lists of lists of numbers as arrays",
            where=folder,
        )
    if len(raw) > MAX_MANIFEST_BYTES:
        raise WeightsError(
            f"the state around the tensors takes {len(raw):,} bytes of JSON "
            f"({MAX_MANIFEST_BYTES:,} are allowed)",
            hint="store long lists of numbers as arrays",
            where=folder,
        )
    with publishing.NewFile(os.path.join(folder, MANIFEST_NAME), at) as file:
        file.write_at(memoryview(raw), 0)
        file.publish("manifest")
    return raw


def _take_back(folder: str, written: Written, manifest: Manifest) -> None:
    """Remove the data file of a save that failed, unless its manifest was published after all
    (only the last step, which makes the name durable, failed)."""
    if not written.own_file:
        return
    try:
        raw = manifest_bytes(folder)
        if raw is not None and raw == encode(manifest):
            _own_files.add(os.path.join(folder, written.own_file))
        else:
            written.take_back(folder)
    except (OSError, WeightsError):
        pass  # it stays; the weight keeper removes what no manifest names


def _published_before(located: Located, author: str) -> Manifest | None:
    raw = manifest_bytes(located.path)
    if raw is None:
        return None
    before = decode(raw, os.path.join(located.path, MANIFEST_NAME))
    if before.writer not in ("", author):
        raise WeightsTaken(
            f"already holds weights of trial {before.writer}"
            + (f"; this is {author}" if author else ""),
            hint="every trial needs a save_path of its own",
            where=located.path,
        )
    return before


def _stage_all(tensors: dict[str, Any]) -> tuple[dict[str, Staged], list[list[str]]]:
    """Stage each distinct tensor once; groups of names that are tied, the first one staged."""
    staged: dict[str, Staged] = {}
    groups: dict[Hashable, list[str]] = {}
    for name, tensor in tensors.items():
        ready = stage(name, tensor)
        group = groups.setdefault(ready.identity, [])
        if not group:
            staged[name] = ready
        group.append(name)
    return staged, [group for group in groups.values() if len(group) > 1]


def _entries_of(
    names: Iterable[str], ties: list[list[str]], written: Written
) -> dict[str, TensorEntry]:
    """The entries of a manifest: a tied tensor's is that of the first of its group."""
    first = {name: group[0] for group in ties for name in group}
    return {name: written.entries[first.get(name, name)] for name in names}


# Data files that this process wrote and that, as far as it knows, only their own manifest
# refers to. A trial that saves after each epoch would otherwise keep every epoch.
_own_files: set[str] = set()


def _forget_superseded(folder: str, before: Manifest | None, manifest: Manifest) -> None:
    """Remove files that this process published here earlier and no longer needs.

    Files of other processes stay for ``gc``, since other weights may refer to them.
    So do those that another save of this process inherited from.
    """
    for reference in manifest.files:
        path = os.path.normpath(os.path.join(folder, reference))
        if os.path.dirname(path) == folder:
            _own_files.add(path)
        else:
            _own_files.discard(path)
    for reference in before.files if before else ():
        path = os.path.normpath(os.path.join(folder, reference))
        if reference not in manifest.files and path in _own_files:
            _own_files.discard(path)
            try:
                confined.unlink(path)
            except (OSError, PathThroughLink):
                pass  # it is not there any more, or stays: what a link leads to is not ours
