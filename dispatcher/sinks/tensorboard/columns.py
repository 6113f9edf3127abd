"""The columns of HParams: their types and ranges, from the search space or from all trials.

TensorBoard takes a column's type from what it sees first, and a parameter that comes late has no
column. So the search space names them where it can; others are gathered from the trials, in a way
that does not depend on the order in which those come.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any, Final

from dispatcher.sinks.naming import MOST_PARAMETERS, as_float, flat_parameters, shortened
from dispatcher.sinks.tensorboard.messages import DataType, Plain, column
from tuners.space.model import INTEGERS

#: Columns at most, and values of one that are listed: beyond that nobody chooses among them.
_MOST_COLUMNS: Final = 256
_MOST_VALUES: Final = 16
_MOST_LETTERS: Final = 64

#: What a value is put under that does not fit its column.
_OTHER: Final = " (other)"

_FLOATS: Final = [DataType.FLOAT64.value]

_RANGES: Final = ("uniform", "quniform", "loguniform", "qloguniform")

Domain = list[Plain] | tuple[float, float] | None
Declared = tuple[DataType, Domain]


def declared_columns(space: Mapping[str, Any]) -> dict[str, Declared]:
    """Return the columns that a search space names, with what their values may be."""
    found: dict[str, Declared] = {}
    for name, entry in list(space.items())[:MOST_PARAMETERS]:
        declared = _declared(entry) if isinstance(entry, Mapping) else None
        if declared is not None:
            found[shortened(str(name))] = declared
    return found


def _declared(entry: Mapping[str, Any]) -> Declared | None:
    kind, values = entry.get("_type"), entry.get("_value")
    if not isinstance(values, list):
        return None
    numbers = [as_float(each) for each in values if type(each) in (int, float)]
    if kind in _RANGES and len(numbers) >= 2:
        return DataType.FLOAT64, (numbers[0], numbers[1])
    if kind in INTEGERS and len(numbers) >= 2:
        return DataType.FLOAT64, (numbers[0], max(numbers[0], numbers[1] - 1))
    if kind in ("normal", "qnormal", "lognormal", "qlognormal"):
        return DataType.FLOAT64, None
    if kind == "choice" and values:
        if len(numbers) == len(values):
            return DataType.FLOAT64, sorted(set(numbers))
        if all(isinstance(each, bool) for each in values):
            return DataType.BOOL, sorted(set(values))
        if all(isinstance(each, str) for each in values):
            flat = flat_parameters({str(i): each for i, each in enumerate(values)}, len(values))
            return DataType.STRING, sorted(set(map(str, flat.values())))
    return None


def type_of(value: Plain) -> DataType:
    """The type of a value by itself."""
    if isinstance(value, bool):
        return DataType.BOOL
    return DataType.STRING if isinstance(value, str) else DataType.FLOAT64


class Columns:
    """All columns of an experiment.

    Args:
        space: the search space.
        memo: as :meth:`memo` gave it, of the sink before.
    """

    def __init__(self, space: Mapping[str, Any], memo: Any) -> None:
        self.declared = declared_columns(space)
        self._seen: dict[str, dict[str, Any]] = {}
        if isinstance(memo, dict):
            self._seen = {str(name): dict(each) for name, each in memo.items()}

    def memo(self) -> dict[str, Any]:
        """Return what was gathered from trials, as JSON."""
        return self._seen

    def fitted(self, parameters: Mapping[str, Plain]) -> dict[str, Plain]:
        """Return a trial's parameters under the columns that they fit."""
        fitted = {}
        for name, value in parameters.items():
            declared = self.declared.get(name)
            fits = declared is None or declared[0] is type_of(value)
            fitted[name if fits else f"{name}{_OTHER}"] = value
        return fitted

    def gather(self, parameters: Mapping[str, Plain]) -> bool:
        """Take note of a trial's parameters; true if a column has changed."""
        changed = False
        for name, value in parameters.items():
            if name not in self.declared:
                known = self._seen.get(name)
                column = known or {"types": [], "values": [], "ends": None}
                changed |= _widened(column, value)
                self._seen[name] = column
        return changed

    def encoded(self) -> list[bytes]:
        """The columns in their order: those of the search space, then the others by name."""
        columns = [column(name, *declared) for name, declared in self.declared.items()]
        columns += [column(name, *_gathered(self._seen[name])) for name in sorted(self._seen)]
        return columns[:_MOST_COLUMNS]


def _widened(column: dict[str, Any], value: Plain) -> bool:
    """Let a column hold a value; true if it did not."""
    ends = column["ends"]
    if type(value) is float and ends and column["types"] == _FLOATS and ends[0] <= value <= ends[1]:
        return False  # the usual: thousands of trials within a range
    before = (list(column["types"]), column["values"], column["ends"])
    column["types"] = sorted({*column["types"], int(type_of(value))})
    if isinstance(value, bool | str):
        listed = column["values"]
        if listed is not None:
            listed = sorted({*listed, value}, key=str)
            short = len(listed) <= _MOST_VALUES and all(
                len(str(x)) <= _MOST_LETTERS for x in listed
            )
            column["values"] = listed if short else None
    elif math.isfinite(value):
        low, high = column["ends"] or (value, value)
        column["ends"] = [min(low, value), max(high, value)]
    return before != (column["types"], column["values"], column["ends"])


def _gathered(seen: Mapping[str, Any]) -> Declared:
    if len(seen["types"]) != 1:
        return DataType.STRING, None
    kind = DataType(seen["types"][0])
    if kind is DataType.FLOAT64:
        return kind, tuple(seen["ends"]) if seen["ends"] else None
    return kind, seen["values"]
