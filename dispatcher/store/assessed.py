"""The input of an assessor so far: intermediate metrics of all trials, and how they ended."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Final, Self

from sqlalchemy import Connection

from dispatcher.core.model import TrialState
from dispatcher.ports import AssessorInput
from dispatcher.store.connection import connect_reader, raw_of
from dispatcher.store.faults import UNREADABLE, store_error

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

    def __init__(self, store: Path, connection: Connection) -> None:
        self._store = store
        self._connection = connection
        self._raw = raw_of(connection)

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
        try:
            rows = self._raw.execute(_IN_ORDER, (TrialState.ENDED,))
            for at, _, trial, attempt, seq, value, success in rows:
                answered = at <= unanswered_since
                yield AssessorInput(trial, value, attempt, seq, bool(success), answered)
        except UNREADABLE as error:
            raise store_error(error, str(self._store)) from error

    def interrupt(self) -> None:
        """End a read that is under way. From any thread."""
        self._raw.interrupt()

    def close(self) -> None:
        """Close it. Idempotent. From the reading thread."""
        self._connection.close()
