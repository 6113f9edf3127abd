"""The search space of an Experiment: its parameters, whose numbers are texts."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from dispatcher.foreign_files import spaces
from dispatcher.foreign_files.translation import Translation
from tuners.plain_json import JsonPath

_DISTRIBUTIONS = ("uniform", "logUniform", "normal", "logNormal")
_TYPES = ("double", "int", "discrete", "categorical")
_OF_NUMBERS = ("min", "max", "step")


def put_parameters(translation: Translation, value: Any, at: JsonPath, budget: str) -> None:
    """Put the search space under our key.

    Args:
        translation: takes it.
        value: the list of parameters.
        at: its path in the file.
        budget: name of the parameter that the tuner sets by itself; empty if there is none.
    """
    names: set[str] = set()
    for entry, here in translation.sections(value, at):
        taken = ("name", "parameterType", "feasibleSpace")
        translation.others(entry, taken, here, "spec.parameters[]")
        name = translation.text(entry.get("name"), (*here, "name"))
        if name is None:
            continue
        if name in names:
            translation.draft.refuse((*here, "name"), f"is {name!r} twice", is_key=False)
        elif name == budget:
            translation.draft.drop(here, "it is the budget, which the tuner sets")
        else:
            _put_one(translation, name, entry, here)
        names.add(name)


def _put_one(translation: Translation, name: str, entry: Mapping[str, Any], at: JsonPath) -> None:
    kind = entry.get("parameterType")
    here = (*at, "feasibleSpace")
    space = entry.get("feasibleSpace")
    if not isinstance(space, Mapping):
        place = (*at, "name")
        translation.refuse_parameter(name, place, f"is {name!r}, which has no 'feasibleSpace'")
        return
    taken = (*_OF_NUMBERS, "list", "distribution")
    translation.others(space, taken, here, "spec.parameters[].feasibleSpace")
    try:
        if kind in ("categorical", "discrete"):
            parameter = _listed(space)
        elif kind in ("int", "double"):
            parameter = _numbers(space, is_whole=kind == "int")
        else:
            known = ", ".join(_TYPES)
            text = f"is {kind!r}; there are {known}"
            translation.refuse_parameter(name, (*at, "parameterType"), text)
            return
    except spaces.UnfitSpace as error:
        translation.refuse_parameter(name, here, str(error))
        return
    translation.put(("searchSpace", name), parameter, here)


def _listed(space: Mapping[str, Any]) -> spaces.Parameter:
    values = space.get("list")
    if not isinstance(values, list):
        raise spaces.UnfitSpace("has no 'list' of values")
    return spaces.options([each if isinstance(each, str) else _plain(each) for each in values])


def _plain(value: Any) -> Any:
    if isinstance(value, bool) or spaces.is_number(value):
        return value
    raise spaces.UnfitSpace(f"has {value!r} in its 'list', which is neither text nor a number")


def _numbers(space: Mapping[str, Any], *, is_whole: bool) -> spaces.Parameter:
    numbers = {key: _number(space.get(key), key, is_whole=is_whole) for key in _OF_NUMBERS}
    low, high, step = (numbers[key] for key in _OF_NUMBERS)
    if low is None or high is None:
        raise spaces.UnfitSpace("needs 'min' and 'max'")
    distribution = space.get("distribution") or "uniform"
    if distribution not in _DISTRIBUTIONS:
        known = ", ".join(_DISTRIBUTIONS)
        raise spaces.UnfitSpace(f"has the distribution {distribution!r}; there are {known}")
    log = distribution.startswith("log")
    if "ormal" in distribution:
        return spaces.bell(low, high, step or (1 if is_whole else None), log=log)
    if step is None or (is_whole and step == 1):
        make = spaces.whole if is_whole else spaces.real
        return make(low, high, log=log)  # type: ignore[arg-type]
    if not log:
        return spaces.stepped(low, high, step)
    return {**spaces.real(low, high, log=True), "_type": "qloguniform"} | {
        "_value": [low, high, step]
    }


def _number(value: Any, key: str, *, is_whole: bool) -> float | int | None:
    """The number that a text is; None for none."""
    if value is None or value == "":
        return None
    try:
        number = int(value) if is_whole else float(value)
        if isinstance(value, float) and number != value:  # int() would cut it
            raise ValueError
        if isinstance(value, bool) or not spaces.is_number(number):
            raise ValueError
        return number
    except (TypeError, ValueError, OverflowError):
        wanted = "a whole number" if is_whole else "a number"
        raise spaces.UnfitSpace(f"has the {key!r} {value!r}, which is not {wanted}") from None
