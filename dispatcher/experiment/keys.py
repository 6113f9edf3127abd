"""The spelling of keys: camelCase, snake_case, and guesses for unknown ones.

As in NNI, neither case nor underscores are looked at.
"""

from __future__ import annotations

import difflib
import typing
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from pydantic.fields import FieldInfo

from dispatcher.experiment.dialects import first_to_know
from dispatcher.experiment.fields import ChosenSection, Section, fold_word
from tuners.plain_json import JsonPath

COMMENT = "x-"
"""Prefix of top-level keys that are not read: a place for YAML anchors, as in compose files."""

ClassFor = Callable[[Any], type[Section]]
"""Chooses the class that reads a value of the file."""

Refuse = Callable[[JsonPath, str, str], None]
"""Called with the path of a key as it is written, a sentence and a hint."""


def file_key(section: type[Section], attribute: str) -> str:
    """Return the key of the file that an attribute is read from."""
    return section.model_fields[attribute].alias or attribute


def keys_of(section: type[Section]) -> dict[str, str]:
    """Return folded key → canonical key for one section, other spellings included."""
    keys = (file_key(section, attribute) for attribute in section.model_fields)
    others = {fold_word(name): key for name, key in section.other_names.items()}
    return others | {fold_word(key): key for key in keys}


def sections_of(section: type[Section]) -> Iterator[tuple[str, type[Section]]]:
    """Yield the keys of a section that hold sections or lists of them, with each possible class."""
    for attribute, info in section.model_fields.items():
        chosen = _chosen(info)
        several = chosen.classes() if chosen is not None else _sections_in(info.annotation)
        for inner in dict.fromkeys(several):
            yield file_key(section, attribute), inner


def _chosen(info: FieldInfo) -> ChosenSection | None:
    return next((each for each in info.metadata if isinstance(each, ChosenSection)), None)


def _choices(section: type[Section]) -> dict[str, ClassFor]:
    """Return by key what chooses the class of the section, or of sections of a list, below it."""
    choices: dict[str, ClassFor] = {}
    for attribute, info in section.model_fields.items():
        chosen, inner = _chosen(info), next(_sections_in(info.annotation), None)
        if chosen is not None:
            choices[file_key(section, attribute)] = chosen.class_for
        elif inner is not None:
            choices[file_key(section, attribute)] = partial(_always, inner)
    return choices


def _always(section: type[Section], value: Any) -> type[Section]:
    return section


def _sections_in(annotation: Any) -> Iterator[type[Section]]:
    if isinstance(annotation, type) and issubclass(annotation, Section):
        yield annotation
    for part in typing.get_args(annotation):
        yield from _sections_in(part)


class KeySettler:
    """Rewrites the keys of a file into their canonical spelling, section by section.

    Attributes:
        written: canonical path → path as the file spells it, for finding places.
    """

    def __init__(self, root: type[Section], refuse: Refuse) -> None:
        self.root = root
        self.refuse = refuse
        self.written: dict[JsonPath, JsonPath] = {(): ()}

    def settle(self, values: Mapping[str, Any]) -> dict[str, Any]:
        """Return the values under canonical keys; unknown and doubled keys are left out."""
        return self._settle(values, self.root, (), ())

    def _settle(
        self, values: Mapping[Any, Any], section: type[Section], path: JsonPath, spelt: JsonPath
    ) -> dict[str, Any]:
        known = keys_of(section)
        inner = _choices(section)
        settled: dict[str, Any] = {}
        spelling: dict[str, str] = {}
        for key, value in values.items():
            if not isinstance(key, str):
                self.refuse((*spelt, str(key)), f"the key {key!r} is not text", "")
                continue
            if key.startswith(COMMENT) and not path:
                continue
            canonical = known.get(fold_word(key))
            if canonical is None:
                self._refuse_unknown(key, section, path, spelt)
            elif canonical in spelling:
                text = f"{key!r} and {spelling[canonical]!r} are the same key"
                self.refuse((*spelt, key), text, "keep one of the two spellings")
            else:
                spelling[canonical] = key
                at, written = (*path, canonical), (*spelt, key)
                self.written[at] = written
                if canonical in inner:
                    value = self._settle_inner(value, inner[canonical], at, written)
                settled[canonical] = value
        return settled

    def _settle_inner(
        self, value: Any, class_for: ClassFor, path: JsonPath, spelt: JsonPath
    ) -> Any:
        if isinstance(value, list):
            return [
                self._settle_inner(each, class_for, (*path, index), (*spelt, index))
                for index, each in enumerate(value)
            ]
        section = class_for(value)
        try:
            value = section.read_short_form(value)
        except Exception:  # noqa: BLE001 - the section of another package
            return value  # it will fail as it is validated, and be refused then
        if not isinstance(value, Mapping):
            return value
        self.written[path] = spelt
        return self._settle(value, section, path, spelt)

    def _refuse_unknown(
        self, key: str, section: type[Section], path: JsonPath, spelt: JsonPath
    ) -> None:
        name = next((part for part in reversed(path) if isinstance(part, str)), "")
        known = keys_of(section)
        known_elsewhere = first_to_know(lambda dialect: dialect.hint(name, key))
        hint = known_elsewhere[1] if known_elsewhere else self._belongs(key, name)
        near = difflib.get_close_matches(fold_word(key), known, 1, 0.6)
        text = f"unknown key {key!r}" + (f" in {name!r}" if name else "")
        if near and not hint:
            text += f"; did you mean {known[near[0]]!r}?"
        elif not hint:
            hint = f"keys here are {', '.join(sorted(set(known.values())))}"
        self.refuse((*spelt, key), text, hint)

    def _belongs(self, key: str, section: str) -> str:
        """Say where a key belongs that is valid elsewhere in the file."""
        if section and fold_word(key) in keys_of(self.root):
            return f"{keys_of(self.root)[fold_word(key)]!r} belongs at the top level of the file"
        for name, inner in sections_of(self.root):
            if not section and fold_word(key) in keys_of(inner):
                return f"{keys_of(inner)[fold_word(key)]!r} belongs below {name!r}"
        return ""
