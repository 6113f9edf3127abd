"""Promises about places: what starts while a disk is low or a worker silent."""

from __future__ import annotations

from collections.abc import Iterator

from dispatcher.core import actions as a
from dispatcher.core import events as e
from tests.support.reading import Reading
from tests.support.witnesses import Witnesses


def nothing_starts_on_a_full_disk(
    reading: Reading, seen: Witnesses, *, over: bool
) -> Iterator[str]:
    """Promise 8: while a disk is low no attempt is started, and none on a silent worker."""
    known: set[tuple[int, int]] = set()
    for since, until, order in seen.orders:
        if not isinstance(order, a.StartAttempt) or (order.trial, order.attempt) in known:
            continue
        known.add((order.trial, order.attempt))
        low, silent, waiting = _surroundings(reading, since)
        changed = [told for row, told in reading.surroundings if since < row <= until]
        name = f"{order.trial}.{order.attempt}"
        first = min(low.values(), default=until)
        # An agent that says hello is asked again for what was decided before.
        excused = any(
            (isinstance(told, e.WorkerJoined) and first < row <= until)
            or (isinstance(told, e.DiskRecovered | e.HeadStarted) and since < row <= until)
            for row, told in reading.surroundings
        )
        if low and not excused:
            yield f"row {until}: {name} is started, and {sorted(low)} are full (promise 8)"
        if order.worker in silent and not changed:
            yield f"row {until}: {name} is given to {order.worker}, which is silent (promise 9)"
        if order.worker in waiting and not changed:
            yield f"row {until}: {name} is given to {order.worker}, which waits (promise 9)"


def _surroundings(reading: Reading, row: int) -> tuple[dict[str, int], set[str], set[str]]:
    """Which disks were low then, and since which row; and which workers were silent, or waited for
    a place."""
    low: dict[str, int] = {}
    silent: set[str] = set()
    waiting: set[str] = set()
    for at, told in reading.surroundings:
        if at > row:
            break
        match told:
            case e.HeadStarted():
                low.clear()
                silent.clear()
                waiting.clear()
            case e.DiskLow(place=place):
                low.setdefault(place, at)
            case e.DiskRecovered(place=place):
                low.pop(place, None)
            case e.WorkerSuspect(worker=worker):
                silent.add(worker)
            case e.WorkerWaits(worker=worker):
                silent.discard(worker)
                waiting.add(worker)
            case e.WorkerHeard(worker=w) | e.WorkerJoined(worker=w) | e.WorkerLost(worker=w):
                silent.discard(w)
                waiting.discard(w)
            case _:
                pass
    return low, silent, waiting
