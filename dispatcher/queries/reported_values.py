"""Every value that trials reported, as a table: a row a value."""

from __future__ import annotations

import csv
import sqlite3
from collections.abc import Iterator
from typing import Any, Final

import msgspec

from dispatcher.queries.export import CsvText, cell_text, flatten
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import json_value

#: Columns before those of named metrics.
METRIC_COLUMNS: Final = ("trial", "attempt", "seq", "at", "final", "counted", "value")

_PREFIX: Final = "metrics."

#: Rows that are read at once: the others wait in the store.
AT_ONCE: Final = 20_000

_QUERY: Final = """
SELECT trial, attempt, seq, at, final, counted, number, value FROM metrics
WHERE (trial, attempt, seq) > (?, ?, ?) {which} ORDER BY trial, attempt, seq LIMIT ?
"""

_OBJECTS: Final = "AND substr(value, 1, 1) = '{'"


def metric_rows(reader: ExperimentReader) -> Iterator[dict[str, Any]]:
    """Yield one flat dict for each reported value, by trial, attempt and order; within a moment of
    the caller's, as of that.

    ``value`` is the number that a tuner takes it for. Of a value that is an object, all but
    ``default`` are ``metrics.<name>``. Values of an attempt that was superseded are not
    ``counted``.
    """
    for trial, attempt, seq, at, final, counted, number, text in _read(reader):
        values = (trial, attempt, seq, at, bool(final), bool(counted), number)
        row: dict[str, Any] = dict(zip(METRIC_COLUMNS, values, strict=True))
        if text.startswith("{"):
            row |= _named(text)
        yield row


def metrics_csv(reader: ExperimentReader) -> str:
    """Return them as CSV text, with a header; lists as JSON, None as an empty cell."""
    out = CsvText()
    writer = csv.writer(out)
    with reader.moment():
        names = {name for row in _read(reader, _OBJECTS) for name in _named(row["value"])}
        header = [*METRIC_COLUMNS, *sorted(names)]
        writer.writerow([cell_text(name) for name in header])
        for row in metric_rows(reader):
            writer.writerow([cell_text(row.get(name)) for name in header])
    return out.getvalue()


def _read(reader: ExperimentReader, which: str = "") -> Iterator[sqlite3.Row]:
    last = (-1, -1, -1)
    while rows := reader.rows(_QUERY.replace("{which}", which), (*last, AT_ONCE)):
        yield from rows
        last = (rows[-1]["trial"], rows[-1]["attempt"], rows[-1]["seq"])


def _named(text: str) -> dict[str, Any]:
    """Return what a value that is an object holds beside its number."""
    value = json_value(text)
    if not isinstance(value, dict):
        return {}
    return flatten({name: one for name, one in value.items() if name != "default"}, _PREFIX)


def metrics_json(reader: ExperimentReader) -> str:
    """Return them as one JSON list, a line a row: there may be millions. Numbers that are not
    finite are null."""
    with reader.moment():
        lines = [msgspec.json.encode(row).decode() for row in metric_rows(reader)]
    return "[\n" + ",\n".join(lines) + "\n]\n"
