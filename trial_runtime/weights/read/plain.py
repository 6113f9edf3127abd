"""Weights that a trial wrote without this package: any file, or a folder of files.

The agent that ran the trial makes them durable and digests them before the commit; the
agent of a child compares them before the child starts.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal

import msgspec

from trial_runtime.durable_file import sync_folder
from trial_runtime.errors import (
    CorruptWeights,
    PathThroughLink,
    StaleWeights,
    StorageStale,
    WeightsError,
    WeightsNotFound,
    WeightsTaken,
)
from trial_runtime.weights.format import hashing
from trial_runtime.weights.format.datafile import OWN_NAME, writer_of
from trial_runtime.weights.format.manifest import MANIFEST_NAME
from trial_runtime.weights.read.held import Held, hold
from trial_runtime.weights.read.opening import OpenedManifest, manifest_bytes, open_manifest
from trial_runtime.weights.storage import faults
from trial_runtime.weights.storage.leftovers import is_silly, is_unnamed
from trial_runtime.weights.storage.paths import regular_file, relative_to
from trial_runtime.weights.storage.patience import STALE_TIMEOUT_S, Patience
from trial_runtime.weights.storage.roots import locate_to_read

MAX_FILES: Final = 10_000


@dataclass(frozen=True)
class PlainFile:
    """One file: its path below the folder ('.' when the path itself is the file)."""

    path: str
    nbytes: int
    blake3: str


@dataclass(frozen=True)
class FilesDigest:
    """The files at a path; ``digest`` covers names, sizes and contents."""

    digest: str
    files: tuple[PlainFile, ...]  # sorted by path
    nbytes: int


@dataclass(frozen=True)
class PublishedDigest:
    """The digest that a commit announces, and which of the two kinds of weights it names."""

    kind: Literal["bequeath", "files"]
    digest: str
    nbytes: int  # of everything a reader of these weights may have to read


def published_digest(
    path: str, *, root: str | None = None, max_files: int = MAX_FILES, writer: str = ""
) -> PublishedDigest:
    """The digest of whatever a trial left at its ``save_path``; makes it durable first.

    A folder with our manifest is named by the manifest's digest (files beside it are not
    covered), anything else by :func:`digest_tree`. Blocks on the disk.

    Args:
        path: the canonical ``save_path``, absolute.
        root: the weights root that the manifest may not lead out of, see ``load``.
        max_files: as in :func:`digest_tree`.
        writer: the trial and attempt whose weights they are to be, such as ``17.2``.

    Raises:
        WeightsNotFound: there is nothing, or only what a save has not finished.
        WeightsTaken: another attempt of that trial has saved here.
        CorruptWeights: a manifest that cannot be read, or whose files are missing or short.
        PathThroughLink, WeightsError, StorageError: see :func:`digest_tree`.
    """
    raw = manifest_bytes(path)
    if raw is None:
        tree = digest_tree(path, max_files=max_files)
        names = [file.path for file in tree.files]
        if faults.persist(lambda: all(_is_piece(path, name, writer) for name in names), path):
            raise WeightsNotFound(
                "holds nothing but what a save has left unfinished",
                hint="the trial has to write its weights to its save_path before it ends",
                where=path,
            )
        return PublishedDigest("files", tree.digest, tree.nbytes)
    return _digest_of_save(path, root, writer)


def saved_again(
    path: str, announced: str, *, root: str | None = None, writer: str = ""
) -> PublishedDigest | None:
    """The weights at a ``save_path`` if they are another save than the announced one; None if
    they are that one. A trial that is ended between the rename of a manifest and its announcement
    has replaced what it announced before. Blocks on the disk.

    Args:
        path: the canonical ``save_path``, absolute.
        announced: the digest of the manifest that its writer announced.
        root: the weights root that the manifest may not lead out of, see ``load``.
        writer: as in :func:`published_digest`.

    Raises:
        WeightsNotFound: there is no manifest.
        WeightsTaken: another attempt of that trial has saved here.
        CorruptWeights: one that cannot be read, or whose files are missing or short.
        PathError, StorageError: see :func:`published_digest`.
    """
    raw = manifest_bytes(path)
    if raw is not None and hashing.digest(raw) == announced:
        return None
    return _digest_of_save(path, root, writer)


def _digest_of_save(path: str, root: str | None, writer: str) -> PublishedDigest:
    opened = open_manifest(locate_to_read(path, root), None, Patience(0.0))
    saved_by = opened.manifest.writer
    # One that was given up and lives on may have published in the very moment in which its
    # successor did.
    if _is_another_attempt(saved_by, writer):
        raise WeightsTaken(
            f"holds what attempt {saved_by} has saved; this is {writer}",
            hint="it was given up and went on; nobody inherits these weights",
            where=path,
        )
    faults.persist(lambda: _sync_published(opened), path)
    return PublishedDigest("bequeath", opened.digest, opened.manifest.nbytes)


def _is_another_attempt(saved_by: str, writer: str) -> bool:
    """Whether both are attempts of one trial. Another trial's name is a copy made by this one."""
    return saved_by != writer and _are_of_one_trial(saved_by, writer)


def _are_of_one_trial(one: str, other: str) -> bool:
    return one.rpartition(".")[0] == other.rpartition(".")[0] != ""


def _is_piece(folder: str, name: str, writer: str) -> bool:
    """Whether a file belongs to a save that is not finished, or was removed. An attempt that was
    given up and lives on may save where its successor has saved nothing, and that is nobody's
    weights; nor is what its own save has written until its manifest says what it is a part of."""
    if is_unnamed(name) or is_silly(name):
        return True
    if not OWN_NAME.fullmatch(name):
        return False
    try:
        return _are_of_one_trial(writer_of(os.path.join(folder, name)), writer)
    except (CorruptWeights, PathThroughLink):  # nothing that a save makes
        return False


def await_published(
    path: str,
    kind: Literal["bequeath", "files"],
    digest: str,
    *,
    root: str | None = None,
    writer: str = "",
    stale_timeout_s: float = STALE_TIMEOUT_S,
) -> None:
    """Wait until weights that another host committed are visible here, within a bound.

    Plain files are read and compared as a whole. Of ours, the manifest is compared and the
    sizes of its files; each load checks the tensors that it reads.

    Args:
        path: the canonical path, absolute.
        kind: as :func:`published_digest` returned it.
        digest: likewise.
        root: the weights root, see ``load``.
        writer: the trial and attempt that wrote it, for the error.
        stale_timeout_s: seconds to wait.

    Raises:
        StaleWeights, CorruptWeights: they did not appear, or are damaged.
    """
    patience = Patience(stale_timeout_s)
    if kind == "files":
        verify_tree(path, digest, writer=writer, patience=patience)
    else:
        open_manifest(locate_to_read(path, root), digest, patience)


def _sync_published(opened: OpenedManifest) -> None:
    """Make files beside a manifest durable: after a ``save`` they are, in a copied folder not."""
    for name in (*opened.manifest.files, MANIFEST_NAME):
        path = opened.file(name)
        if os.path.dirname(path) == opened.folder:
            with regular_file(path) as (fd, _):
                os.fsync(fd)
    sync_folder(opened.folder)


def digest_tree(path: str, *, max_files: int = MAX_FILES, sync: bool = True) -> FilesDigest:
    """Digest a file, or all files below a folder.

    Args:
        path: a file or folder; resolved by the caller.
        max_files: refuse more: weights in a hundred thousand files are a mistake.
        sync: make files and folders durable before they are read. Blocks on the disk.

    Raises:
        WeightsNotFound: nothing is there, or a folder without any file.
        PathThroughLink: a link leads out of the folder.
        WeightsError: too many files, or something that is no file (a socket, a FIFO).
        StorageError: the file system refuses to read or to sync them.
    """
    return faults.persist(lambda: _digest_tree(path, max_files, sync, {}), path)


if TYPE_CHECKING:
    #: By canonical path, files whose very bytes are to be loaded once they are found to be right.
    Holding = dict[str, Held | None]


def _digest_tree(path: str, max_files: int, sync: bool, holding: Holding) -> FilesDigest:
    holding.update(dict.fromkeys(holding))  # this look compares none of an earlier look's bytes
    # Not os.path.isfile and its like: they take a failing disk for an absent file.
    try:
        kind = stat.S_IFMT(os.lstat(path).st_mode)
    except (FileNotFoundError, NotADirectoryError):
        kind = 0
    if kind == stat.S_IFLNK:
        raise PathThroughLink("is a symbolic link", where=path)
    if kind == stat.S_IFREG:
        files = [_digest_file(path, ".", sync, os.path.abspath(path), holding)]
        if sync:
            sync_folder(os.path.dirname(os.path.abspath(path)))
    elif kind == stat.S_IFDIR:
        files = _digest_folder(path, max_files, sync, holding)
    else:
        raise WeightsNotFound(
            "there are no weights here",
            hint="the trial has to write its weights to its save_path before it ends",
            where=path,
        )
    if not files:
        raise WeightsNotFound("this folder of weights holds no file", where=path)
    listing = msgspec.json.encode([(f.path, f.nbytes, f.blake3) for f in files])
    return FilesDigest(hashing.digest(listing), tuple(files), sum(f.nbytes for f in files))


def _digest_folder(top: str, max_files: int, sync: bool, holding: Holding) -> list[PlainFile]:
    found: list[str] = []
    folders: list[str] = []
    pending = [top]
    real_top = os.path.abspath(top)  # resolved before, or somebody has put a link there since
    while pending:
        folder = pending.pop()
        folders.append(folder)
        with os.scandir(folder) as entries:
            for entry in entries:
                if entry.is_symlink():
                    _refuse_link_out(real_top, entry.path)
                if entry.is_dir(follow_symlinks=False):
                    pending.append(entry.path)
                else:
                    found.append(entry.path)
        if len(found) + len(folders) > max_files:
            raise WeightsError(
                f"holds more than {max_files:,} files and folders",
                hint="save into one file, or with trial_runtime.weights.save",
                where=top,
            )
    files = [
        _digest_file(path, os.path.relpath(path, top).replace(os.sep, "/"), sync, real_top, holding)
        for path in found
    ]
    if sync:
        for folder in folders:
            sync_folder(folder)
    return sorted(files, key=lambda f: f.path)


def _refuse_link_out(real_top: str, path: str) -> None:
    real = os.path.realpath(path)
    if relative_to(real_top, real) is None:
        raise PathThroughLink(f"a symbolic link leads out of the weights, to {real}", where=path)
    if not stat.S_ISREG(os.stat(real).st_mode):
        raise WeightsError("a symbolic link to something that is not a file", where=path)


def _digest_file(path: str, name: str, sync: bool, top: str, holding: Holding) -> PlainFile:
    real = os.path.realpath(path)
    if relative_to(top, real) is None:
        raise PathThroughLink(f"a symbolic link leads out of the weights, to {real}", where=path)
    if real in holding:
        held = holding[real] = hold(real)
        return PlainFile(name, held.nbytes, hashing.digest(held.memory, hashing.workers()))
    with regular_file(real) as (fd, _):
        if sync:
            os.fsync(fd)
        nbytes, digest = hashing.digest_of_rest(fd)
    return PlainFile(name, nbytes, digest)


def verify_tree(
    path: str,
    digest: str,
    *,
    expected: tuple[PlainFile, ...] = (),
    max_files: int = MAX_FILES,
    writer: str = "",
    stale_timeout_s: float = STALE_TIMEOUT_S,
    patience: Patience | None = None,
) -> FilesDigest:
    """Make sure that what lies at a path has this digest.

    Waits within the bound while it does not: the file system may lag behind. Each look
    reads all of it.

    Args:
        path: a file or folder.
        digest: as :func:`digest_tree` computed it at the commit.
        expected: its files, so that the error can name the one that differs.
        max_files: as in :func:`digest_tree`.
        writer: the trial and attempt that wrote it, for the error.
        stale_timeout_s: seconds to wait.
        patience: the same with a clock of its own, for tests.

    Raises:
        StaleWeights: nothing of that digest appeared.
        CorruptWeights: the same, and ``expected`` tells which files differ.
        StorageError: the file system refuses to read them.
    """
    waiting = patience or Patience(stale_timeout_s)
    return _verify(path, digest, expected, max_files, writer, waiting, {})


def hold_verified(path: str, digest: str, file: str, patience: Patience) -> Held:
    """Do what :func:`verify_tree` does, and return one of the files: the very bytes compared.

    Args:
        path: a file or folder.
        digest: as :func:`digest_tree` computed it at the commit.
        file: the canonical path of the file to return.
        patience: how long to wait for the digest.

    Raises:
        PathThroughLink: the file is a link.
        CorruptWeights: it is none of those that have this digest.
    """
    holding: Holding = {file: None}
    _verify(path, digest, (), MAX_FILES, "", patience, holding)
    held = holding[file]
    if held is not None:
        return held
    if os.path.islink(file):
        raise PathThroughLink("is a symbolic link, not a file", where=file)
    raise CorruptWeights("is not one of the files that were committed", where=file)


def _verify(
    path: str,
    digest: str,
    expected: tuple[PlainFile, ...],
    max_files: int,
    writer: str,
    waiting: Patience,
    holding: Holding,
) -> FilesDigest:
    found = FilesDigest("", (), 0)
    for _ in waiting.looks(path):
        try:
            found = faults.persist(lambda: _digest_tree(path, max_files, False, holding), path)
        except (WeightsNotFound, FileNotFoundError, NotADirectoryError, StorageStale):
            found = FilesDigest("", (), 0)
        if found.digest == digest:
            return found
    differing = sorted({f.path for f in set(expected) ^ set(found.files)})
    if expected and found.digest:
        raise CorruptWeights(
            "changed since they were committed: " + ", ".join(differing[:5]),
            where=path,
            writer=writer,
        )
    raise StaleWeights(path, expected=digest, actual=found.digest, waited_s=waiting.timeout_s)
