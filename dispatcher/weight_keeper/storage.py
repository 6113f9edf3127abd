"""The place of weights, and the operations that the keeper needs of it."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from dispatcher.errors import PassingBackendError, PermanentBackendError

if TYPE_CHECKING:
    from trial_runtime.errors import WeightsError
    from trial_runtime.weights.usage import FileUse, Removal


class Storage(Protocol):
    """The weights of one experiment. Methods block; one thread at a time.

    All raise ``WeightsError`` where weights cannot be read, and may raise ``OSError``.
    :class:`trial_runtime.weights.remote.storage.RemoteStorage` is the other one.
    """

    @property
    def where(self) -> str:
        """The place, for people."""
        ...

    def file_use(self, path: str) -> FileUse:
        """List the files of the weights at a path."""
        ...

    def in_doubt(self, keep: Mapping[str, str | None]) -> dict[str, WeightsError]:
        """Find paths of which it is not known what they need, each with the reason."""
        ...

    def plan_removal(
        self,
        *,
        drop: Iterable[str],
        keep: Mapping[str, str | None],
        whole: Iterable[str] = (),
    ) -> Removal:
        """Plan what can be deleted when some weights go and all of ``keep`` must stay loadable.

        Args:
            drop: paths of weights that go.
            keep: paths of weights that stay → digest of the manifest, None if it may be any.
            whole: paths that stay as they lie; their references are not looked at.
        """
        ...

    def remove(self, removal: Removal) -> None:
        """Carry a plan out; again after an interruption."""
        ...

    def bytes_below(self, path: str, removal: Removal) -> int:
        """Sum the bytes of files that go and belong to a save path."""
        ...


class VersionStorage(Storage, Protocol):
    """The shared stores of one experiment; paths are as the state has them: ``omega/3.1-0a``.
    :class:`trial_runtime.weights.remote.stores.RemoteStores` is the other one."""

    def folders(self) -> list[str]:
        """List the folders that are there, versions or not."""
        ...


class FolderStorage:
    """A weights root that is a folder."""

    def __init__(self, root: Path) -> None:
        self._root = root

    @property
    def where(self) -> str:
        """The folder."""
        return str(self._root)

    def file_use(self, path: str) -> FileUse:
        """See :class:`Storage`."""
        from trial_runtime.weights.usage import file_use

        return file_use(str(self._root), path)

    def in_doubt(self, keep: Mapping[str, str | None]) -> dict[str, WeightsError]:
        """See :class:`Storage`."""
        from trial_runtime.weights.usage import in_doubt

        return in_doubt(str(self._root), keep)

    def plan_removal(
        self,
        *,
        drop: Iterable[str],
        keep: Mapping[str, str | None],
        whole: Iterable[str] = (),
    ) -> Removal:
        """See :class:`Storage`."""
        from trial_runtime.weights.usage import plan_removal

        return plan_removal(str(self._root), drop=drop, keep=keep, whole=whole)

    def remove(self, removal: Removal) -> None:
        """See :class:`Storage`."""
        from trial_runtime.weights.usage import remove

        remove(str(self._root), removal)

    def bytes_below(self, path: str, removal: Removal) -> int:
        """See :class:`Storage`."""
        total = 0
        for file in removal.delete:
            if file == path or file.startswith(f"{path}/"):
                try:
                    total += (self._root / file).lstat().st_size
                except FileNotFoundError:
                    continue
        return total


class FolderVersionStorage(FolderStorage):
    """The folder of an experiment's shared stores; it need not be there."""

    def folders(self) -> list[str]:
        """See :class:`VersionStorage`. Links are not followed."""
        return [
            f"{store}/{version}"
            for store in _folders_in(self._root)
            for version in _folders_in(self._root / store)
        ]


def _folders_in(folder: Path) -> list[str]:
    try:
        with os.scandir(folder) as entries:
            return sorted(each.name for each in entries if each.is_dir(follow_symlinks=False))
    except FileNotFoundError:
        return []


def kind_of(error: Exception) -> type[PassingBackendError | PermanentBackendError]:
    """Choose the error to raise: passing for a file system that lags, or a server that is away,
    since the next sweep asks again; permanent for one that refuses access."""
    from trial_runtime.errors import StaleWeights, StorageDenied, StorageError, StorageReadOnly
    from trial_runtime.weights.remote.faults import RemoteUnavailable

    passing = isinstance(error, StaleWeights | RemoteUnavailable | StorageError)
    passing = passing and not isinstance(error, StorageDenied | StorageReadOnly)
    return PassingBackendError if passing else PermanentBackendError
