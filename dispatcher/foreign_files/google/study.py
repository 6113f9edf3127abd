"""Parameters of a study of Vertex AI, those below values of others included."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from dispatcher.foreign_files import spaces
from dispatcher.foreign_files.google.parameters import Parameters
from dispatcher.foreign_files.translation import Translation
from trial_runtime.parameter_text import text_of
from tuners.plain_json import JsonPath

PATH = "studySpec.parameters[]"
_CHILDREN = "conditionalParameterSpecs"

#: By the field with the values of a parameter, the field of a child that names values of it.
_PARENTS = {
    "categoricalValueSpec": "parentCategoricalValues",
    "discreteValueSpec": "parentDiscreteValues",
    "integerValueSpec": "parentIntValues",
}
_KINDS = (*_PARENTS, "doubleValueSpec")
_LISTS = ("categoricalValueSpec", "discreteValueSpec")

#: Whole numbers with parameters below some of them, at most.
_MOST_BRANCHES = 100

#: As close as two discrete values may be in Vertex AI.
_CLOSE = 1e-10


class StudyParameters:
    """Makes the search space of a study.

    Args:
        translation: takes it, and what is refused.
    """

    def __init__(self, translation: Translation) -> None:
        self._translation = translation
        self._get = translation.get
        self._make = Parameters(translation)

    def put(self, value: Any, at: JsonPath) -> None:
        """Put the search space under our key.

        Args:
            value: the list of parameters.
            at: its path in the file.
        """
        names: set[str] = set()
        for entry, here in self._translation.each(value, at):
            made = self._parameter(entry, here)
            if made is None:
                continue
            name, parameter = made
            if name in names:
                self._refuse_name(name, here, "is there twice")
                continue
            names.add(name)
            self._translation.put(("searchSpace", name), parameter, here)

    def _parameter(self, entry: Any, at: JsonPath) -> tuple[str, spaces.Parameter] | None:
        """The name of a parameter and its values; None for one that is refused."""
        if not isinstance(entry, Mapping):
            self._translation.walk(entry, at)
            return None
        self._translation.others(entry, ("parameterId", "scaleType", _CHILDREN, *_KINDS), at, PATH)
        name = self._translation.text(self._get(entry, "parameterId"), (*at, "parameterId"))
        if name is None:
            return None
        try:
            kind = self._kind(entry, at)
            make = self._nested if self._get(entry, _CHILDREN) else self._plain
            return name, make(name, kind, entry, at)
        except spaces.UnfitSpace as error:
            self._refuse_name(name, at, str(error))
            return None

    def _refuse_name(self, name: str, at: JsonPath, text: str) -> None:
        place = (*at, "parameterId")
        self._translation.refuse_parameter(name, place, f"is {name!r}, which {text}")

    def _kind(self, entry: Mapping[str, Any], at: JsonPath) -> str:
        kinds = [kind for kind in _KINDS if self._get(entry, kind) is not None]
        if len(kinds) != 1:
            raise spaces.UnfitSpace(f"needs one of {', '.join(_KINDS)}")
        (kind,) = kinds
        section = self._get(entry, kind)
        if isinstance(section, Mapping):
            taken = ("values",) if kind in _LISTS else ("minValue", "maxValue")
            self._translation.others(section, taken, (*at, kind), f"{PATH}.{kind}")
        return kind

    def _plain(
        self, name: str, kind: str, entry: Mapping[str, Any], at: JsonPath
    ) -> spaces.Parameter:
        section = self._get(entry, kind)
        if kind in _LISTS:
            return spaces.options(self._listed(kind, section))
        bounds = section if isinstance(section, Mapping) else {}
        scale = self._get(entry, "scaleType")
        return self._make.numbers(name, bounds, scale, is_whole=kind == "integerValueSpec")

    def _listed(self, kind: str, section: Any) -> list[Any]:
        are_numbers = kind == "discreteValueSpec"
        return self._make.values(self._get(section, "values"), are_numbers=are_numbers)

    def _nested(
        self, name: str, kind: str, entry: Mapping[str, Any], at: JsonPath
    ) -> spaces.Parameter:
        if kind == "doubleValueSpec":
            raise spaces.UnfitSpace("has parameters below values, and may have any of a range")
        values = self._values(name, kind, entry, at)
        branches: list[dict[str, Any]] = [{"_name": text_of(each)} for each in values]
        children = self._get(entry, _CHILDREN)
        parent = _PARENTS[kind]
        for child, here in self._translation.sections(children, (*at, _CHILDREN)):
            self._translation.others(
                child, ("parameterSpec", parent), here, f"{PATH}.{_CHILDREN}[]"
            )
            made = self._parameter(self._get(child, "parameterSpec"), (*here, "parameterSpec"))
            wanted = self._get(self._get(child, parent), "values")
            if not isinstance(wanted, list) or not wanted:
                raise spaces.UnfitSpace(f"has one below it without {parent!r}")
            places = [_place_of(each, values) for each in wanted]
            if made is None:
                continue
            for place in places:
                if made[0] in branches[place]:
                    raise spaces.UnfitSpace(f"has {made[0]!r} twice below {values[place]!r}")
                branches[place][made[0]] = made[1]
        return spaces.options(branches)

    def _values(
        self, name: str, kind: str, entry: Mapping[str, Any], at: JsonPath
    ) -> Sequence[Any]:
        if kind in _LISTS:
            return self._listed(kind, self._get(entry, kind))
        plain = self._plain(name, kind, entry, at)["_value"]
        low, high = plain[0], plain[-1] - 1 if len(plain) == 2 else plain[-1]
        if len(plain) == 3 or high - low >= _MOST_BRANCHES:
            raise spaces.UnfitSpace(
                f"has parameters below values, and more than {_MOST_BRANCHES} values or a scale"
            )
        return range(int(low), int(high) + 1)


def _place_of(value: Any, values: Sequence[Any]) -> int:
    """The place of a parent's value, which may be a text of a number."""
    for place, each in enumerate(values):
        if value == each or (not isinstance(each, str) and _is_close(value, each)):
            return place
    raise spaces.UnfitSpace(f"has parameters below {value!r}, which is none of its values")


def _is_close(value: Any, number: float) -> bool:
    try:
        return abs(float(value) - number) <= _CLOSE
    except (TypeError, ValueError, OverflowError):
        return False
