"""An experiment's past out of its store, compacted or not; and the compaction of one at rest."""

from __future__ import annotations

from dispatcher.errors import StoreError
from dispatcher.ports import Journal
from dispatcher.store.compaction import Compaction, not_over, seeds_of
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.history import Past, read_past


def read_whole_past(journal: Journal, compaction: Compaction) -> Past:
    """Read the state, and all calls that the tuner has to be given again: those since its own state
    was kept; without one, all of them. One pass over what the journal holds.

    Raises:
        StoreError: the journal cannot be read, or is impossible.
    """
    snapshot = journal.latest_snapshot()
    after = snapshot.number if snapshot is not None else 0
    past = read_past(journal, compaction.base(), calls_after=after)
    if snapshot is not None:
        return past
    return past._replace(calls=[*compaction.past_calls(), *past.calls])


def fold_at_start(journal: SqliteJournal, compaction: Compaction, past: Past) -> None:
    """Make a base of what was just read, if one is due and the tuner keeps no state of its own.

    The calls of such a tuner are known only now. (For others, the engine makes bases as it goes.)

    Args:
        journal: opened for writing.
        compaction: of that journal.
        past: as :func:`read_whole_past` has just read it.
    """
    if not compaction.due(past.state, past.row) or journal.latest_snapshot() is not None:
        return
    while compaction.tidy():
        pass
    new = past.calls[len(compaction.past_calls()) :]
    seeds = seeds_of(journal.raw, not_over(past.state))
    compaction.begin(past.state, past.row, seeds, new)


def compact(journal: SqliteJournal) -> bool:
    """Fold all that can be folded into a base, remove what was folded, give the space back.

    Only for an experiment without a head, while the caller holds its leadership. Blocks for about
    50 µs a row. False if there was nothing to fold.

    Raises:
        StoreError: the journal cannot be replayed; nothing has changed.
    """
    compaction = Compaction(journal)
    while compaction.tidy():
        pass
    snapshot = journal.latest_snapshot()
    upto = snapshot.number if snapshot is not None else journal.last
    if upto <= compaction.base_number():
        return False
    calls = None
    if snapshot is None:
        calls = read_past(journal, compaction.base(), calls_after=0).calls
    from dispatcher.store.verify import replay_rows  # heads begin without it

    replayed = replay_rows(journal, upto)
    try:
        if replayed.broken_at or replayed.state is None:
            text = f"the journal cannot be replayed: {replayed.broken_at or 'it is empty'}"
            raise StoreError(text, where=str(journal.path))
        seeds = seeds_of(replayed.model, not_over(replayed.state))
        compaction.begin(replayed.state, upto, seeds, calls)
    finally:
        replayed.model.close()
    while compaction.tidy():
        pass
    compaction.shrink()
    return True
