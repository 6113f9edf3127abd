"""Columns of trials by name: for tables, and to sort by. Names are those of conditions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from typing import Any, Final

from dispatcher.errors import UserError
from dispatcher.queries.names import Sql
from dispatcher.queries.notes import trials_with_annotations
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.records import WEIGHT_PATHS, json_value
from dispatcher.queries.where import (
    COLUMNS,
    EXAMPLE,
    NAMES,
    RESULT,
    TAG,
    WhereError,
    parse_condition,
    parse_names,
)

#: Names of parameters that a hint lists.
_SHOWN: Final = 12


def named_columns(reader: ExperimentReader, text: str, of: str = "columns") -> dict[str, Sql]:
    """Read names of columns, with commas between them, each with its expression over ``trials``.

    Args:
        reader: the experiment.
        text: as people type it.
        of: the argument that it is the value of, for errors.

    Raises:
        UserError: a name cannot be read, or no trial has such a parameter.
    """
    if not text.strip():
        return {}
    try:
        named = parse_names(text)
    except WhereError as error:
        hint = NAMES if error.hint == EXAMPLE else error.hint  # that shows conditions
        raise UserError(error.message, hint=hint, where=f"{of}:{error.column}") from error
    inside = {name: one for name, one in named.items() if "json_extract" in one.text}
    for name, near in unknown_parameters(reader, inside).items():
        known = _parameters_of_one(reader)
        if known is None:
            continue  # no trial has parameters yet
        alike = get_close_matches(name, known, n=1, cutoff=0.7)
        close = near if near.startswith("metrics.") or not alike else alike[0]
        shown = f"parameters {', '.join(known[:_SHOWN])}; columns {', '.join(COLUMNS)}"
        raise UserError(
            f"no trial has a column or parameter {name!r}",
            hint=f"did you mean {close!r}?" if close else f"there are {shown}",
            where=of,
        )
    return named


def cells_of(
    reader: ExperimentReader, columns: Mapping[str, Sql], numbers: Sequence[int]
) -> list[list[Any]]:
    """Return what trials have in some columns, a list for each trial, in the order of ``numbers``.

    Lists and objects are given as such, and what a trial does not have as None.

    Args:
        reader: the experiment.
        columns: of :func:`named_columns`.
        numbers: of trials.
    """
    if not columns:
        return []
    shown = ", ".join(f"({one.text}) AS c{at}" for at, one in enumerate(columns.values()))
    values = [value for one in columns.values() for value in one.values]
    source = trials_with_annotations(reader)
    found: dict[int, list[Any]] = {}
    query = f"SELECT id AS trial_id, {shown} FROM {source} WHERE id IN ({{marks}})"  # noqa: S608
    with reader.moment():
        for number, *cells in reader.rows_among(query, numbers, values):
            found[number] = [_plain(cell) for cell in cells]
    return [found.get(number, [None] * len(columns)) for number in numbers]


def unknown_parameters(reader: ExperimentReader, parameters: Mapping[str, Sql]) -> dict[str, str]:
    """Return the parameters that no trial has, each with a name that may be meant, or nothing: a
    column that is misspelt is a parameter like any other, and so is a metric by its mere name.

    Args:
        reader: the experiment.
        parameters: by name, as of a condition.
    """
    unknown = {}
    for name, expression in parameters.items():
        query = f"SELECT 1 FROM trials WHERE ({expression.text}) IS NOT NULL LIMIT 1"  # noqa: S608
        if reader.row(query, expression.values) is None:
            near = get_close_matches(name, [*COLUMNS, TAG], n=1, cutoff=0.7)
            unknown[name] = _as_metric(reader, name) or (near[0] if near else "")
    return unknown


def doubts(reader: ExperimentReader, condition: str) -> list[str]:
    """Say, a sentence each, which parameters of a condition no trial has. Raises ``UserError``.

    Args:
        reader: the experiment.
        condition: its text.
    """
    unknown = unknown_parameters(reader, parse_condition(condition).parameters)
    return [
        f"no trial has a parameter {name!r}" + (f"; did you mean {near}?" if near else "")
        for name, near in unknown.items()
    ]


def _as_metric(reader: ExperimentReader, name: str) -> str:
    """Return how a number of the first result that has several is written; else nothing."""
    query = f"SELECT {RESULT} AS result FROM trials WHERE {RESULT} LIKE '{{%' ORDER BY id LIMIT 1"  # noqa: S608
    row = reader.row(query)
    known = {} if row is None else json_value(row["result"])
    return f"metrics.{name}" if isinstance(known, dict) and name in known else ""


def _parameters_of_one(reader: ExperimentReader) -> list[str] | None:
    """Return the names of the first trial's parameters; None while no trial has any."""
    row = reader.row("SELECT parameters FROM trials WHERE parameters <> '' ORDER BY id LIMIT 1")
    if row is None:
        return None
    known = json_value(row["parameters"])
    names = known if isinstance(known, dict) else ()
    return [name for name in names if name not in WEIGHT_PATHS]


def _plain(cell: Any) -> Any:
    """SQLite gives lists and objects as texts."""
    return json_value(cell) if isinstance(cell, str) and cell[:1] in ("[", "{") else cell
