"""The metrics of one attempt that count, in their order and a bounded many at a time."""

from __future__ import annotations

from typing import Final

from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import MetricPoint

#: Metrics in one answer, at most, and characters of their values: an attempt may have reported
#: a hundred thousand, each of many kilobytes.
MOST: Final = 10_000
MOST_TEXT: Final = 8 << 20


def counted_metrics(
    reader: ExperimentReader, trial: int, attempt: int, after: int = 0
) -> tuple[list[MetricPoint], bool]:
    """Return metrics of an attempt, without its final result, and whether these are all.

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
        "SELECT * FROM metrics WHERE trial = ? AND attempt = ? AND seq > ? AND counted "
        "AND NOT final ORDER BY seq LIMIT ?",
        (trial, attempt, after, MOST),
        MOST_TEXT,
    )
    return [MetricPoint.from_row(row) for row in rows], whole and len(rows) < MOST
