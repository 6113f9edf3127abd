"""Every value that trials reported, as a table: a row a value."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from dispatcher.queries.export import cell_text, flatten
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import json_value

#: Columns before those of named metrics.
METRIC_COLUMNS: Final = ("trial", "attempt", "seq", "at", "final", "counted", "value")

_PREFIX: Final = "metrics."

#: Rows that are read at once: the others wait in the store.
_AT_ONCE: Final = 20_000

_QUERY: Final = """
SELECT trial, attempt, seq, at, final, counted, number, value FROM metrics
WHERE (trial, attempt, seq) > (?, ?, ?) ORDER BY trial, attempt, seq LIMIT ?
"""


def metric_rows(reader: ExperimentReader) -> Iterator[dict[str, Any]]:
    """Yield one flat dict for each reported value, by trial, attempt and order; within a moment of
    the caller's, as of that.

    ``value`` is the number that a tuner takes it for. Of a value that is an object, all but
    ``default`` are ``metrics.<name>``. Values of an attempt that was superseded are not
    ``counted``.
    """
    last: tuple[int, int, int] = (-1, -1, -1)
    while rows := reader.rows(_QUERY, (*last, _AT_ONCE)):
        for trial, attempt, seq, at, final, counted, number, text in rows:
            row = dict(
                zip(
                    METRIC_COLUMNS,
                    (trial, attempt, seq, at, bool(final), bool(counted), number),
                    strict=True,
                )
            )
            if text.startswith("{") and isinstance(value := json_value(text), dict):
                beside = {name: one for name, one in value.items() if name != "default"}
                row |= flatten(beside, _PREFIX)
            yield row
        last = (trial, attempt, seq)


def metrics_csv(reader: ExperimentReader) -> str:
    """Return them as CSV text, with a header; lists as JSON, None as an empty cell."""
    with reader.moment():
        known = dict.fromkeys(METRIC_COLUMNS)
        names = {name: None for row in metric_rows(reader) for name in row if name not in known}
        out = io.StringIO()
        writer = csv.DictWriter(out, [*METRIC_COLUMNS, *sorted(names)], lineterminator="\n")
        writer.writerow({name: cell_text(name) for name in writer.fieldnames})
        for row in metric_rows(reader):
            writer.writerow({name: cell_text(value) for name, value in row.items()})
    return out.getvalue()


def metrics_json(reader: ExperimentReader) -> str:
    """Return them as one JSON list, a line a row: there may be millions. Numbers that are not
    finite are null."""
    with reader.moment():
        lines = [msgspec.json.encode(row).decode() for row in metric_rows(reader)]
    return "[\n" + ",\n".join(lines) + "\n]\n"
