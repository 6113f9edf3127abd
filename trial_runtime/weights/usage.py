"""The files of weights: which weights use them, which may be removed, and their sizes.

The weight keeper has the policy (what to keep); here are the facts, read from manifests alone.
Data files outlive the weights they were written for as long as a kept manifest refers to
them: removal is by file, and a manifest goes before its files.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from trial_runtime.errors import (
    CorruptWeights,
    PathOutsideRoot,
    PathThroughLink,
    StaleWeights,
    WeightsError,
)
from trial_runtime.failpoints import failpoint
from trial_runtime.weights.format import hashing
from trial_runtime.weights.format.manifest import MANIFEST_NAME, Manifest, decode
from trial_runtime.weights.read.opening import manifest_bytes
from trial_runtime.weights.storage import confined
from trial_runtime.weights.storage.leftovers import is_silly
from trial_runtime.weights.storage.paths import relative_to, resolve_in_root, resolve_reference


@dataclass(frozen=True)
class FileUse:
    """The files of one ``save_path``, relative to the root; sizes in bytes.

    ``own`` lie below the path itself (whatever they are), ``inherited`` belong to
    ancestors and are referred to.
    """

    path: str
    own: Mapping[str, int]
    inherited: Mapping[str, int]

    @property
    def own_bytes(self) -> int:
        return sum(self.own.values())

    @property
    def inherited_bytes(self) -> int:
        return sum(self.inherited.values())


@dataclass(frozen=True)
class Removal:
    """The files that may be deleted, and those that may not although their owner goes."""

    delete: tuple[str, ...]  # relative to the root; manifests first
    folders: tuple[str, ...]  # empty afterwards, deepest first
    nbytes: int
    kept_for: Mapping[str, tuple[str, ...]]  # file → the kept paths that refer to it


def file_use(root: str, path: str, *, digest: str | None = None) -> FileUse:
    """The files that the weights at a path consist of; reads the manifest, no data.

    Args:
        root: the weights root.
        path: relative to it, or absolute below it; may be a file or missing (then empty).
        digest: what the manifest's digest must be, where the weights were committed as ours.

    Raises:
        StaleWeights: there is another manifest, or none; does not wait for a better one.
        PathOutsideRoot, PathThroughLink, CorruptWeights: it leads out, or its manifest
            cannot be read (then nobody knows what it needs, and nothing may go).
    """
    real_root = os.path.realpath(root)
    canonical = resolve_in_root(root, path)
    full = os.path.join(real_root, canonical)
    own = {_inside(real_root, file): size for file, size in _files_below(full)}
    manifest = _manifest_at(full, digest)
    inherited: dict[str, int] = {}
    if manifest is not None:
        for reference, size in manifest.files.items():
            real = resolve_reference(full, reference, real_root, writer=manifest.writer)
            relative = _inside(real_root, real)
            if relative not in own:
                inherited[relative] = size
    return FileUse(canonical, own, inherited)


def in_doubt(root: str, keep: Mapping[str, str | None]) -> dict[str, WeightsError]:
    """The paths whose needs are not known, with the reason for each: no manifest of the digest
    that they were committed under is there, or it cannot be read.

    Raises:
        StorageError, PathOutsideRoot, PathThroughLink: the place cannot be read at all.
    """
    doubts: dict[str, WeightsError] = {}
    for path, digest in keep.items():
        try:
            file_use(root, path, digest=digest)
        except (StaleWeights, CorruptWeights) as error:
            doubts[path] = error
    return doubts


def plan_removal(
    root: str,
    *,
    drop: Iterable[str],
    keep: Iterable[str] | Mapping[str, str | None],
    whole: Iterable[str] = (),
) -> Removal:
    """Plan what to delete when some weights go and all of ``keep`` must stay loadable.

    Left-overs of interrupted saves and superseded data files below a dropped path go too.

    Args:
        root: the weights root.
        drop: paths of weights nobody needs.
        keep: **every** other path of weights that is or may still be read. As a mapping, with
            the digest each was committed under (None for weights that are not ours): a file
            system that lags, or a manifest that was lost, then stops the plan instead of
            making what it refers to look unneeded.
        whole: further paths that stay with all that lies below them, unread. The caller drops
            nothing that one of them could refer to.

    Raises:
        StaleWeights: a manifest among ``keep`` is not the one committed; delete nothing.
        CorruptWeights: a manifest among ``keep`` cannot be read; delete nothing then.
        PathOutsideRoot, PathThroughLink: a path leads out of the root.
    """
    real_root = os.path.realpath(root)
    users = _users(root, keep if isinstance(keep, Mapping) else dict.fromkeys(keep), whole)
    delete: dict[str, int] = {}
    kept_for: dict[str, tuple[str, ...]] = {}
    folders: set[str] = set()
    for path in drop:
        canonical = resolve_in_root(root, path)
        full = os.path.join(real_root, canonical)
        for file, size in _files_below(full):
            relative = _inside(real_root, file)
            if is_silly(os.path.basename(file)):
                continue  # it is removed already, and open somewhere
            if relative in users:
                kept_for[relative] = tuple(users[relative])
            else:
                delete[relative] = size
        folders.update(_inside(real_root, folder) for folder in _folders_below(full))
    staying = {os.path.dirname(file) for file in kept_for}
    return Removal(
        delete=tuple(sorted(delete, key=lambda f: (os.path.basename(f) != MANIFEST_NAME, f))),
        folders=tuple(
            sorted(
                (f for f in folders if not any(s == f or s.startswith(f + "/") for s in staying)),
                key=lambda f: (-f.count("/"), f),
            )
        ),
        nbytes=sum(delete.values()),
        kept_for=kept_for,
    )


def _users(root: str, keep: Mapping[str, str | None], whole: Iterable[str]) -> dict[str, list[str]]:
    """The files that are needed, each with the kept paths that need it; see ``plan_removal``."""
    users: dict[str, list[str]] = {}
    for path, digest in keep.items():
        use = file_use(root, path, digest=digest)
        for file in (*use.own, *use.inherited):
            users.setdefault(file, []).append(use.path)
    real_root = os.path.realpath(root)
    for path in whole:
        canonical = resolve_in_root(root, path)
        for file, _ in _files_below(os.path.join(real_root, canonical)):
            users.setdefault(_inside(real_root, file), []).append(canonical)
    return users


def remove(root: str, removal: Removal) -> None:
    """Carry out a plan. Manifests go first, so that no reader finds half of something.

    Files that are gone already are no error: an interrupted removal is carried out again.
    Nor is a folder that a link has replaced: the target of the link is nobody's weights, and
    stays. Nor one that is not empty since a file in it is still open on a client of NFS: it
    goes with the next plan.

    Raises:
        PathOutsideRoot: the plan was not made for this root.
    """
    real_root = os.path.realpath(root)
    touched = set()
    for file in removal.delete:
        full = os.path.normpath(os.path.join(real_root, file))
        folder = os.path.dirname(full)
        if relative_to(real_root, folder) is None:
            raise PathOutsideRoot("a planned removal leads out of the weights root", where=file)
        try:
            confined.unlink(full)
        except (FileNotFoundError, NotADirectoryError, PathThroughLink):
            continue
        failpoint("weights.file.removed")
        touched.add(folder)
    for path in removal.folders:
        full = os.path.normpath(os.path.join(real_root, path))
        try:
            with confined.folder(os.path.dirname(full)) as above:
                os.rmdir(os.path.basename(full), dir_fd=above)
        except (OSError, PathThroughLink):
            continue  # something new is in it, or it is gone
        touched.discard(full)
    for folder in touched:
        try:
            with confined.folder(folder) as at:
                confined.sync(at)
        except (FileNotFoundError, NotADirectoryError, PathThroughLink):
            continue  # nothing of ours is to be made durable there


def _manifest_at(folder: str, digest: str | None) -> Manifest | None:
    raw = manifest_bytes(folder)
    found = hashing.digest(raw) if raw is not None else ""
    if digest is not None and found != digest:
        raise StaleWeights(folder, expected=digest, actual=found, waited_s=0.0)
    return None if raw is None else decode(raw, os.path.join(folder, MANIFEST_NAME))


def _inside(real_root: str, path: str) -> str:
    relative = relative_to(real_root, path)
    if relative is None:
        raise PathOutsideRoot("leads out of the weights root", where=path)
    return relative


def _files_below(path: str) -> list[tuple[str, int]]:
    """All files below a real path, or the path itself, with sizes; links are not followed.

    Raises:
        OSError: part of it cannot be listed, so that files may be there that are not seen.
    """
    found: list[tuple[str, int]] = []
    names = [path]
    for folder, folders, files in os.walk(path, onerror=_raise_unless_gone):
        links = (name for name in folders if os.path.islink(os.path.join(folder, name)))
        names.extend(os.path.join(folder, name) for name in (*files, *links))
    for name in names:
        try:
            status = os.lstat(name)
        except (FileNotFoundError, NotADirectoryError):
            continue  # gone since it was listed
        if not stat.S_ISDIR(status.st_mode):
            found.append((name, status.st_size))
    return found


def _folders_below(path: str) -> list[str]:
    return [folder for folder, _, _ in os.walk(path, onerror=_raise_unless_gone)]


def _raise_unless_gone(fault: OSError) -> None:
    if not isinstance(fault, (FileNotFoundError, NotADirectoryError)):
        raise fault
