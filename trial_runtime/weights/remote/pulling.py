"""From the remote root to an attempt's folder: a parent's weights, each file checked."""

from __future__ import annotations

import os
import shutil
from collections.abc import Callable
from contextlib import AbstractContextManager, suppress
from typing import BinaryIO, Final, Protocol

import trial_runtime.weights.former  # noqa: F401 - goes with 0.3
from trial_runtime.errors import CorruptWeights, StaleWeights, WeightsError
from trial_runtime.weights.cache.cache import CacheUnusable
from trial_runtime.weights.cache.entries import Sink
from trial_runtime.weights.format.manifest import MAX_MANIFEST_BYTES, decode
from trial_runtime.weights.remote import record as records
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.record import MAX_RECORD_BYTES, Record, StoredFile
from trial_runtime.weights.storage.paths import relative_to, resolve_reference
from trial_runtime.weights.storage.patience import Patience

#: Stores show at once what was written, or soon: what was committed and is not there by then
#: is lost.
APPEAR_S: Final = 30.0


class NotPublished(StaleWeights):
    """Raised when a remote root has no record of weights that were committed."""

    def __init__(self, where: str, digest: str, waited_s: float, *, in_memory: bool) -> None:
        super().__init__(where, expected=digest, actual="", waited_s=waited_s)
        self.message = f"weights with digest {digest} are not there (looked for {waited_s:.0f} s)"
        self.hint = (
            "memory:// lasts as long as the agent that holds it: it has been started anew since"
            if in_memory
            else "somebody has removed them, or the root is not the one they were written to"
        )


class Cache(Protocol):
    """The part of :class:`trial_runtime.weights.cache.cache.WeightsCache` that is used here."""

    def get(
        self, digest: str, nbytes: int, fetch: Callable[[BinaryIO], None]
    ) -> AbstractContextManager[str]:
        """See :meth:`trial_runtime.weights.cache.cache.WeightsCache.get`."""
        ...


def pull(
    place: Place,
    cache: Cache,
    view: str,
    restore_path: str,
    *,
    digest: str,
    kind: records.Kind,
    patience: Patience = Patience(APPEAR_S),  # noqa: B008 - frozen
) -> Record:
    """Lay committed weights down in a view, with all files that they refer to. Blocks.

    Files come through the host's cache: linked where the store's own readers map them, which
    never changes them; copied where a trial opens them itself.

    Args:
        place: the experiment's place on the remote root.
        cache: of this host.
        view: the attempt's folder, as its weights root; a real path.
        restore_path: canonical, below it.
        digest: the one that the head has committed.
        kind: likewise.
        patience: for a store that does not show yet what was committed, or shows it torn.

    Returns:
        The record; a child may inherit from its files.

    Raises:
        NotPublished: there is no publication of that digest.
        CorruptWeights: some of it is missing or not what was published.
        RemoteUnavailable, RemoteRefused: the remote root cannot be read.
    """
    outcome: WeightsError | None = None
    for _ in patience.looks(view):
        try:
            return _pull(place, cache, view, restore_path, digest, kind, patience.timeout_s)
        except (StaleWeights, CorruptWeights) as error:
            outcome = error
    assert outcome is not None, "there is always one look"
    raise outcome


def read_record(
    place: Place, save_path: str, digest: str, kind: records.Kind, waited_s: float = 0.0
) -> Record:
    """Read a record, in one look.

    Args:
        place: the experiment's place on the remote root.
        save_path: of the weights, canonical.
        digest: of the weights, hex.
        kind: of the weights.
        waited_s: seconds waited so far, for the error.

    Raises:
        NotPublished: it is not there.
        CorruptWeights: it is damaged.
    """
    name = records.record_name(save_path, digest)
    where = f"{place.root.shown}/{name}"
    raw = place.read(name, MAX_RECORD_BYTES)
    if raw is None:
        raise NotPublished(where, digest, waited_s, in_memory=place.root.in_memory)
    return records.decode(raw, where, save_path=save_path, digest=digest, kind=kind)


def _pull(
    place: Place,
    cache: Cache,
    view: str,
    restore_path: str,
    digest: str,
    kind: records.Kind,
    timeout_s: float,
) -> Record:
    record = read_record(place, restore_path, digest, kind, timeout_s)
    # The manifest comes last, here too: it is what makes weights of the files.
    last = records.manifest_path(restore_path) if kind == "bequeath" else ""
    for file in sorted(record.files, key=lambda each: each.path == last):
        if file.path == last:
            _check_manifest(place, cache, view, record, file)
        _lay(place, cache, view, file, shared=kind == "bequeath")
    return record


def _lay(place: Place, cache: Cache, view: str, file: StoredFile, *, shared: bool) -> None:
    target = os.path.join(view, file.path)
    os.makedirs(os.path.dirname(target), exist_ok=True)
    with suppress(FileNotFoundError):
        os.unlink(target)  # of a look before

    def fetch(out: BinaryIO) -> None:
        _fetch(place, file, out)

    try:
        with cache.get(file.blake3, file.nbytes, fetch) as path:
            if shared:
                try:
                    os.link(path, target)
                    os.chmod(target, 0o400)  # a slip of one child is not to spoil its siblings'
                    return
                except OSError:
                    pass  # another file system, or one without links
            shutil.copyfile(path, target)
    except CacheUnusable:
        _fetch_past_cache(place, file, target)


def _fetch(place: Place, file: StoredFile, out: BinaryIO) -> None:
    size = place.size(file.name)
    if size != file.nbytes:
        found = "is not there" if size is None else f"has {size:,} bytes of {file.nbytes:,}"
        raise CorruptWeights(
            f"an object of {file.path} {found}", where=f"{place.root.shown}/{file.name}"
        )
    place.fetch(file.name, out)


def _fetch_past_cache(place: Place, file: StoredFile, target: str) -> None:
    fd = os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    try:
        with Sink(fd, file.nbytes, lambda fault, _what: fault) as sink:
            _fetch(place, file, sink)  # type: ignore[arg-type]  # writes, and no more
            if sink.written != file.nbytes or sink.digest() != file.blake3:
                raise CorruptWeights(
                    f"its bytes are not those of digest {file.blake3}",
                    where=f"{place.root.shown}/{file.name}",
                )
    except BaseException:
        os.unlink(target)
        raise
    finally:
        os.close(fd)


def _check_manifest(
    place: Place, cache: Cache, view: str, record: Record, file: StoredFile
) -> None:
    """Check that all files of the manifest have been laid down, in the sizes that it names."""
    where = f"{place.root.shown}/{file.name}"
    if file.nbytes > MAX_MANIFEST_BYTES:
        raise CorruptWeights(f"a manifest of {file.nbytes:,} bytes", where=where)
    _lay(place, cache, view, file, shared=True)
    path = os.path.join(view, file.path)
    with open(path, "rb") as opened:
        manifest = decode(opened.read(MAX_MANIFEST_BYTES + 1), where)
    os.unlink(path)  # until it is known that the rest is there
    stored = {each.path: (each.nbytes, each.blake3) for each in record.files}
    for reference, nbytes in manifest.files.items():
        real = resolve_reference(os.path.dirname(path), reference, view, writer=manifest.writer)
        found = stored.get(relative_to(view, real) or "", (-1, ""))
        if found != (nbytes, manifest.digests.get(reference, found[1])):
            raise CorruptWeights(
                f"the record does not name {reference!r} as the manifest does",
                where=where,
                writer=manifest.writer,
            )
