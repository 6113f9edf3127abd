"""Versions of shared stores on a remote root: weights like others, in a folder of their own."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Optional

from trial_runtime.errors import WeightsError
from trial_runtime.weights.remote import record as records
from trial_runtime.weights.remote.place import Place
from trial_runtime.weights.remote.storage import RemoteStorage
from trial_runtime.weights.storage.paths import STORES_NAME
from trial_runtime.weights.usage import FileUse, Removal


class RemoteStores:
    """The shared stores of one experiment. One thread; methods block for the network.

    Paths are below the stores: ``omega/3.1-0a`` lies at ``.stores/omega/3.1-0a``.
    """

    def __init__(self, place: Place) -> None:
        self._place = place
        self._storage = RemoteStorage(place)

    @property
    def where(self) -> str:
        """The stores' place, for people."""
        return f"{self._storage.where}/{STORES_NAME}"

    def folders(self) -> list[str]:
        """All versions that have an object or a record there."""
        found = set()
        for top in (records.PUBLISHED, records.OBJECTS):
            for name in self._place.listing(f"{top}/{STORES_NAME}"):
                _, _, store, version, *_ = name.split("/")
                found.add(f"{store}/{version}")
        return sorted(found)

    def file_use(self, path: str, *, digest: Optional[str] = None) -> FileUse:
        """See :meth:`RemoteStorage.file_use`."""
        return self._storage.file_use(_whole(path), digest=digest)

    def in_doubt(self, keep: Mapping[str, Optional[str]]) -> dict[str, WeightsError]:
        """See :meth:`RemoteStorage.in_doubt`."""
        doubts = self._storage.in_doubt({_whole(path): digest for path, digest in keep.items()})
        return {path: doubts[_whole(path)] for path in keep if _whole(path) in doubts}

    def plan_removal(
        self,
        *,
        drop: Iterable[str],
        keep: Mapping[str, Optional[str]],
        whole: Iterable[str] = (),
    ) -> Removal:
        """See :meth:`RemoteStorage.plan_removal`."""
        return self._storage.plan_removal(
            drop=[_whole(path) for path in drop],
            keep={_whole(path): digest for path, digest in keep.items()},
            whole=[_whole(path) for path in whole],
        )

    def remove(self, removal: Removal) -> None:
        """See :meth:`RemoteStorage.remove`."""
        self._storage.remove(removal)

    def bytes_below(self, path: str, removal: Removal) -> int:
        """See :meth:`RemoteStorage.bytes_below`."""
        return self._storage.bytes_below(_whole(path), removal)


def _whole(path: str) -> str:
    return f"{STORES_NAME}/{path}"
