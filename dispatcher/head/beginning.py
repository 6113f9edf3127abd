"""The first rows that a head writes: that it leads, and what changed while nobody led."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

from dispatcher.core import State, apply
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.settings import Settings
from dispatcher.ports import JournalEntry
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.trial_rows import ROWS_TO_COMPARE, lagging
from dispatcher.store.weights_ledger import SqliteWeightsLedger


def news_of_head(epoch: int, state: State, wanted: Settings, store: Path) -> list[e.Event]:
    """Return what a head that begins has to say.

    Args:
        epoch: the head's.
        state: as the head before has left it.
        wanted: the settings of the experiment file as it is now.
        store: the experiment's; its ledger knows what was removed meanwhile.
    """
    changed = wanted if wanted != state.settings else None
    news: list[e.Event] = [e.HeadStarted(epoch, changed)]
    gone = _removed_by_hand(store) - state.removed_weights
    if gone:
        news.append(e.RemovalAnnounced(tuple(sorted(gone))))
    return news


def begin_epoch(
    journal: SqliteJournal, state: State, news: Iterable[e.Event], now: float, *, durable: bool
) -> int:
    """Apply and journal the first facts of a head, with the rows of trials that lag behind.

    Args:
        journal: under the epoch of that head.
        state: as it was read from the journal; changes.
        news: begin with ``HeadStarted``.
        now: the time of all of them.
        durable: whether to return only when they are on disk.

    Returns:
        The number of the last row.
    """
    state.dirty.update(dict.fromkeys(lagging(journal.query(ROWS_TO_COMPARE), state.trials)))
    entries = []
    for event in news:
        apply(state, event, now)
        entries.append(JournalEntry(now, event))
    row = journal.append(entries, [state.trials[t] for t in state.dirty], durable=durable)
    state.dirty.clear()
    return row


def _removed_by_hand(store: Path) -> set[TrialId]:
    """Trials whose weights went while nobody led (``bequeath weights gc``)."""
    ledger = SqliteWeightsLedger.open(store)
    try:
        return {TrialId(removal.trial) for removal in ledger.removals()}
    finally:
        ledger.close()
