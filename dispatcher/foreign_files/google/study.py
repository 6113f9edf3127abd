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
        fields = _Fields(entry)
        if not isinstance(entry, Mapping):
            self._translation.walk(entry, at)
            return None
        for key in entry:
            if fields.is_unknown(key):
                self._translation.walk({key: entry[key]}, at, PATH)
        name = self._translation.text(fields.get("parameterId"), (*at, "parameterId"))
        if name is None:
            return None
        try:
            kind, section = self._kind(fields)
            if fields.get(_CHILDREN):
                return name, self._nested(name, kind, section, fields, at)
            return name, self._plain(name, kind, section, fields, at)
        except spaces.UnfitSpace as error:
            self._refuse_name(name, at, str(error))
            return None

    def _refuse_name(self, name: str, at: JsonPath, text: str) -> None:
        place = (*at, "parameterId")
        self._translation.refuse_parameter(name, place, f"is {name!r}, which {text}")

    def _kind(self, fields: _Fields) -> tuple[str, _Fields]:
        kinds = [kind for kind in _KINDS if fields.get(kind) is not None]
        if len(kinds) != 1:
            raise spaces.UnfitSpace(f"needs one of {', '.join(_KINDS)}")
        return kinds[0], _Fields(fields.get(kinds[0]))

    def _plain(
        self, name: str, kind: str, section: _Fields, fields: _Fields, at: JsonPath
    ) -> spaces.Parameter:
        if kind in ("doubleValueSpec", "integerValueSpec"):
            bounds = {key: section.get(key) for key in ("minValue", "maxValue")}
            is_whole = kind == "integerValueSpec"
            scale = fields.get("scaleType")
            return self._make.numbers(name, bounds, at, scale, is_whole=is_whole)
        return spaces.options(self._listed(kind, section, at))

    def _listed(self, kind: str, section: _Fields, at: JsonPath) -> list[Any]:
        are_numbers = kind == "discreteValueSpec"
        return self._make.values(section.get("values"), at, are_numbers=are_numbers)

    def _nested(
        self, name: str, kind: str, section: _Fields, fields: _Fields, at: JsonPath
    ) -> spaces.Parameter:
        if kind == "doubleValueSpec":
            raise spaces.UnfitSpace("has parameters below values, and may have any of a range")
        values = self._values(name, kind, section, fields, at)
        branches: list[dict[str, Any]] = [{"_name": text_of(each)} for each in values]
        children = fields.get(_CHILDREN)
        for entry, here in self._translation.each(children, (*at, _CHILDREN)):
            child = _Fields(entry)
            made = self._parameter(child.get("parameterSpec"), (*here, "parameterSpec"))
            wanted = _Fields(child.get(_PARENTS[kind])).get("values")
            if not isinstance(wanted, list) or not wanted:
                raise spaces.UnfitSpace(f"has one below it without {_PARENTS[kind]!r}")
            places = [_place_of(each, values) for each in wanted]
            if made is None:
                continue
            for place in places:
                if made[0] in branches[place]:
                    raise spaces.UnfitSpace(f"has {made[0]!r} twice below {values[place]!r}")
                branches[place][made[0]] = made[1]
        return spaces.options(branches)

    def _values(
        self, name: str, kind: str, section: _Fields, fields: _Fields, at: JsonPath
    ) -> Sequence[Any]:
        if kind != "integerValueSpec":
            return self._listed(kind, section, at)
        plain = self._plain(name, kind, section, fields, at)["_value"]
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
    except (TypeError, ValueError):
        return False


class _Fields:
    """A section whose fields are found in whatever spelling."""

    def __init__(self, section: Any) -> None:
        from dispatcher.experiment.fields import fold_word

        self._fold = fold_word
        section = section if isinstance(section, Mapping) else {}
        self._values = {fold_word(str(key)): value for key, value in section.items()}

    def get(self, key: str) -> Any:
        return self._values.get(self._fold(key))

    def is_unknown(self, key: str) -> bool:
        known = ("parameterId", "scaleType", _CHILDREN, *_KINDS)
        return self._fold(str(key)) not in {self._fold(each) for each in known}
