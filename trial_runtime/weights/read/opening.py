"""Opening published weights: the manifest, its digest, and patience with slow file systems."""

from __future__ import annotations

import os
from dataclasses import dataclass, field

from trial_runtime.errors import (
    CorruptWeights,
    StaleWeights,
    StorageStale,
    WeightsError,
    WeightsNotFound,
)
from trial_runtime.weights.format import datafile
from trial_runtime.weights.format.hashing import digest as digest_of
from trial_runtime.weights.format.manifest import (
    MANIFEST_NAME,
    MAX_MANIFEST_BYTES,
    Manifest,
    decode,
)
from trial_runtime.weights.storage import faults
from trial_runtime.weights.storage.paths import regular_file, resolve_reference
from trial_runtime.weights.storage.patience import STALE_TIMEOUT_S, Patience
from trial_runtime.weights.storage.roots import Located, locate_to_read


@dataclass(frozen=True)
class OpenedManifest:
    """A manifest that was read and checked, and compared with the digest where one was given."""

    folder: str  # real path
    root: str  # what references may not leave
    manifest: Manifest
    digest: str
    _files: dict[str, str] = field(default_factory=dict, repr=False, compare=False)

    def file(self, reference: str) -> str:
        """The real path of a data file, confined to the root; a later link is refused."""
        if reference not in self._files:
            writer = self.manifest.writer
            self._files[reference] = resolve_reference(
                self.folder, reference, self.root, writer=writer
            )
        return self._files[reference]


def read_manifest(
    path: str | os.PathLike[str],
    *,
    digest: str | None = None,
    root: str | None = None,
    read_roots: tuple[str, ...] | None = None,
    stale_timeout_s: float = STALE_TIMEOUT_S,
) -> Manifest:
    """The manifest of published weights.

    Args:
        path: the folder given to ``save``.
        digest: what the manifest's digest must be; then waits as :func:`open_manifest` does.
        root: the weights root, see ``load``.
        read_roots: further folders that may be read from.
        stale_timeout_s: seconds to wait for the announced digest.

    Raises:
        WeightsNotFound, StaleWeights, CorruptWeights, PathError: see ``load``.
    """
    located = locate_to_read(path, root, read_roots)
    return open_manifest(located, digest, Patience(stale_timeout_s)).manifest


def open_manifest(located: Located, digest: str | None, patience: Patience) -> OpenedManifest:
    """Open a manifest and make sure that the files it refers to are there in full.

    With a digest, blocks until what is seen fits it, at most ``patience.timeout_s``: the
    weights were announced, so anything else is a file system that lags behind. Without
    one there is nothing to wait for.

    Args:
        located: the folder of the manifest, and the root of its references.
        digest: the announced digest of the manifest, hex; None: any will do.
        patience: the bound of the wait.

    Raises:
        WeightsNotFound: no manifest, and no digest that promised one.
        StaleWeights: the digest did not appear within the bound.
        CorruptWeights: it is damaged, or a file it refers to is missing or short.
        StorageError: the file system refuses it, see :mod:`~trial_runtime.weights.storage.faults`.
    """
    outcome: OpenedManifest | WeightsError | None = None
    for _ in patience.looks(located.path):
        try:
            outcome = _try_to_open(located, digest, patience.timeout_s)
        except StorageStale as stale:  # the export may come back while there is time
            outcome = stale
        if isinstance(outcome, OpenedManifest):
            return outcome
        if digest is None:
            break
    assert isinstance(outcome, Exception), "there is always one look"
    raise outcome


def _try_to_open(
    located: Located, digest: str | None, timeout_s: float
) -> OpenedManifest | StaleWeights | CorruptWeights | WeightsNotFound:
    """One look. Returned errors may pass with time, raised ones do not."""
    raw = manifest_bytes(located.path)
    found = digest_of(raw) if raw is not None else ""
    if digest is not None and found != digest:
        return StaleWeights(located.path, expected=digest, actual=found, waited_s=timeout_s)
    if raw is None:
        return WeightsNotFound(
            "there are no weights here (no manifest.json)",
            hint="check the path; weights appear once save() has returned",
            where=located.path,
        )
    manifest = decode(raw, os.path.join(located.path, MANIFEST_NAME))
    opened = OpenedManifest(located.path, located.root, manifest, found)
    for reference, size in manifest.files.items():
        short = _file_fault(opened, reference, size)
        if short is not None:
            return short
    return opened


def _file_fault(opened: OpenedManifest, reference: str, size: int) -> CorruptWeights | None:
    path = opened.file(reference)
    try:
        there = faults.persist(lambda: os.stat(path).st_size, path)
    except (FileNotFoundError, NotADirectoryError):
        return CorruptWeights(
            f"a data file of {opened.folder} is missing", where=path, writer=opened.manifest.writer
        )
    if there == size:
        return None
    return CorruptWeights(
        f"holds {there:,} bytes where {size:,} were published",
        where=path,
        writer=opened.manifest.writer,
    )


def manifest_bytes(folder: str) -> bytes | None:
    """The bytes of the manifest in a folder; None when there is none.

    Raises:
        CorruptWeights: it is larger than any manifest of ours.
        StorageError: the file system refuses it, which does not mean that there is none.
    """
    path = os.path.join(folder, MANIFEST_NAME)
    try:
        return faults.persist(lambda: _read_manifest(path), path)
    except (FileNotFoundError, NotADirectoryError):
        return None


def _read_manifest(path: str) -> bytes:
    with regular_file(path) as (fd, size):
        if size > MAX_MANIFEST_BYTES:
            raise CorruptWeights(
                f"a manifest of {size:,} bytes ({MAX_MANIFEST_BYTES:,} are allowed)", where=path
            )
        return _read_all(fd, size)


def _read_all(fd: int, size: int) -> bytes:
    pieces = []
    while size > 0:
        piece = os.read(fd, size)
        if not piece:
            break
        pieces.append(piece)
        size -= len(piece)
    return b"".join(pieces)


def check_data_file(opened: OpenedManifest, reference: str, fd: int, size: int) -> None:
    """Check an opened data file against its manifest before any of it is mapped.

    Args:
        opened: the manifest.
        reference: of the file, as the manifest has it.
        fd: a descriptor of the file.
        size: of the file, in bytes.

    Raises:
        CorruptWeights: another size than published, a header that cannot be, or tensors
            that would begin inside it.
    """
    manifest = opened.manifest
    where = opened.file(reference)
    if size != manifest.files[reference]:
        raise CorruptWeights(
            f"holds {size:,} bytes where {manifest.files[reference]:,} were published",
            where=where,
            writer=manifest.writer,
        )
    start = datafile.header_length(fd, size, where, manifest.writer)
    for name, entry in manifest.tensors.items():
        if entry.file == reference and entry.nbytes and entry.offset < start:
            raise CorruptWeights(
                f"tensor {name!r} begins inside the header", where=where, writer=manifest.writer
            )
