"""Attempts over time, by slots of workers."""

from __future__ import annotations

import heapq
import time
from collections import defaultdict
from collections.abc import Sequence
from typing import Any, Final, NamedTuple

from dispatcher import queries
from dispatcher.errors import InternalError, UserError
from dispatcher.folders.names import STORE_NAME
from dispatcher.plots.shapes import Lane, Timeline
from dispatcher.queries import ExperimentReader
from dispatcher.store.replay.devices import MOST_ROWS, devices_held
from dispatcher.text_width import some_of

#: Attempts at most, the newest of them.
MOST_BARS: Final = 20_000

#: Rows of a journal that is looked through though the file asks for no GPUs: a tuner may, for some.
_FEW_ROWS: Final = 20_000

#: Workers that a hint lists.
_NAMED: Final = 12

_BARS: Final = """
SELECT a.trial, a.attempt, a.worker, a.started_at, a.ended_at, a.end_reason, a.exit_code,
       t.state, t.attempt AS newest, t.outcome, t.ended_at AS over_at, t.since
FROM attempts a JOIN trials t ON t.id = a.trial
WHERE a.started_at IS NOT NULL AND (? IS NULL OR a.worker = ?)
ORDER BY a.started_at DESC, a.trial DESC LIMIT ?
"""

_COUNTED: Final = """
SELECT count(*) FROM attempts WHERE started_at IS NOT NULL AND (? IS NULL OR worker = ?)
"""


class Bar(NamedTuple):
    """One attempt; ``end`` is None while it runs."""

    trial: int
    attempt: int
    worker: str
    start: float
    end: float | None
    outcome: str


def timeline(reader: ExperimentReader, *, worker: str | None = None) -> Timeline:
    """Show attempts over time.

    Args:
        reader: the experiment.
        worker: only its slots; None: all.

    Raises:
        UserError: attempts have run, and none of them on such a worker.
    """
    with reader.moment():
        _demand_worker(reader, worker)
        cursor = queries.cursor_now(reader)
        rows = reader.rows(_BARS, (worker, worker, MOST_BARS))
        counted = reader.row(
            _COUNTED,
            (worker, worker),
        )
        newest = reader.row("SELECT max(at) FROM journal")
    bars = sorted((_bar(row) for row in rows), key=lambda one: (one.start, one.trial, one.attempt))
    until = _until(bars, newest)
    placed, lanes = lanes_of(bars, until)
    earlier = (int(counted[0]) if counted is not None else 0) - len(bars)
    notes = [f"{earlier:,} earlier attempts are left out"] if earlier else []
    if any(one.outcome == "lost" for one in bars):
        notes.append("the end of a lost attempt was not seen: its bar ends where the trial went on")
    gpus = _gpus(reader, bars, notes)
    return Timeline(
        reader.id, reader.name, cursor, notes,
        begin=min((one.start for one in bars), default=until),
        until=until,
        lanes=lanes,
        trials=[one.trial for one in bars],
        attempts=[one.attempt for one in bars],
        lane=placed,
        starts=[one.start for one in bars],
        ends=[one.end for one in bars],
        outcomes=[one.outcome for one in bars],
        gpus=gpus,
        earlier=earlier,
    )  # fmt: skip


def _demand_worker(reader: ExperimentReader, worker: str | None) -> None:
    if worker is None:
        return
    rows = reader.rows("SELECT DISTINCT worker FROM attempts WHERE worker <> '' ORDER BY worker")
    names = [str(row["worker"]) for row in rows]
    if names and worker not in names:
        raise UserError(
            f"no attempt ran on a worker {worker[:200]!r}",
            hint=f"there are: {some_of(names, _NAMED)}",
        )


def lanes_of(bars: Sequence[Bar], until: float) -> tuple[list[int], list[Lane]]:
    """Lay bars into as few lanes of their workers as hold them, and return the lane of each.

    Which slot an attempt had is no fact of the store, and means nothing to a worker: what counts
    is how many ran at once.

    Args:
        bars: in the order of their starts.
        until: where those end that run.
    """
    free: dict[str, list[int]] = defaultdict(list)  # slots, the lowest first
    ends: dict[str, list[tuple[float, int]]] = defaultdict(list)
    slots: dict[str, int] = defaultdict(int)
    chosen: list[tuple[str, int]] = []
    busy: dict[tuple[str, int], float] = defaultdict(float)
    for bar in bars:
        worker, end = bar.worker, until if bar.end is None else bar.end
        while ends[worker] and ends[worker][0][0] <= bar.start:
            heapq.heappush(free[worker], heapq.heappop(ends[worker])[1])
        if free[worker]:
            slot = heapq.heappop(free[worker])
        else:
            slot = slots[worker]
            slots[worker] += 1
        heapq.heappush(ends[worker], (end, slot))
        chosen.append((worker, slot))
        busy[worker, slot] += max(0.0, end - bar.start)
    order = sorted(busy)
    places = {lane: at for at, lane in enumerate(order)}
    lanes = [Lane(worker, slot, busy[worker, slot]) for worker, slot in order]
    return [places[lane] for lane in chosen], lanes


def _bar(row: Any) -> Bar:
    newest = row["attempt"] == row["newest"]
    end, outcome = row["ended_at"], row["end_reason"]
    if end is None:
        if newest and row["state"] == "running":
            outcome = "running"
        else:
            outcome = "lost"
            end = row["over_at"] if row["over_at"] is not None else row["since"]
            end = max(row["started_at"], end)
    elif newest and row["outcome"] is not None:
        outcome = row["outcome"]
    elif not outcome:
        outcome = "ended"
    return Bar(
        row["trial"], row["attempt"], row["worker"] or "", row["started_at"], end, str(outcome)
    )


def _gpus(reader: ExperimentReader, bars: Sequence[Bar], notes: list[str]) -> list[list[str]]:
    """Return the ids of GPUs that each of these attempts held, from the journal; empty if no trial
    asks for any."""
    rows = MOST_ROWS if reader.config.get("trialGpuNumber") else _FEW_ROWS
    try:
        held = devices_held(reader.folder / STORE_NAME, rows)
    except InternalError as error:
        notes.append(f"GPUs are not shown: {error.message}")
        return []
    if held is None and rows == MOST_ROWS:
        notes.append(f"GPUs are not shown of a journal of more than {MOST_ROWS:,} rows")
    if not held:
        return []
    found = [list(held.get((one.trial, one.attempt), ())) for one in bars]
    unknown = sum(not one for one in found)
    if unknown:
        notes.append(f"no GPU is known of {unknown:,} attempts: they held none, or were compacted")
    return found


def _until(bars: Sequence[Bar], newest: Any) -> float:
    known = [one.end for one in bars if one.end is not None] + [one.start for one in bars]
    if newest is not None and newest[0] is not None:
        known.append(float(newest[0]))
    if any(one.end is None for one in bars):
        known.append(min(time.time(), max(known) + 60.0))
    return max(known, default=0.0)
