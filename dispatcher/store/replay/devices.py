"""The devices that attempts held: placement is decided anew whenever a journal is replayed, and
stands in no row of its own."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from dispatcher.core import apply
from dispatcher.core.actions import StartAttempt
from dispatcher.store.compaction import Compaction
from dispatcher.store.copying import opened_to_read
from dispatcher.store.early_stops import rows_as_judged
from dispatcher.store.replay.history import first_state, state_of

#: Rows beyond which nobody waits for the answer; some seconds.
MOST_ROWS: Final = 200_000


def devices_held(
    path: Path, most_rows: int = MOST_ROWS
) -> dict[tuple[int, int], tuple[str, ...]] | None:
    """Return the ids of devices by trial and attempt, of those attempts that held some. Those
    before a compaction are missing; None: the journal is too long to be replayed for this.

    Args:
        path: of the store.
        most_rows: rows that are replayed at most.

    Raises:
        StoreError: the journal cannot be read.
        InternalError: it cannot be replayed.
    """
    held: dict[tuple[int, int], tuple[str, ...]] = {}
    with opened_to_read(path) as journal:
        base = Compaction(journal).base()
        first = 0 if base is None else base.number
        state = None if base is None else state_of(base)
        if journal.last - first > most_rows:
            return None
        if state is not None:
            held |= {(t.id, t.attempt): t.devices for t in state.trials.values() if t.devices}
        for row in rows_as_judged(journal, first):
            if state is None:
                state = first_state(row.event)
            for action in apply(state, row.event, row.at).actions:
                if isinstance(action, StartAttempt) and action.devices:
                    held[action.trial, action.attempt] = action.devices
            state.dirty.clear()
    return held
