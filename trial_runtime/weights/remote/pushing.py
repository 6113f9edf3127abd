"""From an attempt's folder to the remote root: objects first, the record last."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

from trial_runtime.errors import CorruptWeights
from trial_runtime.failpoints import failpoint
from trial_runtime.weights.format import hashing
from trial_runtime.weights.read.opening import open_manifest
from trial_runtime.weights.read.plain import PublishedDigest, digest_tree, published_digest
from trial_runtime.weights.remote import record as records
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.record import Record, StoredFile
from trial_runtime.weights.storage.paths import STORES_NAME, regular_file, relative_to
from trial_runtime.weights.storage.patience import Patience
from trial_runtime.weights.storage.roots import Located


@dataclass(frozen=True)
class Pushed:
    """The weights that are on the remote root now."""

    published: PublishedDigest
    record: Record
    uploaded_bytes: int  # without the record; less than ``published.nbytes`` where it inherits


def push(
    place: Place,
    view: str,
    save_path: str,
    *,
    writer: str,
    inherited: Mapping[str, StoredFile] | None = None,
    announced: str | None = None,
) -> Pushed:
    """Copy what lies at a save path to the remote root. Blocks; may be repeated.

    Args:
        place: the experiment's place on the remote root.
        view: the attempt's folder, as its weights root; a real path.
        save_path: canonical, below it.
        writer: trial and attempt.
        inherited: by path, the files of the parent that are on the remote root already.
        announced: the digest that the trial announced; None: it announced none.

    Raises:
        WeightsNotFound: there is nothing.
        CorruptWeights: it is damaged, or another manifest than was announced.
        RemoteUnavailable, RemoteRefused: the remote root does not take it.
    """
    at = os.path.join(view, save_path)
    published = published_digest(at, root=_root_of(view, save_path))
    if announced is not None and published.digest != announced:
        raise CorruptWeights(
            f"is not what the trial announced (digest {announced}), but {published.digest}",
            where=at,
            writer=writer,
        )
    if published.kind == "bequeath":
        files = _of_manifest(view, save_path, published.digest, inherited or {})
    else:
        files = _of_tree(view, save_path)
    uploaded = 0
    for file in files:
        if file.owner == save_path and place.size(file.name) != file.nbytes:
            place.put_file(os.path.join(view, file.path), file.name)
            uploaded += file.nbytes
    failpoint("remote.objects.uploaded")
    record = records.make(
        published.kind, published.digest, published.nbytes, writer, save_path, files
    )
    place.put_bytes(records.encode(record), record.name)
    failpoint("remote.record.uploaded")
    return Pushed(published, record, uploaded)


def _root_of(view: str, save_path: str) -> str:
    """The folder that files at a save path may not lead out of: trials may claim nothing of the
    stores', and versions of stores lie in no other folder."""
    stored = save_path.startswith(f"{STORES_NAME}/")
    return os.path.join(view, STORES_NAME) if stored else view


def _of_manifest(
    view: str, save_path: str, digest: str, inherited: Mapping[str, StoredFile]
) -> list[StoredFile]:
    """Data files in their order, then the manifest."""
    opened = open_manifest(Located(os.path.join(view, save_path), view), digest, Patience(0.0))
    files = []
    for reference in opened.manifest.files:
        path = relative_to(view, opened.file(reference))
        assert path is not None, "confined to the view"
        if relative_to(save_path, path) is None and path in inherited:
            files.append(inherited[path])
        elif reference in opened.manifest.digests:
            digest_of_file = opened.manifest.digests[reference]
            files.append(
                StoredFile(path, opened.manifest.files[reference], digest_of_file, save_path)
            )
        else:  # of an ancestor that the parent's record does not name: kept as our own
            files.append(_own(view, path, save_path))
    files.append(_own(view, records.manifest_path(save_path), save_path))
    return files


def _of_tree(view: str, save_path: str) -> list[StoredFile]:
    tree = digest_tree(os.path.join(view, save_path), sync=False)
    return [
        StoredFile(
            save_path if file.path == "." else f"{save_path}/{file.path}",
            file.nbytes,
            file.blake3,
            save_path,
        )
        for file in tree.files
    ]


def _own(view: str, path: str, save_path: str) -> StoredFile:
    with regular_file(os.path.join(view, path)) as (fd, _):
        nbytes, digest = hashing.digest_of_rest(fd)
    return StoredFile(path, nbytes, digest, save_path)
