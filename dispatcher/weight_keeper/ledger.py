"""The keeper's view of trials, and its memory: a Protocol, so that it need not know a store."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple, Protocol


class KeptTrial(Protocol):
    """A trial in the ledger. ``number`` is the value by which trials compare; the
    moments are of one clock that never goes back."""

    @property
    def id(self) -> int: ...
    @property
    def state(self) -> str: ...
    @property
    def parent(self) -> int | None: ...
    @property
    def save_path(self) -> str | None: ...
    @property
    def number(self) -> float | None: ...
    @property
    def weights_digest(self) -> str | None: ...
    @property
    def weights_kind(self) -> str | None: ...
    @property
    def asked_at(self) -> float | None: ...
    @property
    def ended_at(self) -> float | None: ...


class Removed(Protocol):
    """Weights that are gone, or (``removed_at`` is None) meant to be gone."""

    @property
    def path(self) -> str: ...
    @property
    def trial(self) -> int: ...
    @property
    def nbytes(self) -> int: ...
    @property
    def removed_at(self) -> float | None: ...


class RemovedWeights(NamedTuple):
    """One path whose weights go. Implements :class:`Removed`."""

    path: str
    trial: int
    nbytes: int
    removed_at: float | None = None


class Ledger(Protocol):
    """Trials, pins and removals. One thread at a time; may block; raises ``StoreError``."""

    def trials(self) -> Sequence[KeptTrial]:
        """Return all trials and open requests."""
        ...

    def awaited(self) -> set[int]:
        """Return the trials that open requests have waited for."""
        ...

    def pins(self) -> dict[int, str]:
        """Return the pinned trials, each with its note."""
        ...

    def pin(self, trial: int, note: str, at: float) -> bool:
        """Pin a trial's weights, durably; false if they are gone, or about to go.

        Args:
            trial: the trial's number.
            note: why, for people.
            at: seconds since the epoch.
        """
        ...

    def unpin(self, trial: int) -> bool:
        """Take a pin away; false if there was none."""
        ...

    def intend_removal(self, removals: Iterable[Removed], at: float) -> set[int]:
        """Write down durably what is about to go, but for what is pinned by now; return the
        trials whose weights go. Idempotent by path."""
        ...

    def removal_done(self, path: str, at: float) -> None:
        """Write down that the weights at a path are gone. Idempotent."""
        ...

    def removals(self) -> Sequence[Removed]:
        """Return all removals, done or meant."""
        ...
