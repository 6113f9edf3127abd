"""Rows as one file of Apache Parquet, by pyarrow, which is imported when somebody asks for one."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Final

from dispatcher.errors import UserError

_INTEGERS: Final = range(-(1 << 63), 1 << 63)


def demand_pyarrow() -> None:
    """Raise ``UserError`` where the library is missing."""
    try:
        import pyarrow.parquet  # noqa: F401 - only whether it is there
    except ImportError as error:
        raise UserError(
            "Parquet needs pyarrow, which is not installed",
            hint="pip install 'bequeath[parquet]', or choose --format csv",
        ) from error


def parquet_of(rows: Iterable[Mapping[str, Any]], first: Sequence[str]) -> bytes:
    """Return rows as the bytes of a file: a column for each name, of one type.

    Columns hold whole numbers, numbers, truth values or texts; a column in which several kinds
    meet, or lists or objects, holds their JSON texts. What a row does not have is null.

    Args:
        rows: flat dicts.
        first: columns that there are in any case, in this order; others follow by name.

    Raises:
        UserError: pyarrow is missing.
    """
    demand_pyarrow()
    import pyarrow
    from pyarrow import parquet

    columns: dict[str, list[Any]] = {name: [] for name in first}
    many = 0
    for row in rows:
        for name, value in row.items():
            column = columns.setdefault(name, [])
            column.extend([None] * (many - len(column)))
            column.append(value)
        many += 1
    names = [*first, *sorted(set(columns) - set(first))]
    arrays = []
    for name in names:
        column = columns[name]
        column.extend([None] * (many - len(column)))
        kind, values = _of_one_type(column)
        arrays.append(pyarrow.array(values, type=getattr(pyarrow, kind)()))
    out = pyarrow.BufferOutputStream()
    parquet.write_table(pyarrow.Table.from_arrays(arrays, names=names), out, compression="zstd")
    return bytes(out.getvalue())


def _of_one_type(column: list[Any]) -> tuple[str, list[Any]]:
    """Return the name of a type of pyarrow's, and the values as such."""
    kinds = {type(value) for value in column} - {type(None)}
    if kinds == {bool}:
        return "bool_", column
    if kinds == {int} and all(value in _INTEGERS for value in column if value is not None):
        return "int64", column
    if float in kinds and kinds <= {int, float}:
        with suppress(OverflowError):  # a whole number that no float comes near to
            return "float64", [None if value is None else float(value) for value in column]
    if kinds <= {str}:
        return "string", column
    return "string", [
        value if value is None or isinstance(value, str) else json.dumps(value) for value in column
    ]
