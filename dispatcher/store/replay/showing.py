"""A file of all reported metrics, for a tuner host that starts again; written beside the engine.

A million metrics take seconds to read, and the engine must not wait. So another thread reads them,
as of the moment at which they were asked for, and writes a line each; memory stays what it was.
"""

from __future__ import annotations

import itertools
import sqlite3
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Final, Self

import msgspec

from dispatcher.core.model import TrialState
from dispatcher.ports import AssessorInput
from dispatcher.store.connection import connect_reader
from dispatcher.store.faults import store_errors
from dispatcher.store.replay.background_write import Beside

#: Lines written at once.
MOST_LINES = 1_000

# In one order by the head's clock; where that stands still a trial's metrics come before its end.
# SQLite sorts in files of its own, whatever there is of it.
_IN_ORDER: Final = """
    SELECT at, 0, trial, attempt, seq, value, 0 FROM metrics WHERE counted AND NOT final
    UNION ALL
    SELECT ended_at, 1, id, 0, 0, NULL, success FROM trials WHERE state = ? AND ended_at IS NOT NULL
    ORDER BY 1, 2, 3, 4, 5
"""


class Assessed:
    """One moment of a store, in which an assessor's past is read while the head writes on."""

    def __init__(self, store: Path, raw: sqlite3.Connection) -> None:
        self._store = store
        self._raw = raw

    @classmethod
    def at_this_moment(cls, store: Path) -> Self:
        """Open the store for reading; what is committed from now on is not seen. Another thread
        may go on with it.

        Raises:
            StoreError: it cannot be opened.
        """
        return cls(store, connect_reader(store))

    def rows(self, unanswered_since: float) -> Iterator[AssessorInput]:
        """Yield all input in its order. Reads as it goes; the first one takes about as long as all
        others.

        Args:
            unanswered_since: the moment from which there was no assessor; seconds since the epoch.

        Raises:
            StoreError: it cannot be read, or :meth:`interrupt` was called.
        """
        with store_errors(self._store):
            rows = self._raw.execute(_IN_ORDER, (TrialState.ENDED,))
            for at, _, trial, attempt, seq, value, success in rows:
                answered = at <= unanswered_since
                yield AssessorInput(trial, value, attempt, seq, bool(success), answered)

    def interrupt(self) -> None:
        """End a read that is under way. From any thread."""
        self._raw.interrupt()

    def close(self) -> None:
        """Close it. Idempotent. From the reading thread."""
        self._raw.close()


class ShownFile:
    """A :class:`~dispatcher.ports.ShownPast` out of a store.

    Args:
        store: the journal's file.
        path: the file to write.
        clock: the journal's, in seconds since the epoch.
    """

    def __init__(self, store: Path, path: Path, clock: Callable[[], float] = time.time) -> None:
        self.path = path
        self._clock = clock
        self._unanswered_since: float | None = None
        self._store = store
        self._count = itertools.count()
        self._writing: Beside | None = None

    def forget(self) -> None:
        """See the port."""
        if self._unanswered_since is None:
            self._unanswered_since = self._clock()
        writing, self._writing = self._writing, None
        if writing is not None:
            writing.give_up()
        for old in (self.path, *self.path.parent.glob(f"{self.path.name}.*")):
            old.unlink(missing_ok=True)

    def write(self) -> None:
        """See the port."""
        self.forget()
        since, self._unanswered_since = self._unanswered_since, None
        assert since is not None
        draft = self.path.with_name(f"{self.path.name}.{next(self._count)}")
        assessed = Assessed.at_this_moment(self._store)

        def work(writing: Beside) -> None:
            rows = assessed.rows(since)
            with draft.open("wb") as file:
                while lines := [msgspec.json.encode(x) for x in itertools.islice(rows, MOST_LINES)]:
                    if writing.given_up:
                        return
                    file.write(b"\n".join(lines) + b"\n")

        failing = "what trials have reported cannot be laid down for the tuner"
        self._writing = Beside("shown-past", assessed, draft, self.path, work, failing)
        self._writing.start()

    def check(self) -> None:
        """See the port."""
        if self._writing is not None and self._writing.error is not None:
            raise self._writing.error

    def close(self) -> None:
        """See the port."""
        writing = self._writing
        self.forget()
        if writing is not None:
            writing.end()
