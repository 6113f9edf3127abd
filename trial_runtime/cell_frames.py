"""Frames and series of pandas' as one file of arrays, without a pickle: how they are read.

The file is an ``.npz``. Its array ``about`` is a JSON text on what the others are: columns and
index, each a plain array, a text, or codes of categories.
"""

from __future__ import annotations

import json
from io import BytesIO
from typing import Any


def read(content: bytes) -> Any:
    """Make the frame or the series of a file's content."""
    import numpy
    import pandas

    with numpy.load(BytesIO(content), allow_pickle=False) as arrays:
        about = json.loads(arrays["about"].tobytes())
        index = _index(about["index"], arrays)
        columns = [_column(each, arrays) for each in about["columns"]]
    if about["kind"] == "series":
        return pandas.Series(columns[0], index=index, name=about["labels"][0])
    frame = pandas.DataFrame(dict(enumerate(columns)), index=index)
    if about["numbered"] is not None:
        frame.columns = pandas.RangeIndex(*about["numbered"])
    else:
        frame.columns = pandas.Index(about["labels"], dtype=None if about["labels"] else object)
    return frame


def _index(about: dict[str, Any], arrays: Any) -> Any:
    import pandas

    name = about.get("name")
    if about["kind"] == "range":
        return pandas.RangeIndex(*about["bounds"], name=name)
    return pandas.Index(_column(about, arrays), name=name)


def _column(about: dict[str, Any], arrays: Any) -> Any:
    import pandas

    key = about["key"]
    if about["kind"] == "plain":
        return arrays[key]
    if about["kind"] == "category":
        categories = pandas.Index(_column(about["categories"], arrays))
        return pandas.Categorical.from_codes(
            arrays[key], categories=categories, ordered=about["ordered"]
        )
    text = arrays[f"{key}.text"].tobytes()
    texts: list[Any] = []
    start = 0
    for end, lacks in zip(arrays[f"{key}.ends"].tolist(), arrays[f"{key}.lacks"].tolist()):
        one = text[start:end].decode("utf-8", "surrogatepass")
        texts.append((one, None, float("nan"))[lacks])
        start = end
    if about["dtype"] == "object":
        return _objects(texts)
    return pandas.array(texts, dtype=about["dtype"])


def _objects(texts: list[Any]) -> Any:
    """Make an array of objects, whatever type pandas would take for texts."""
    import numpy
    import pandas

    made = numpy.empty(len(texts), dtype=object)
    made[:] = texts
    return pandas.Series(made, dtype=object).array
