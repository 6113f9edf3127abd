"""The objects of weights on a remote root, and the removal of those that nothing needs.

The counterpart of :mod:`trial_runtime.weights.usage` for a remote root. Objects lie with the
save path that wrote them and are referred to by the records of descendants only, which have
inherited them from a record that is kept while they are live: so no upload can meet a removal.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final

from trial_runtime.errors import CorruptWeights, StaleWeights, WeightsError
from trial_runtime.failpoints import failpoint
from trial_runtime.weights.remote import record as records
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.pulling import read_record
from trial_runtime.weights.remote.record import MAX_RECORD_BYTES, Record
from trial_runtime.weights.usage import FileUse, Removal

#: From so many save paths on, all of the experiment's files are listed at once.
_MANY: Final = 20


class RemoteStorage:
    """The weights of one experiment on a remote root. One thread; methods block for the network.

    Records never change, so each is read once.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._known: dict[str, Record] = {}
        self._sizes: dict[str, int] = {}  # of what the last plan removes
        self._cleared: set[str] = set()  # removed, with all objects: nothing comes there again

    @property
    def where(self) -> str:
        """The experiment's place, for people."""
        return self._place.root.shown

    def file_use(self, path: str, *, digest: str | None = None) -> FileUse:
        """See :func:`trial_runtime.weights.usage.file_use`; files are objects and records.

        Raises:
            NotPublished, CorruptWeights, RemoteUnavailable, RemoteRefused.
        """
        own = self._below(path)
        inherited: dict[str, int] = {}
        for record in self._records(path, digest, own):
            for file in record.files:
                if file.owner != path:
                    inherited[file.name] = file.nbytes
        return FileUse(path, own, inherited)

    def in_doubt(self, keep: Mapping[str, str | None]) -> dict[str, WeightsError]:
        """See :func:`trial_runtime.weights.usage.in_doubt`.

        Raises:
            RemoteUnavailable, RemoteRefused.
        """
        doubts: dict[str, WeightsError] = {}
        for path, digest in keep.items():
            try:
                self._records(path, digest, {})
            except (StaleWeights, CorruptWeights) as error:
                doubts[path] = error
        return doubts

    def plan_removal(
        self,
        *,
        drop: Iterable[str],
        keep: Mapping[str, str | None],
        whole: Iterable[str] = (),
    ) -> Removal:
        """See :func:`trial_runtime.weights.usage.plan_removal`; no path's objects lie below
        another's, so nothing of ``whole`` is ever below what goes.

        Raises:
            NotPublished, CorruptWeights: a record among ``keep`` is missing or damaged; delete
                nothing then.
            RemoteUnavailable, RemoteRefused.
        """
        dropped = [path for path in dict.fromkeys(drop) if path not in self._cleared]
        users: dict[str, list[str]] = {}
        for path, digest in keep.items() if dropped else ():
            # Without a digest it refers to nothing of others: plain files, or a trial that is
            # live, whose parent is kept and names all that it may inherit.
            for record in self._records(path, digest, {}):
                for name in {file.name for file in record.files if file.owner != path}:
                    users.setdefault(name, []).append(path)
        delete: dict[str, int] = {}
        kept_for: dict[str, tuple[str, ...]] = {}
        for path, below in self._below_all(dropped).items():
            if not below:
                self._cleared.add(path)
            for name, nbytes in below.items():
                if name in users:
                    kept_for[name] = tuple(users[name])
                else:
                    delete[name] = nbytes
        self._sizes = delete
        return Removal(
            delete=tuple(sorted(delete, key=lambda name: (name.startswith(records.OBJECTS), name))),
            folders=tuple(
                folder(path)
                for path in dropped
                for folder in (records.records_of, records.objects_of)
            ),
            nbytes=sum(delete.values()),
            kept_for=kept_for,
        )

    def remove(self, removal: Removal) -> None:
        """Carry a plan out: records first, so that no reader finds half of something.

        Raises:
            RemoteUnavailable, RemoteRefused: some are still there; remove them again.
        """
        for name in removal.delete:
            self._place.remove(name)
            self._known.pop(name, None)
            failpoint("remote.file.removed")
        for folder in removal.folders:
            self._place.remove_folder(folder)

    def bytes_below(self, path: str, removal: Removal) -> int:
        """Bytes of the files that go and belong to a save path."""
        folders = (f"{records.records_of(path)}/", f"{records.objects_of(path)}/")
        return sum(self._sizes.get(name, 0) for name in removal.delete if name.startswith(folders))

    def _below(self, path: str) -> dict[str, int]:
        return {
            **self._place.listing(records.records_of(path)),
            **self._place.listing(records.objects_of(path)),
        }

    def _below_all(self, paths: list[str]) -> dict[str, dict[str, int]]:
        if len(paths) < _MANY:
            return {path: self._below(path) for path in paths}
        found: dict[str, dict[str, int]] = {path: {} for path in paths}
        owners = {
            folder(path): path
            for path in paths
            for folder in (records.records_of, records.objects_of)
        }
        for top in (records.PUBLISHED, records.OBJECTS):
            for name, nbytes in self._place.listing(top).items():
                owner = owners.get(name.rpartition("/")[0])
                if owner is not None:
                    found[owner][name] = nbytes
        return found

    def _records(self, path: str, digest: str | None, there: Mapping[str, int]) -> list[Record]:
        """The record of a digest, or all of those that are there."""
        if digest is not None:
            name = records.record_name(path, digest)
            if name not in self._known:
                self._known[name] = read_record(self._place, path, digest, "bequeath")
            return [self._known[name]]
        folder = f"{records.records_of(path)}/"
        return [self._any(path, name) for name in there if name.startswith(folder)]

    def _any(self, path: str, name: str) -> Record:
        if name not in self._known:
            raw = self._place.read(name, MAX_RECORD_BYTES)
            where = f"{self._place.root.shown}/{name}"
            if raw is None:
                raise CorruptWeights("is listed and cannot be read", where=where)
            digest = name.rpartition("/")[2].removesuffix(".json")
            self._known[name] = records.decode(raw, where, save_path=path, digest=digest)
        return self._known[name]
