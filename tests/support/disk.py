"""The journal as a machine that fails keeps it: refused commits, crashes around them, power
cuts that take what nobody waited for."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

from dispatcher.core.events import TunerStateTaken, is_journalled
from dispatcher.core.model import Trial
from dispatcher.errors import StoreError
from dispatcher.ports import Journal, JournalEntry, JournalRow, Snapshot
from dispatcher.store.journal import SqliteJournal
from tests.support.memory_journal import MemoryJournal

if TYPE_CHECKING:
    from tests.support.world import World


class Disk:
    """Implements :class:`dispatcher.ports.Journal` around one that does not fail."""

    def __init__(self, world: World, journal: Journal) -> None:
        self._world = world
        self._journal = journal
        self._safe: dict[str, Any] = {}  # as of the last commit that was waited for
        self.sync()
        self.last = 0  # number of the newest row
        self.before = 0  # that before the newest batch
        self.refuse_next: str | None = None  # "before" or "after" the commit itself
        self._committed: list[JournalRow] = []  # where rows may be folded away

    def append(
        self, entries: Sequence[JournalEntry], touched: Iterable[Trial], *, durable: bool
    ) -> int:
        """Dies or is refused before the commit, or after it and before anything left."""
        self._world.step("commit")
        refusal, self.refuse_next = self.refuse_next, None
        if refusal == "before":
            raise StoreError("the disk is full, so nothing more can be journalled: ENOSPC")
        self.before = self.last
        number = self.last = self._journal.append(entries, touched, durable=durable)
        self._remember(entries)
        if durable:
            self.sync()
        if entries:
            self._world.moved_at = self._world.now
            self._world.committed(entries)
        if refusal == "after":  # an error of the last fsync: what is on disk, nobody can know
            raise StoreError("the disk refused to read or write: EIO")
        self._world.step("committed")
        return number

    def _remember(self, entries: Sequence[JournalEntry]) -> None:
        if isinstance(self._journal, MemoryJournal):
            return
        kept = [x for x in entries if is_journalled(x.event)]
        for number, entry in enumerate(kept, self.last - len(kept) + 1):
            self._committed.append(JournalRow(number, entry.at, entry.event))

    def history(self) -> Iterable[JournalRow]:
        """All rows that were ever committed, and not lost with the power."""
        return self._committed or self._journal.rows()

    def rows(self, after: int = 0) -> Iterator[JournalRow]:
        """See the Protocol."""
        return self._journal.rows(after)

    def query(self, sql: str) -> Iterable[Sequence[Any]]:
        """Rows of the read models; none where the journal keeps none."""
        return self._journal.query(sql) if isinstance(self._journal, SqliteJournal) else ()

    def last_metric(self, trial: int, attempt: int) -> tuple[int, str] | None:
        """See the Protocol."""
        return self._journal.last_metric(trial, attempt)

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """See the Protocol."""
        self._world.step("snapshot")
        self._world.met.add(TunerStateTaken.__name__)
        self._journal.save_snapshot(snapshot)
        self.sync()
        self._world.step("snapshot kept")

    def latest_snapshot(self) -> Snapshot | None:
        """See the Protocol."""
        return self._journal.latest_snapshot()

    def close(self) -> None:
        """Nothing to close."""

    def sync(self) -> None:
        """What was written by now is safe."""
        if self._world.odds.power_cuts and isinstance(self._journal, MemoryJournal):
            self._safe = self._journal.photograph()

    def lose_power(self) -> None:
        """What was committed without waiting for the disk is gone."""
        if isinstance(self._journal, MemoryJournal):
            self._journal.restore(self._safe)
            self.last = self.before = self._journal.last
            self._world.forget_rows(self.last)
