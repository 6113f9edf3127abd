"""A ledger in memory; the store's own passes the same tests."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from dispatcher.weight_keeper.ledger import Removed, RemovedWeights


@dataclass
class LedgerRow:
    id: int
    state: str = "ended"
    parent: int | None = None
    save_path: str | None = None
    number: float | None = None
    weights_digest: str | None = None
    weights_kind: str | None = "bequeath"
    asked_at: float | None = None
    ended_at: float | None = None


@dataclass
class MemoryLedger:
    rows: dict[int, LedgerRow] = field(default_factory=dict)
    pinned: dict[int, str] = field(default_factory=dict)
    removed: dict[str, RemovedWeights] = field(default_factory=dict)
    waited_for: set[int] = field(default_factory=set)

    def trials(self) -> list[LedgerRow]:
        return list(self.rows.values())

    def awaited(self) -> set[int]:
        return self.waited_for

    def pins(self) -> dict[int, str]:
        return dict(self.pinned)

    def pin(self, trial: int, note: str, at: float) -> bool:
        gone = any(one.trial == trial for one in self.removed.values())
        if not gone:
            self.pinned[trial] = note
        return not gone

    def unpin(self, trial: int) -> bool:
        return self.pinned.pop(trial, None) is not None

    def intend_removal(self, removals: Iterable[Removed], at: float) -> set[int]:
        going = [one for one in removals if one.trial not in self.pinned]
        for one in going:
            self.removed.setdefault(one.path, RemovedWeights(one.path, one.trial, one.nbytes))
        return {one.trial for one in going}

    def removal_done(self, path: str, at: float) -> None:
        self.removed[path] = self.removed[path]._replace(removed_at=at)

    def removals(self) -> list[RemovedWeights]:
        return list(self.removed.values())
