"""The judge: were the promises kept? Reads the journal and what peers were told, nothing else.

It shares no rule with ``dispatcher.core``: what a journal must look like is said in
:mod:`tests.support.promises` a second time, from the design, so that a fault in the core cannot
excuse itself. ``python -m tests.support.checker JOURNAL`` judges the store of a real run.
"""

from __future__ import annotations

import sqlite3
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from dispatcher import codec
from dispatcher.core import actions as a
from dispatcher.ports import JournalRow
from tests.support import promises
from tests.support.reading import Reading
from tests.support.witnesses import Call, Harm, Order, Ordered, Witnesses

__all__ = [
    "Call",
    "Harm",
    "Order",
    "Ordered",
    "Witnesses",
    "check_journal",
    "check_store",
    "read_store",
]


def check_journal(
    rows: Iterable[JournalRow],
    witnesses: Witnesses | Sequence[Call] | None = None,
    *,
    over: bool = False,
) -> list[str]:
    """What contradicts the promises, one sentence each; empty if nothing does.

    Args:
        rows: the whole journal, in order.
        witnesses: what tuner, agents and users saw; the tuner's calls alone will do.
        over: the experiment came to its own end, so nothing may be left undelivered.
    """
    reading = Reading(rows)
    seen = witnesses if isinstance(witnesses, Witnesses) else Witnesses(calls=witnesses)
    reading.harms = seen.harms
    for _, _, order in seen.orders:
        if isinstance(order, a.StartAttempt):
            where = reading.worker_of.setdefault((order.trial, order.attempt), set())
            where.add(order.worker)
    found = list(reading.disorder)
    for promise in promises.ALL:
        found.extend(promise(reading, seen, over=over))
    return found


def read_store(path: Path) -> list[JournalRow]:
    """The journal of a store, read without the store's own code."""
    connection = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        found = connection.execute("SELECT n, at, kind, payload FROM journal ORDER BY n")
        return [JournalRow(n, at, codec.decode(kind, raw)) for n, at, kind, raw in found]
    finally:
        connection.close()


def check_store(path: Path, *, over: bool = False) -> list[str]:
    """:func:`check_journal` on the store of a real run (``journal.sqlite``)."""
    return check_journal(read_store(path), over=over)


if __name__ == "__main__":
    violations = check_store(Path(sys.argv[1]))
    print("\n".join(violations) or "no promise was broken")
    sys.exit(bool(violations))
