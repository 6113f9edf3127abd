"""All trials as a table, for a spreadsheet or a data frame: metrics and parameters in columns of
their own."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Container
from typing import Any, Final

from dispatcher.queries.fronts import front_numbers
from dispatcher.queries.names import quoted_name
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import WEIGHT_PATHS, TrialSummary, json_value
from dispatcher.queries.trials import TrialFilter, list_trials

#: Columns of the table before those of the parameters.
COLUMNS: Final = (
    "trial", "state", "outcome", "value", "parent", "by_hand", "attempts", "worker",
    "save_path", "restore_path", "weights_digest", "weights_bytes", "asked_at", "proposed_at",
    "started_at", "ended_at", "cpu_s", "wall_s", "error", "tags", "starred", "on_front",
)  # fmt: skip

#: Columns that are called otherwise in a trial's record, or are not in it.
_NAMED_HERE: Final = frozenset({"trial", "attempts", "on_front"})

_PREFIX: Final = "parameters."
_METRICS: Final = "metrics."

# A spreadsheet takes a cell that begins so for a formula; a trial's text must not become one.
_FORMULA: Final = ("=", "+", "-", "@", "\t", "\r")
_AFTER_A_SEPARATOR: Final = re.compile(r"([;\t])(?=\s*[=+\-@])")


class CsvText(io.StringIO):
    """CSV text with line feeds between rows. A cell with a carriage return stands in quotes; before
    Python 3.13 that takes rows that end by one."""

    def write(self, row: str) -> int:
        """Add a row as ``csv.writer`` makes it."""
        return super().write(row.removesuffix("\r\n") + "\n")


def export_rows(
    reader: ExperimentReader,
    wanted: TrialFilter = TrialFilter(),  # noqa: B008 - frozen
) -> list[dict[str, Any]]:
    """Return one flat dict a trial. Nested parameters become ``parameters.block.kernel``; lists
    stay. A name that has a dot itself is in backticks. Of a final result that is a mapping,
    ``default`` is ``value`` and the rest ``metrics.<name>``. ``on_front``: whether no other trial
    beats it in all of several objectives; None with one."""
    with reader.moment():
        numbers = front_numbers(reader)
        front = None if numbers is None else frozenset(numbers)
        return [_row(summary, front) for summary in list_trials(reader, wanted)]


def export_csv(
    reader: ExperimentReader,
    wanted: TrialFilter = TrialFilter(),  # noqa: B008 - frozen
) -> str:
    """Return the same as CSV text, with a header; lists as JSON, None as an empty cell."""
    rows = export_rows(reader, wanted)
    known = dict.fromkeys(COLUMNS)
    parameters = {name: None for row in rows for name in row if name not in known}
    out = CsvText()
    writer = csv.DictWriter(out, [*COLUMNS, *sorted(parameters)])
    writer.writerow({name: cell_text(name) for name in writer.fieldnames})  # trials name parameters
    for row in rows:
        writer.writerow({name: cell_text(value) for name, value in row.items()})
    return out.getvalue()


def flatten(
    parameters: dict[str, Any], prefix: str, name_of: Callable[[str], str] = str
) -> dict[str, Any]:
    """Turn nested dicts into one, keys joined by dots, for people. Of two that are called alike
    then, the one counts that has the dots itself; with names by
    :func:`~dispatcher.queries.names.quoted_name` no two are, and it can be read back.

    Args:
        parameters: by name, nested.
        prefix: of all names.
        name_of: writes one name.

    >>> flatten({"lr": 0.1, "block.depth": 1, "block": {"kernel": 3, "depth": 2}}, "")
    {'lr': 0.1, 'block.depth': 1, 'block.kernel': 3}
    """
    flat: dict[str, Any] = {}
    for key, value in parameters.items():
        name = f"{prefix}{name_of(key)}"
        if isinstance(value, dict):
            for inner, one in flatten(value, f"{name}.", name_of).items():
                flat.setdefault(inner, one)
        else:
            flat[name] = value
    return flat


def flat_parameters(text: str | None) -> dict[str, Any]:
    """Return a trial's parameters by names with dots, from their JSON; without the paths of its
    weights."""
    value = json_value(text)
    named = value if isinstance(value, dict) else {} if value is None else {"value": value}
    return flatten({name: one for name, one in named.items() if name not in WEIGHT_PATHS}, "")


def _row(summary: TrialSummary, front: Container[int] | None) -> dict[str, Any]:
    values = {
        "trial": summary.id,
        "attempts": summary.attempt,
        "on_front": None if front is None else summary.id in front,
        **{name: getattr(summary, name) for name in COLUMNS if name not in _NAMED_HERE},
    }
    values["tags"] = list(summary.tags)
    ordered = {name: values[name] for name in COLUMNS}
    return ordered | _metrics(summary) | flatten(summary.named_parameters, _PREFIX, quoted_name)


def _metrics(summary: TrialSummary) -> dict[str, Any]:
    """Return the metrics beside the number in the final result; the number itself is ``value``."""
    if not isinstance(summary.result, dict):
        return {}
    beside = {name: value for name, value in summary.result.items() if name != "default"}
    return flatten(beside, _METRICS)


def cell_text(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, list | dict):
        value = json.dumps(value)
    if isinstance(value, str):
        # Some spreadsheets take ";" or a tab for the end of a cell, whatever the file says.
        value = _AFTER_A_SEPARATOR.sub(r"\1'", value)
        # One more before one of its own: who reads it takes the first away.
        return f"'{value}" if value.startswith((*_FORMULA, "'")) else value
    return value
