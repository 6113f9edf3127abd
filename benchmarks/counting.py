"""Counts what a head really does: commits with their rows, frames, and wake-ups of threads.

The floors of :mod:`benchmarks.floors` are made of such counts, and rows show both, so that a
reader sees whether a floor still does what the product does. Counting costs time itself, so that
runs which are counted are not timed.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dispatcher.channel import PeerMessage, Router
from dispatcher.store.journal import SqliteJournal

_TARGET = re.compile(r"\s*(?:INSERT INTO|UPDATE|DELETE FROM)\s+(\w+)")


class _Statements:
    """A connection that counts statements that write, and their rows."""

    def __init__(self, raw: Any, counts: Counter[str]) -> None:
        self._raw = raw
        self._counts = counts

    def execute(self, statement: str, values: Sequence[object] = ()) -> Any:
        self._note(statement, 1)
        return self._raw.execute(statement, values)

    def executemany(self, statement: str, rows: Iterable[Sequence[object]]) -> Any:
        rows = list(rows)
        if rows:
            self._note(statement, len(rows))
        return self._raw.executemany(statement, rows)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._raw, name)

    def _note(self, statement: str, rows: int) -> None:
        if found := _TARGET.match(statement):
            kind = "update" if statement.lstrip().startswith("UPDATE") else "insert"
            self._counts[f"{kind} {found[1]}"] += rows


@contextmanager
def counting() -> Iterator[Counter[str]]:
    """Count what this process's head does, until the block ends."""
    counts: Counter[str] = Counter()
    transaction, send, poll = SqliteJournal.transaction, Router.send, Router.poll

    @contextmanager
    def counted(journal: SqliteJournal, *, durable: bool) -> Iterator[Any]:
        with transaction(journal, durable=durable) as raw:
            yield _Statements(raw, counts)
        counts["durable commits" if durable else "other commits"] += 1

    def counted_send(router: Router, routing_id: bytes, payload: bytes) -> bool:
        sent = send(router, routing_id, payload)
        if sent:
            who = routing_id.partition(b":")[0].decode()
            counts[f"frames to {who}"] += 1
            counts[f"bytes to {who}"] += len(payload)
        return sent

    def counted_poll(router: Router, timeout_s: float) -> list[PeerMessage]:
        said = poll(router, timeout_s)
        counts["polls"] += 1
        counts["polls with news"] += bool(said)
        for one in said:
            who = one.peer.partition(b":")[0].decode()
            counts[f"frames from {who}"] += 1
            counts[f"bytes from {who}"] += len(one.payload)
        return said

    SqliteJournal.transaction = counted  # type: ignore[method-assign]
    Router.send, Router.poll = counted_send, counted_poll  # type: ignore[method-assign]
    try:
        yield counts
    finally:
        SqliteJournal.transaction = transaction  # type: ignore[method-assign]
        Router.send, Router.poll = send, poll  # type: ignore[method-assign]


def waits_of(pid: int) -> int:
    """How often threads of a process that are still there gave up their core to wait for
    something. Linux only; 0 elsewhere."""
    waits = 0
    for task in Path(f"/proc/{pid}/task").glob("*/status"):
        try:
            text = task.read_text()
        except OSError:
            continue  # it has ended
        found = re.search(r"^voluntary_ctxt_switches:\s*(\d+)", text, re.MULTILINE)
        waits += int(found[1]) if found else 0
    return waits
