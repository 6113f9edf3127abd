"""The count of changes: which one touched a trial or a metric last.

Each transaction that changes what readers see of trials or metrics takes the next number, whoever
writes: the head, the weight keeper, a command. So what changed since a reader looked is what has a
greater number, exactly. A row of the journal would not do for that: rows of trials are also written
by commits that add none to the journal, and metrics never have one.

The number goes up as long as the store lives. A power cut may take it back, though, with commits
that nobody had waited for; so may a backup that is restored. Each head therefore writes down,
durably, a name that nobody guesses and the number at which its lead began: what a reader has seen
of an earlier lead is there still if the next one began at that number or later.
"""

from __future__ import annotations

import secrets
import sqlite3
from collections.abc import Iterable
from typing import Final

from dispatcher.store.faults import DamagedStore

#: No count comes so far: a greater number is damage, and one more would be none that SQLite has.
_UTMOST: Final = 1 << 62

_NEWEST: Final = """
    SELECT max((SELECT coalesce(max(touched), 0) FROM trials),
               (SELECT coalesce(max(touched), 0) FROM metrics))
"""
_PLAUSIBLE: Final = f"(typeof(touched) = 'integer' AND touched BETWEEN 0 AND {_UTMOST - 1})"
_STAMP: Final = "UPDATE trials SET touched = ? WHERE id = ?"
_LEAD: Final = "INSERT OR REPLACE INTO leads (epoch, name, touched) VALUES (?, ?, ?)"


def next_touch(raw: sqlite3.Connection) -> int:
    """Return the number of the change that this transaction makes. It holds the write lock."""
    (newest,) = raw.execute(_NEWEST).fetchone()
    if not isinstance(newest, int) or not 0 <= newest < _UTMOST:
        raise DamagedStore(
            f"the store's count of changes cannot be: {newest!r}",
            hint="'bequeath experiment verify --rebuild' makes it anew",
        )
    return newest + 1


def stamp(raw: sqlite3.Connection, trials: Iterable[int], touch: int) -> None:
    """Note that something beside a trial's own row has changed which readers see with it.

    Args:
        raw: a writer's connection, in a transaction.
        trials: those that it is seen with.
        touch: the number of this change.
    """
    raw.executemany(_STAMP, [(touch, trial) for trial in trials])


def damaged_counts(raw: sqlite3.Connection) -> int:
    """Count the rows whose number of a change cannot be."""
    query = " UNION ALL ".join(
        f"SELECT count(*) FROM {table} WHERE NOT {_PLAUSIBLE}"  # noqa: S608 - our names
        for table in ("trials", "metrics")
    )
    return sum(count for (count,) in raw.execute(query))


def next_touch_of_damaged(raw: sqlite3.Connection) -> int:
    """The same as :func:`next_touch`, whatever is damaged; looks at all rows."""
    query = " UNION ALL ".join(
        f"SELECT coalesce(max(touched), 0) FROM {table} WHERE {_PLAUSIBLE}"  # noqa: S608
        for table in ("trials", "metrics", "leads")
    )
    return max(int(newest) for (newest,) in raw.execute(query)) + 1


def count_anew(raw: sqlite3.Connection, touch: int) -> None:
    """Note that all trials may have changed, and give each metric a number that can be."""
    raw.execute("UPDATE trials SET touched = ?", (touch,))
    raw.execute(f"UPDATE metrics SET touched = ? WHERE NOT {_PLAUSIBLE}", (touch,))  # noqa: S608


def begin_lead(raw: sqlite3.Connection, epoch: int) -> None:
    """Note that a head begins to count where the store stands. The transaction is durable."""
    raw.execute(_LEAD, (epoch, secrets.token_hex(8), next_touch(raw) - 1))
