"""Shared stores of an experiment, with a head or without: what is there, and what may go."""

from __future__ import annotations

import sqlite3
import tempfile
import time
from contextlib import closing
from pathlib import Path

from dispatcher.core import State, apply
from dispatcher.core.actions import GrantVersions
from dispatcher.core.events import StoresReviewed
from dispatcher.errors import StoreError
from dispatcher.ports import JournalEntry
from dispatcher.store.compaction import Compaction
from dispatcher.store.connection import read_only
from dispatcher.store.copying import copy_store
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.folding import read_whole_past
from dispatcher.weight_keeper.store_sweep import Granted


def as_granted(action: GrantVersions) -> Granted:
    """Turn the core's grant into the weight keeper's."""
    return Granted(
        tuple(version.path for _, _, version in action.removed),
        {version.path: version.digest for _, _, version in action.kept},
    )


def state_with_stores(store: Path) -> State | None:
    """Read the state of a journal that knows of shared stores; None of others. Reads a copy, so
    that a head may go on writing. Blocks for some 30 µs an event since the journal was compacted.

    Raises:
        StoreError: it cannot be read.
    """
    if not _has_stores(store):
        return None
    with tempfile.TemporaryDirectory(prefix="bq-") as folder:
        copy = Path(folder) / store.name
        copy_store(store, copy)
        journal = SqliteJournal.open(copy)
        try:
            state = read_whole_past(journal, Compaction(journal)).state
        finally:
            journal.close()
    return state if state.stores else None


def _has_stores(store: Path) -> bool:
    """Look quickly, for the many experiments that have none."""
    try:
        with closing(sqlite3.connect(read_only(store), uri=True, timeout=10.0)) as raw:
            found = raw.execute(
                "SELECT EXISTS (SELECT 1 FROM journal WHERE kind = 'VersionOffered') "
                "OR EXISTS (SELECT 1 FROM bases)"
            )
            return bool(found.fetchone()[0])
    except sqlite3.OperationalError as error:
        if "no such table" in str(error):
            return False  # of an older schema, when there were no stores
        raise StoreError(f"the store cannot be read: {error}", where=str(store)) from error
    except sqlite3.Error as error:
        raise StoreError(f"the store cannot be read: {error}", where=str(store)) from error


class AtRest:
    """Stands in for the head of an experiment that has none; its user holds the lead.

    Args:
        journal: opened by the holder of the lead.
        state: the state after the journal's last row.
        keep: how many of the newest versions stay in each store; 0: as the settings say.
    """

    def __init__(self, journal: SqliteJournal, state: State, keep: int = 0) -> None:
        self._journal = journal
        self._keep = keep
        self._state = state

    def review(self) -> Granted:
        """Take versions off the books that are not needed, durably."""
        event, now = StoresReviewed(self._keep), time.time()
        (granted,) = (
            action
            for action in apply(self._state, event, now).actions
            if isinstance(action, GrantVersions)
        )
        dirty = [self._state.trials[trial] for trial in self._state.dirty]
        self._journal.append([JournalEntry(now, event)], dirty, durable=True)
        self._state.dirty.clear()
        return as_granted(granted)
