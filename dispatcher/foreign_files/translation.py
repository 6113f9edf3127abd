"""A walk over a file of a service: each of its fields is treated as the table says."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Collection, Mapping
from typing import Any

from dispatcher.experiment.draft import Draft
from dispatcher.experiment.fields import fold_word
from dispatcher.experiment.translated_keys import Does, Row, carry, given
from tuners.plain_json import JsonPath, kind_of

Handler = Callable[[Any, JsonPath], None]
"""Translates the value of a field, which stands at a path of the file."""

#: The row for any other field of a section.
ANY = "*"


class Translation:
    """A file of a service that becomes an experiment.

    Keys of ours may stand beside those of the service, at the top: they count, whatever the service
    has.

    Args:
        values: as read, keys as spelt.
        table: rows by the path of a field: ``spec.parameters[].name``.
        framework: what to call the service in sentences.
        folded: neither case nor underscores of the fields matter.

    Attributes:
        draft: takes the translation.
    """

    def __init__(
        self,
        values: Mapping[str, Any],
        table: Mapping[str, Row],
        framework: str,
        *,
        folded: bool = False,
    ) -> None:
        self.draft = Draft()
        self._table = table
        self._framework = framework
        self._fold: Callable[[str], str] = fold_word if folded else str
        self._paths = {self._fold(path): path for path in table}
        self._handlers: dict[str, Handler] = {}
        self._own = self._keys_of_ours(values)

    def handle(self, handlers: Mapping[str, Handler]) -> None:
        """Name what translates the special fields, by their paths in the table."""
        self._handlers.update(handlers)

    def is_ours(self, key: str) -> bool:
        """Whether the file has this key of ours itself."""
        return key in self._own

    def put(self, native: JsonPath, value: Any, source: JsonPath, text: str = "") -> None:
        """Set a value at a native path, unless the file has that key of ours itself.

        Args:
            native: path under our keys.
            value: as it stands there.
            source: path in the user's file.
            text: why it is what it is; empty where that is plain.
        """
        if self.is_ours(str(native[0])):
            self.draft.drop(source, f"{str(native[0])!r} of this file counts")
        else:
            self.draft.put(native, value, source, text)

    def keeps(self, native: str) -> Handler:
        """Return what puts the value of a field under a top-level key of ours as it is."""
        return lambda value, at: self.put((native,), value, at)

    def add(self, native: JsonPath, value: Any, text: str) -> None:
        """Set a value that the service takes where its file says nothing.

        Args:
            native: path under our keys.
            value: as it stands there.
            text: why it is added.
        """
        if not self.is_ours(str(native[0])):
            self.draft.add(native, value, text)

    def lacks(self, native: str, source: JsonPath, field: str, hint: str) -> None:
        """Refuse a file without what an experiment needs, unless it has our key for it.

        Args:
            native: our top-level key.
            source: the section of the file that lacks a field.
            field: its name.
            hint: what to write.
        """
        if self.is_ours(native) or native in self.draft.values or native in self.draft.broken:
            return
        self.draft.refuse(source, f"has no {field!r}", hint)
        self.draft.broken.add(native)

    def refuse_parameter(self, name: str, at: JsonPath, text: str) -> None:
        """Refuse a parameter; one of its name stays, so that nothing is said of what names it.

        Args:
            name: of the parameter.
            at: the place to name.
            text: why, as the end of a sentence about it.
        """
        self.draft.refuse(at, text, is_key=False)
        if not self.is_ours("searchSpace"):
            section = self.draft.values.setdefault("searchSpace", {})
            section.setdefault(name, {"_type": "choice", "_value": [0]})

    def walk(self, section: Any, at: JsonPath, path: str = "") -> None:
        """Treat all fields of a section.

        Args:
            section: as the file has it.
            at: its path in the file.
            path: its path in the table.
        """
        if not isinstance(section, Mapping):
            text = f"must be a section of fields, not {kind_of(section)}"
            self.draft.refuse(at, text, is_key=False)
            return
        for key, value in given(section):
            if not path and self._row(key)[1] is None:
                continue  # a key of ours, which is there already
            self._field(key, value, (*at, key), f"{path}.{key}" if path else key, path)

    def get(self, section: Any, key: str) -> Any:
        """Return the value of a field in any spelling that the service takes; None if not set."""
        wanted = self._fold(key)
        return next((value for each, value in given(section) if self._fold(each) == wanted), None)

    def others(
        self, section: Mapping[str, Any], taken: Collection[str], at: JsonPath, path: str
    ) -> None:
        """Treat the fields of a section that its reader does not take by :meth:`get`.

        Args:
            section: as the file has it.
            taken: fields that the reader takes.
            at: its path in the file.
            path: its path in the table.
        """
        known = {self._fold(each) for each in taken}
        for key, value in given(section):
            if self._fold(key) not in known:
                self._field(key, value, (*at, key), f"{path}.{key}", path, taken)

    def sections(self, values: Any, at: JsonPath) -> list[tuple[Mapping[str, Any], JsonPath]]:
        """Return the sections of a list, each with its path; anything else is refused."""
        sections = []
        for value, here in self.each(values, at):
            if isinstance(value, Mapping):
                sections.append((value, here))
            else:
                self.walk(value, here)
        return sections

    def each(self, values: Any, at: JsonPath) -> list[tuple[Any, JsonPath]]:
        """Return the entries of a list, each with its path; a value that is none is refused."""
        if not isinstance(values, list):
            self.draft.refuse(at, f"must be a list, not {kind_of(values)}", is_key=False)
            return []
        return [(value, (*at, index)) for index, value in enumerate(values)]

    def text(self, value: Any, at: JsonPath) -> str | None:
        """Return a value that must be text; None for another one, which is refused."""
        if isinstance(value, str):
            return value
        self.draft.refuse(at, f"must be text, not {kind_of(value)}", is_key=False)
        return None

    def choose(self, value: Any, at: JsonPath, answers: Mapping[str, Any]) -> Any:
        """Return what a word of the service stands for; None for another one, which is refused.

        Args:
            value: as the file has it.
            at: its path.
            answers: what each word stands for.
        """
        if isinstance(value, str) and value in answers:
            return answers[value]
        self.draft.refuse(at, f"is {value!r}", f"there are {', '.join(answers)}", is_key=False)
        return None

    def _field(
        self,
        key: str,
        value: Any,
        at: JsonPath,
        name: str,
        path: str,
        beside: Collection[str] = (),
    ) -> None:
        canonical, row = self._row(name, path)
        handler = self._handlers.get(canonical)
        if row is None or (row.does is Does.SPECIAL and handler is None):
            self._refuse_unknown(key, at, path, beside)
        elif row.does is Does.SECTION:
            self.walk(value, at, canonical)
        elif handler is not None:
            handler(value, at)
        elif row.does is Does.KEEP:
            self.put(tuple(row.native.split(".")), value, at, row.note)
        else:
            carry(self.draft, row, value, at)

    def _row(self, name: str, path: str = "") -> tuple[str, Row | None]:
        canonical = self._paths.get(self._fold(name))
        if canonical is None and path:
            canonical = self._paths.get(self._fold(f"{path}.{ANY}"))
        return canonical or "", self._table.get(canonical or "")

    def _refuse_unknown(self, key: str, at: JsonPath, path: str, beside: Collection[str]) -> None:
        start = f"{path}." if path else ""
        below = [each.removeprefix(start) for each in self._table if each.startswith(start)]
        rows = [each for each in below if "." not in each and "[" not in each and each != ANY]
        fields = list(dict.fromkeys([*rows, *beside]))
        near = difflib.get_close_matches(key, fields, 1)
        hint = f"did you mean {near[0]!r}?" if near else f"there are {', '.join(fields)}"
        self.draft.refuse(at, f"is no field of {path or 'a file'} of {self._framework}", hint)

    def _keys_of_ours(self, values: Mapping[str, Any]) -> frozenset[str]:
        """Put the keys of the file that are not the service's; return them as we spell them."""
        from dispatcher.experiment.config import ExperimentConfig
        from dispatcher.experiment.keys import keys_of

        spelling = keys_of(ExperimentConfig)
        own = set()
        for key, value in given(values):
            if self._row(key)[1] is None:
                self.draft.put((key,), value, (key,), "a key of bequeath's own")
                own.add(spelling.get(fold_word(key), key))
        return frozenset(own)
