"""Parameters from cells of a CSV file: it has text alone, and a search space tells its types."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from tuners.space.model import Branch, Choice, Dimension, Space
from tuners.space.sampling import is_legal


def read_cell(text: str | None) -> Any:
    """Return what a cell of an export holds; None for an empty one."""
    text = (text or "").removeprefix("'")  # which keeps spreadsheets from taking it for a formula
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return text or None


def as_meant(space: Space, parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Return parameters with None where it was written as nothing, and with the options that read
    as something else: ``"1"`` as a number, ``"null"`` as nothing.

    Args:
        space: their search space; what does not fit it stays as it is.
        parameters: by name, nested, as :func:`read_cell` returns them.
    """
    meant = dict(parameters)
    for name, dimension in space.dimensions:
        value = _option_meant(dimension, parameters.get(name))
        if value is not None or is_legal(dimension, None):
            meant[name] = value
    return meant


def _option_meant(dimension: Dimension, value: Any) -> Any:
    if not isinstance(dimension, Choice) or is_legal(dimension, value):
        return value
    for option in dimension.options:
        if isinstance(option, Branch):
            if isinstance(value, Mapping) and _reads_as(option.name, value.get("_name")):
                return {**as_meant(option.space, value), "_name": option.name}
        elif _reads_as(option, value):
            return option
    return value


def _reads_as(option: Any, value: Any) -> bool:
    if not isinstance(option, str):
        return False
    read = read_cell(option)
    return type(read) is type(value) and bool(read == value)
