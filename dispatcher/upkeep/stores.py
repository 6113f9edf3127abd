"""Shared stores of an experiment that nobody leads: what is there, and what may go."""

from __future__ import annotations

import time

from dispatcher.core import State, apply
from dispatcher.core.actions import GrantVersions
from dispatcher.core.events import StoresReviewed
from dispatcher.ports import Entry
from dispatcher.store.journal import SqliteJournal
from dispatcher.weight_keeper.store_sweep import Granted


def as_granted(action: GrantVersions) -> Granted:
    """What the core granted, as the weight keeper takes it."""
    return Granted(
        tuple(version.path for _, _, version in action.removed),
        {version.path: version.digest for _, _, version in action.kept},
    )


def review_at_rest(journal: SqliteJournal, state: State, keep: int = 0) -> GrantVersions:
    """Take versions off the books that nobody needs, durably, in place of a head.

    Args:
        journal: opened by whoever holds the lead.
        state: as the journal has it; changed.
        keep: how many of the newest stay in each store; 0: as the settings say.
    """
    event, now = StoresReviewed(keep), time.time()
    (granted,) = (
        action for action in apply(state, event, now).actions if isinstance(action, GrantVersions)
    )
    journal.append([Entry(now, event)], [state.trials[t] for t in state.dirty], durable=True)
    state.dirty.clear()
    return granted
