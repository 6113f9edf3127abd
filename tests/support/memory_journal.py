"""A journal that forgets when its process ends, and is otherwise :class:`SqliteJournal`'s twin.

Events go through the codec, so that what would not survive the disk does not survive here.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from dispatcher import codec, state_codec
from dispatcher.core import State
from dispatcher.core.events import MetricReported, is_journalled
from dispatcher.core.model import Trial
from dispatcher.ports import Base, JournalEntry, JournalRow, Snapshot


class MemoryJournal:
    """Implements :class:`dispatcher.ports.Journal`."""

    folder = Path("/in memory")

    def __init__(self) -> None:
        self._rows: list[tuple[int, float, str, bytes]] = []
        self._metrics: dict[tuple[int, int], tuple[int, str]] = {}
        self._snapshots: list[Snapshot] = []
        self.metrics: dict[tuple[int, int, int], str] = {}  # by trial, attempt, seq; all of them
        self.appends = 0
        self.base: Base | None = None  # what a replay begins with, see MemoryCompaction

    def append(
        self, entries: Sequence[JournalEntry], touched: Iterable[Trial], *, durable: bool
    ) -> int:
        """See the Protocol."""
        self.appends += 1
        for at, event, counted, _ in entries:
            if isinstance(event, MetricReported):
                self.metrics[event.trial, event.attempt, event.seq] = event.value
            if isinstance(event, MetricReported) and counted:
                self._metrics[event.trial, event.attempt] = (event.seq, event.value)
            if is_journalled(event):
                row = (len(self._rows) + 1, at, type(event).__name__, codec.encode(event))
                self._rows.append(row)
        return len(self._rows)

    def rows(self, after: int = 0) -> Iterator[JournalRow]:
        """See the Protocol."""
        for number, at, kind, payload in self._rows[after:]:
            event = codec.decode(kind, payload)
            yield JournalRow(number, at, event)

    def last_metric(self, trial: int, attempt: int) -> tuple[int, str] | None:
        """See the Protocol."""
        return self._metrics.get((trial, attempt))

    def save_snapshot(self, snapshot: Snapshot) -> None:
        """See the Protocol."""
        self._snapshots = [*self._snapshots, snapshot][-2:]

    def latest_snapshot(self) -> Snapshot | None:
        """See the Protocol."""
        return self._snapshots[-1] if self._snapshots else None

    def close(self) -> None:
        """Nothing to close."""

    def counted(self) -> dict[tuple[int, int], str]:
        """The newest metric of each attempt, of those that were taken."""
        return {attempt: value for attempt, (_, value) in self._metrics.items()}

    @property
    def last(self) -> int:
        """Number of the newest row."""
        return len(self._rows)

    def photograph(self) -> dict[str, Any]:
        """All that it holds now, for :meth:`restore`."""
        held = {name: copy.copy(value) for name, value in self.__dict__.items() if name != "_rows"}
        return {**held, "_rows": len(self._rows)}

    def restore(self, held: dict[str, Any]) -> None:
        """Be as then: rows are only ever added, so that their number is enough."""
        rows = self._rows[: held["_rows"]]
        self.__dict__.update({name: copy.copy(value) for name, value in held.items()})
        self._rows = rows


class MemoryCompaction:
    """:class:`~dispatcher.store.compaction.Compaction`'s twin, for a tuner with a state of its
    own: what lies before the base is not read any more (and stays, for whoever judges)."""

    def __init__(
        self, journal: MemoryJournal, rows_between: int, durable: Callable[[], None]
    ) -> None:
        self._journal = journal
        self._rows_between = rows_between
        self._durable = durable  # called when a base was made

    def base(self) -> Base | None:
        """What a replay begins with."""
        return self._journal.base

    def past_calls(self) -> list[list[Any]]:
        """None: its state has them."""
        return []

    def offer(self, state: State, row: int) -> None:
        """See the port. Whoever offers has kept the tuner's state as of then."""
        kept = self._journal.latest_snapshot()
        assert kept is not None
        assert kept.number >= row, f"a base as of {row} lies beyond the state as of {kept.number}"
        before = self._journal.base.number if self._journal.base is not None else 0
        if row - before >= self._rows_between:
            self._journal.base = Base(row, tuple(state_codec.encode_state(state)))
            self._durable()

    def tidy(self) -> bool:
        """Nothing to remove."""
        return False
