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

_FIELDS = (
    *("parameterName", "type", "minValue", "maxValue", "scaleType"),
    *("categoricalValues", "discreteValues"),
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
        self, name: str, bounds: Mapping[str, Any], scale: Any, *, is_whole: bool
    ) -> spaces.Parameter:
        """Return a range of numbers.

        Args:
            name: of the parameter.
            bounds: with ``minValue`` and ``maxValue``, whose numbers may be texts.
            scale: the file's word for it, if it has one.
            is_whole: whether only whole numbers are in it.

        Raises:
            UnfitSpace: there is no such range.
        """
        get = self._translation.get
        low = _number(get(bounds, "minValue"), "minValue", is_whole=is_whole)
        high = _number(get(bounds, "maxValue"), "maxValue", is_whole=is_whole)
        word = scale or ""
        if word not in _SCALES:
            known = ", ".join(_SCALES[2:])
            raise spaces.UnfitSpace(f"has the scale {word!r}; there are {known}")
        if word == _REVERSE_LOG:
            self._translation.draft.remark(f"the parameter {name!r} ({_REVERSE_LOG}) {_REVERSED}")
        make = spaces.whole if is_whole else spaces.real
        return make(low, high, log=word == _LOG)

    def values(self, values: Any, *, are_numbers: bool) -> list[Any]:
        """Return the values of a list.

        Args:
            values: as the file has them.
            are_numbers: whether each is a number.

        Raises:
            UnfitSpace: there are none, or others.
        """
        if not isinstance(values, list) or not values:
            raise spaces.UnfitSpace("names no values")
        for each in values:
            if not (spaces.is_number(each) if are_numbers else isinstance(each, str)):
                kind = "a number" if are_numbers else "text"
                raise spaces.UnfitSpace(f"has the value {each!r}, which is not {kind}")
        return values


def _number(value: Any, key: str, *, is_whole: bool) -> Any:
    """A number, or a text that is one, as JSON has long whole numbers."""
    if value is None:
        raise spaces.UnfitSpace(f"needs {key!r}")
    try:
        number = float(value)
        if isinstance(value, bool) or not spaces.is_number(number):
            raise ValueError
        if is_whole:
            exact = int(value) if isinstance(value, int | str) else int(number)
            if number != int(number) or not spaces.is_number(exact):
                raise ValueError
            return exact
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
    names: set[str] = set()
    for entry, here in translation.sections(value, at):
        translation.others(entry, _FIELDS, here, path)
        name = translation.text(translation.get(entry, "parameterName"), (*here, "parameterName"))
        if name is None:
            continue
        if name in names:
            translation.draft.refuse((*here, "parameterName"), f"is {name!r} twice", is_key=False)
            continue
        names.add(name)
        try:
            parameter = _training_parameter(translation, name, entry)
        except spaces.UnfitSpace as error:
            text = f"is {name!r}, which {error}"
            translation.refuse_parameter(name, (*here, "parameterName"), text)
            continue
        translation.put(("searchSpace", name), parameter, here)


def _training_parameter(
    translation: Translation, name: str, entry: Mapping[str, Any]
) -> spaces.Parameter:
    make, get = Parameters(translation), translation.get
    kind = get(entry, "type")
    if kind in ("DOUBLE", "INTEGER"):
        scale = get(entry, "scaleType")
        return make.numbers(name, entry, scale, is_whole=kind == "INTEGER")
    if kind == "CATEGORICAL":
        return spaces.options(make.values(get(entry, "categoricalValues"), are_numbers=False))
    if kind == "DISCRETE":
        return spaces.options(make.values(get(entry, "discreteValues"), are_numbers=True))
    raise spaces.UnfitSpace(
        f"has the type {kind!r}; there are DOUBLE, INTEGER, CATEGORICAL, DISCRETE"
    )
