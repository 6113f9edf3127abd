"""Search spaces of Google's tuning jobs: parameters by their bounds, lists and scales."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatcher.foreign_files import spaces
from dispatcher.foreign_files.translation import Translation
from tuners.plain_json import JsonPath

_LOG, _REVERSE_LOG = "UNIT_LOG_SCALE", "UNIT_REVERSE_LOG_SCALE"
_SCALES = (
    *("", "NONE", "SCALE_TYPE_UNSPECIFIED", "UNIT_LINEAR_SCALE"),
    *(_LOG, _REVERSE_LOG),
)

_REVERSED = (
    "is searched evenly here: no scale of ours looks closer at the end of a range than at its "
    "beginning"
)


class Parameters:
    """Makes parameters of what a file says of them.

    Args:
        translation: takes what is refused, and remarks.
    """

    def __init__(self, translation: Translation) -> None:
        self._translation = translation

    def numbers(
        self, name: str, bounds: Mapping[str, Any], at: JsonPath, scale: Any, *, is_whole: bool
    ) -> spaces.Parameter:
        """Return a range of numbers.

        Args:
            name: of the parameter.
            bounds: with ``minValue`` and ``maxValue``, whose numbers may be texts.
            at: the path of the bounds in the file.
            scale: the file's word for it, if it has one.
            is_whole: whether only whole numbers are in it.

        Raises:
            UnfitSpace: there is no such range.
        """
        low = _number(bounds.get("minValue"), "minValue", is_whole=is_whole)
        high = _number(bounds.get("maxValue"), "maxValue", is_whole=is_whole)
        word = scale or ""
        if word not in _SCALES:
            known = ", ".join(_SCALES[2:])
            raise spaces.UnfitSpace(f"has the scale {word!r}; there are {known}")
        if word == _REVERSE_LOG:
            self._translation.draft.remark(f"the parameter {name!r} ({_REVERSE_LOG}) {_REVERSED}")
        make = spaces.whole if is_whole else spaces.real
        return make(low, high, log=word == _LOG)

    def values(self, values: Any, at: JsonPath, *, are_numbers: bool) -> list[Any]:
        """Return the values of a list.

        Args:
            values: as the file has them.
            at: their path in the file.
            are_numbers: whether each is a number.

        Raises:
            UnfitSpace: there are none, or others.
        """
        if not isinstance(values, list) or not values:
            raise spaces.UnfitSpace("names no values")
        for each in values:
            is_number = isinstance(each, int | float) and not isinstance(each, bool)
            if is_number is not are_numbers or not (is_number or isinstance(each, str)):
                kind = "a number" if are_numbers else "text"
                raise spaces.UnfitSpace(f"has the value {each!r}, which is not {kind}")
        return values


def _number(value: Any, key: str, *, is_whole: bool) -> Any:
    """A number, or a text that is one, as JSON has long whole numbers."""
    if value is None:
        raise spaces.UnfitSpace(f"needs {key!r}")
    try:
        if isinstance(value, bool):
            raise ValueError
        number = float(value)
        if is_whole:
            if number != int(number):
                raise ValueError
            return int(value) if isinstance(value, int | str) else int(number)
    except (TypeError, ValueError, OverflowError):
        wanted = "a whole number" if is_whole else "a number"
        raise spaces.UnfitSpace(f"has the {key!r} {value!r}, which is not {wanted}") from None
    return value if isinstance(value, int | float) else number


def put_training_parameters(translation: Translation, value: Any, at: JsonPath, path: str) -> None:
    """Put the parameters of a TrainingInput under our key.

    Args:
        translation: takes them.
        value: the list.
        at: its path in the file.
        path: of its entries in the table.
    """
    make = Parameters(translation)
    fields = ("parameterName", "type", "minValue", "maxValue", "scaleType")
    names: set[str] = set()
    for entry, here in translation.each(value, at):
        if not isinstance(entry, Mapping):
            translation.walk(entry, here)
            continue
        for key in entry:
            if key not in (*fields, "categoricalValues", "discreteValues"):
                translation.walk({key: entry[key]}, here, path)
        name = translation.text(entry.get("parameterName"), (*here, "parameterName"))
        if name is None:
            continue
        if name in names:
            translation.draft.refuse((*here, "parameterName"), f"is {name!r} twice", is_key=False)
            continue
        names.add(name)
        try:
            parameter = _training_parameter(make, name, entry, here)
        except spaces.UnfitSpace as error:
            text = f"is {name!r}, which {error}"
            translation.refuse_parameter(name, (*here, "parameterName"), text)
            continue
        translation.put(("searchSpace", name), parameter, here)


def _training_parameter(
    make: Parameters, name: str, entry: Mapping[str, Any], at: JsonPath
) -> spaces.Parameter:
    kind = entry.get("type")
    if kind in ("DOUBLE", "INTEGER"):
        scale = entry.get("scaleType")
        return make.numbers(name, entry, at, scale, is_whole=kind == "INTEGER")
    if kind == "CATEGORICAL":
        return spaces.options(make.values(entry.get("categoricalValues"), at, are_numbers=False))
    if kind == "DISCRETE":
        return spaces.options(make.values(entry.get("discreteValues"), at, are_numbers=True))
    raise spaces.UnfitSpace(
        f"has the type {kind!r}; there are DOUBLE, INTEGER, CATEGORICAL, DISCRETE"
    )
