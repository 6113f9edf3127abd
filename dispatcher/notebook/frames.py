"""Frames and series of pandas' as one file of arrays, without a pickle: how they are written.

:mod:`trial_runtime.cell_frames` reads them. Parquet would need a library at both ends, and gives
other bytes with each version of it: equal data would have several digests.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any

from dispatcher.notebook.misfit import CannotTravel

#: Kinds of numpy's types that a file of arrays holds as they are: no objects.
_PLAIN_KINDS = "biufcmM"

_TEXTS = ("object", "str", "string")


def frame_content(value: Any) -> bytes:
    """Return the file of a frame or a series.

    Raises:
        CannotTravel: a column or the index holds what is neither number, time nor text.
    """
    import numpy

    arrays: dict[str, Any] = {}
    if value.ndim == 1:
        kind, labels, columns, numbered = "series", [value.name], [value], None
    else:
        kind, labels, numbered = "frame", list(value.columns), _bounds(value.columns)
        columns = [value.iloc[:, at] for at in range(len(labels))]
        if value.columns.nlevels > 1:
            raise CannotTravel("its columns have several levels", "name them by one level each")
    about = {
        "kind": kind,
        "labels": [_label(each) for each in labels],
        "numbered": numbered,
        "index": _index(value.index, arrays),
        "columns": [
            _column(f"column {label!r}", str(at), one, arrays)
            for at, (label, one) in enumerate(zip(labels, columns, strict=True))
        ],
    }
    arrays["about"] = numpy.frombuffer(json.dumps(about).encode(), numpy.uint8)
    file = BytesIO()
    numpy.savez(file, **arrays)
    return file.getvalue()


def _label(value: Any) -> Any:
    plain = value.item() if hasattr(value, "item") else value
    if plain is None or type(plain) in (str, int):
        return plain
    raise CannotTravel(f"it has a column named {value!r}", "name columns by texts or whole numbers")


def _index(index: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    if index.nlevels > 1:
        raise CannotTravel("its index has several levels", "make columns of it: x.reset_index()")
    name = _label(index.name)
    if (bounds := _bounds(index)) is not None:
        return {"kind": "range", "name": name, "bounds": bounds}
    return {**_column("index", "index", index, arrays), "name": name}


def _bounds(index: Any) -> list[int] | None:
    """Return start, stop and step of an index of numbers that are not stored."""
    return [index.start, index.stop, index.step] if hasattr(index, "step") else None


def _column(what: str, key: str, column: Any, arrays: dict[str, Any]) -> dict[str, Any]:
    """Describe a column or an index, and put its values into arrays of this key."""
    import numpy

    dtype = column.dtype
    if isinstance(dtype, numpy.dtype) and dtype.kind in _PLAIN_KINDS:
        arrays[key] = column.to_numpy()
        return {"kind": "plain", "key": key}
    if str(dtype) == "category":
        values = column.array
        arrays[key] = numpy.asarray(values.codes)
        inner = _column(f"{what} with categories", f"{key}.of", values.categories, arrays)
        return {"kind": "category", "key": key, "categories": inner, "ordered": values.ordered}
    if str(dtype) in _TEXTS:
        _put_texts(what, key, column, arrays)
        return {"kind": "text", "key": key, "dtype": str(dtype)}
    raise CannotTravel(
        f"its {what} has the type {dtype}",
        "make it one of numpy's: x = x.astype(...); or write it with x.to_parquet and read that "
        "in the function",
    )


def _put_texts(what: str, key: str, column: Any, arrays: dict[str, Any]) -> None:
    import numpy

    parts, lacks = [], []
    for each in column.tolist():
        if isinstance(each, str):
            parts.append(each.encode("utf-8", "surrogatepass"))
            lacks.append(0)
        elif lack := _lack(each):
            parts.append(b"")
            lacks.append(lack)
        else:
            raise CannotTravel(
                f"its {what} holds objects of the class {type(each).__name__}",
                "make numbers or texts of them, or leave the column out: x.drop(columns=...)",
            )
    arrays[f"{key}.text"] = numpy.frombuffer(b"".join(parts), numpy.uint8)
    arrays[f"{key}.ends"] = numpy.cumsum([len(each) for each in parts], dtype=numpy.int64)
    arrays[f"{key}.lacks"] = numpy.array(lacks, numpy.uint8)


def _lack(value: Any) -> int:
    """Return 1 for None, 2 for what pandas has in place of a value, and 0 for a value. Arrays and
    ``pandas.NA`` compare to something that is neither true nor false."""
    import numpy

    if value is None:
        return 1
    if isinstance(value, float | numpy.floating):
        return 2 * bool(value != value)
    return 2 * (type(value).__name__ in ("NAType", "NaTType"))
