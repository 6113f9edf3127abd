"""One experiment's store, followed: its table, and what changed since a cursor."""

from __future__ import annotations

import threading
import time
from collections import deque
from pathlib import Path
from typing import Any, Final, NamedTuple

from dispatcher import queries
from dispatcher.folders.ownership import demand_ours
from dispatcher.queries import ExperimentReader
from dispatcher.queries.changed import NOBODY
from dispatcher.web.answering import THOROUGHLY, compressed, encoded, tag_of
from dispatcher.web.followed_store import FollowedStore
from dispatcher.web.table import TrialTable

#: Trials and metrics that are read of a store at once.
MOST_AT_ONCE: Final = 5_000

#: Steps that were taken for one who asks, and that others have yet to get; and their rows. Where
#: nobody follows, nobody takes them: beyond a bound they become one that says to read all again.
MOST_ASIDE: Final = 64
MOST_ROWS_ASIDE: Final = MOST_AT_ONCE


#: Seconds between two readings of a whole store in which nobody counts changes.
_UNCOUNTED_S: Final = 5.0


class TableStep(NamedTuple):
    """The changes from one cursor to the next; ``trials`` are rows of the table."""

    before: str
    cursor: str
    anew: bool
    more: bool
    trials: list[dict[str, Any]]

    def described(self) -> dict[str, Any]:
        """Return it for JSON."""
        return {
            "cursor": self.cursor,
            "anew": self.anew,
            "more": self.more,
            "trials": self.trials,
        }


class WholeTable(NamedTuple):
    """The table as of a cursor, as JSON, plain and compressed."""

    tag: str
    body: bytes
    small: bytes


class Follower:
    """Reads one store again and again. Any thread: calls wait for one another.

    Raises:
        ExperimentNotFound: the experiment was deleted.
        NotOurs: it is somebody else's.
        StoreError: its store cannot be read.
    """

    def __init__(self, folder: Path) -> None:
        demand_ours(folder)
        self.folder = folder
        self._lock = threading.Lock()
        self._store = FollowedStore(folder, self._forget)
        self._version = -1
        self._next_first = 0.0
        self._cursor = ""
        self._table = TrialTable()
        self._whole: WholeTable | None = None
        self._aside: deque[TableStep] = deque()

    @property
    def cursor(self) -> str:
        """The cursor behind all that the table has; empty before it was read."""
        return self._cursor

    def step(self) -> TableStep | None:
        """Take in what changed, at most so much at once; None if nothing did. Each step comes once,
        whoever had it taken."""
        with self._lock:
            return self._aside.popleft() if self._aside else self._step()

    def whole(self) -> WholeTable:
        """Return the table as it is now."""
        with self._lock:
            self._step_to_end()
            if self._whole is None:
                described = {"experiment": self.folder.name, "cursor": self._cursor}
                body = encoded(described | self._table.described())
                tag = tag_of(body if self._is_uncounted else self._cursor.encode())
                self._whole = WholeTable(tag, body, compressed(body, THOROUGHLY))
            return self._whole

    def since(self, cursor: str) -> TableStep:
        """Return what changed behind any cursor, with trials as the table has them now.

        Raises:
            UserError: it is no cursor of ours.
        """
        with self._lock:
            reader = self._store.opened()
            if not cursor:
                self._step_to_end()
                return TableStep(cursor, self._cursor, anew=True, more=False, trials=[])
            found = queries.changes(reader, cursor, most=MOST_AT_ONCE)
            steps = self._step_to_end()
            if found.anew or not found.exact or any(one.anew for one in steps):
                same = cursor == self._cursor
                return TableStep(cursor, self._cursor, anew=not same, more=False, trials=[])
            touched = _touched(found)
            reached = found.cursor
            if not found.more:  # up to where the table is, so that all go on from one place
                reached = self._cursor
                touched |= {row["trial"] for one in steps for row in one.trials}
            rows = self._table.rows(touched)
            return TableStep(cursor, reached, anew=False, more=found.more, trials=rows)

    def close(self) -> None:
        """Close the store."""
        with self._lock:
            self._store.close()

    @property
    def _is_uncounted(self) -> bool:
        """Whether the store's head counts no changes, so that cursors stay as they are."""
        return self._cursor.startswith(f"{NOBODY}.")

    # -- reading ----------------------------------------------------------------------------

    def _step(self) -> TableStep | None:
        reader = self._store.opened()
        if not self._cursor:
            return self._first(reader)
        version = reader.version()
        if version == self._version:
            return None
        reader.look_at_schema()
        before = self._cursor
        found = queries.changes(reader, before, most=MOST_AT_ONCE)
        if not found.exact and time.monotonic() < self._next_first:
            return None
        if found.anew or not found.exact:
            return self._first(reader)
        touched = _touched(found)
        new_columns = self._take(reader, touched)
        self._cursor, self._whole = found.cursor, None
        if not found.more:
            self._version = version  # asked for before the changes were read: none is missed
        if not touched:
            return None
        rows = [] if new_columns else self._table.rows(touched)
        return TableStep(before, self._cursor, anew=new_columns, more=found.more, trials=rows)

    def _step_to_end(self) -> list[TableStep]:
        """Take all in that changed, and put the steps aside for those who follow."""
        taken = []
        while (step := self._step()) is not None:
            taken.append(step)
            if not step.more:
                break
        self._aside.extend(taken)
        rows = sum(len(one.trials) for one in self._aside)
        if len(self._aside) > MOST_ASIDE or rows > MOST_ROWS_ASIDE:
            before, cursor = self._aside[0].before, self._aside[-1].cursor
            self._aside.clear()
            self._aside.append(TableStep(before, cursor, anew=True, more=False, trials=[]))
        return taken

    def _first(self, reader: ExperimentReader) -> TableStep | None:
        """Read the whole table; None if it is what it was."""
        version = reader.version()
        if self._cursor and version == self._version:
            return None
        before = self._cursor
        with reader.moment():
            cursor = queries.cursor_now(reader)
            trials = queries.flat_trials(reader)
        self._table = TrialTable()
        self._table.put(trials)
        self._whole = None
        self._cursor, self._version = cursor, version
        self._next_first = time.monotonic() + _UNCOUNTED_S
        return TableStep(before, cursor, anew=True, more=False, trials=[])

    def _take(self, reader: ExperimentReader, touched: set[int]) -> bool:
        if not touched:
            return False
        return self._table.put(queries.flat_trials(reader, sorted(touched)))

    def _forget(self) -> None:
        self._cursor, self._version, self._whole = "", -1, None


def _touched(changed: queries.Changes) -> set[int]:
    return {one.trial.id for one in changed.trials} | {one.trial for one in changed.metrics}
