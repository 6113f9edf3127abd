"""The metrics of one attempt that count, in their order and a bounded many at a time."""

from __future__ import annotations

import sqlite3
from typing import Final

from dispatcher.queries.reader import ExperimentReader

#: Metrics in one answer, at most, and characters of their values: an attempt may have reported
#: a hundred thousand, each of many kilobytes.
MOST: Final = 10_000
MOST_TEXT: Final = 8 << 20


def counted_metrics(
    reader: ExperimentReader, trial: int, attempt: int, after: int = 0
) -> tuple[list[sqlite3.Row], bool]:
    """Return metrics of an attempt, without its final result, and whether these are all: rows of
    ``seq``, ``at``, ``value`` (its JSON text) and ``number``, since there may be a million.

    Those that came when the attempt was superseded already are left out.

    Args:
        reader: the experiment.
        trial: its number.
        attempt: of the trial.
        after: only those whose ``seq`` is above it.

    Raises:
        StoreError: the store cannot be read.
    """
    rows, whole = reader.rows_upto(
        "SELECT seq, at, value, number FROM metrics WHERE trial = ? AND attempt = ? AND seq > ? "
        "AND counted AND NOT final ORDER BY seq LIMIT ?",
        (trial, attempt, after, MOST),
        MOST_TEXT,
        text=2,
    )
    return rows, whole and len(rows) < MOST
