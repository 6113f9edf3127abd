"""Removal of versions of shared stores that are not needed, and of what dead publishers left.

The journal is what remembers: a version is off the books before its folder goes, and no reader
is ever sent to one that is. So a crash in between leaves a folder that is no version any more,
which is found here again, as one is that a trial wrote and never offered. The steps for a folder
have an order that no publisher can cross:

1. The folders are listed.
2. Folders of attempts that are over are selected: no message of such an attempt counts.
3. The holder of the state names the versions that may go, and those there are (:class:`Granted`).
4. What may go is removed, with the folders of 2 that are no version. By file: those in which
   versions that stay have tensors stay, too.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from dispatcher.errors import PassingBackendError
from dispatcher.weight_keeper.storage import VersionStorage, kind_of
from trial_runtime.failpoints import failpoint

#: How attempts call the folders of what they publish, see :mod:`trial_runtime.stores`.
_NAME = re.compile(r"(?P<trial>\d+)\.(?P<attempt>\d+)-[0-9a-f]+")


@dataclass(frozen=True, slots=True)
class Granted:
    """The answer of the holder of the state. ``removed``: paths of versions that went off the
    books just now; ``kept``: path → digest of all that are there."""

    removed: tuple[str, ...]
    kept: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class Swept:
    """The result of a sweep. ``leftovers`` are folders that were no version."""

    versions: int
    leftovers: int
    files: int
    nbytes: int

    def to_json(self) -> dict[str, int]:
        """Return plain values for JSON."""
        return {
            "versions": self.versions,
            "leftovers": self.leftovers,
            "files": self.files,
            "bytes": self.nbytes,
        }


class Attempts(Protocol):
    """Knows which attempts are over."""

    def attempts_over(self, attempts: Collection[tuple[int, int]]) -> set[tuple[int, int]]:
        """Select those of which no message counts any more."""
        ...


class StoreSweep:
    """Sweeps the shared stores of one experiment. One thread; methods block for the disk.

    Args:
        storage: the versions of the stores.
        attempts: knows which are over.
        ask: asks the holder of the state, and lets it take versions off the books; None if there
            was no answer: then nothing is removed.
    """

    def __init__(
        self, storage: VersionStorage, attempts: Attempts, ask: Callable[[], Granted | None]
    ) -> None:
        self._storage = storage
        self._attempts = attempts
        self._ask = ask
        self._due: set[str] = set()  # off the books, and perhaps still there
        self._kept: frozenset[str] = frozenset()  # that were there at the last answer
        self._in_use: frozenset[str] = frozenset()  # no versions, with files that versions need

    def look(self, *, over_bound: bool = True) -> Swept:
        """Remove what may go.

        Args:
            over_bound: ask in any case, and not only where there are folders of attempts that are
                over and were no versions at the last answer.

        Raises:
            PassingBackendError, PermanentBackendError: something cannot be read or removed; the
                next look tries again.
        """
        from trial_runtime.errors import WeightsError

        try:
            return self._look(over_bound)
        except WeightsError as error:
            raise kind_of(error)(
                f"versions of shared stores were not removed: {error.message}",
                hint=error.hint,
                where=error.where,
            ) from error
        except OSError as error:
            raise PassingBackendError(
                f"versions of shared stores could not be removed: {error.strerror or error}",
                hint="the next sweep tries again",
                where=str(error.filename or self._storage.where),
            ) from error

    def _look(self, over_bound: bool) -> Swept:
        there = self._storage.folders()
        over = self._over(path for path in there if path not in self._kept)
        failpoint("keeper.versions.listed")
        if not (over_bound or over - self._in_use or self._due):
            return Swept(0, 0, 0, 0)
        granted = self._ask()
        if granted is None:
            return Swept(0, 0, 0, 0)
        failpoint("keeper.versions.granted")
        self._kept = frozenset(granted.kept)
        self._due.update(granted.removed)
        leftovers = over - self._kept - self._due
        drop = self._due | leftovers
        if not drop:
            return Swept(0, 0, 0, 0)
        removal = self._storage.plan_removal(drop=sorted(drop), keep=granted.kept)
        self._storage.remove(removal)
        failpoint("keeper.versions.removed")
        versions, self._due = len(self._due), set()
        self._in_use = frozenset(drop).intersection(self._storage.folders())
        return Swept(versions, len(leftovers), len(removal.delete), removal.nbytes)

    def _over(self, paths: Iterable[str]) -> set[str]:
        owners: dict[str, tuple[int, int]] = {}
        for path in paths:
            found = _NAME.fullmatch(path.rpartition("/")[2])
            if found is not None:
                owners[path] = (int(found["trial"]), int(found["attempt"]))
        if not owners:
            return set()
        over = self._attempts.attempts_over(set(owners.values()))
        return {path for path, owner in owners.items() if owner in over}
