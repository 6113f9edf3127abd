"""A native file in the making: values, where each came from, and why it is what it is."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from tuners.plain_json import JsonPath, written_path


@dataclass(frozen=True, slots=True)
class KeyDecision:
    """The translation of one key. ``native`` is empty where nothing is left of it."""

    source: JsonPath
    native: JsonPath
    text: str


@dataclass(frozen=True, slots=True)
class Refusal:
    """A key that cannot be honoured, by its path in the user's file."""

    source: JsonPath
    text: str
    hint: str
    is_key: bool = True  # the place is the key's; else the value's


@dataclass(slots=True)
class Draft:
    """Values under native keys, and all that was decided on the way.

    Attributes:
        origins: native path → path in the user's file.
        remarks: sentences to print once when the experiment starts.
        broken: top-level keys whose values were refused as a whole.
    """

    values: dict[str, Any] = field(default_factory=dict)
    origins: dict[JsonPath, JsonPath] = field(default_factory=dict)
    decisions: list[KeyDecision] = field(default_factory=list)
    refusals: list[Refusal] = field(default_factory=list)
    remarks: list[str] = field(default_factory=list)
    broken: set[str] = field(default_factory=set)

    def put(self, native: JsonPath, value: Any, source: JsonPath, text: str = "") -> None:
        """Set a value at a native path; the first one stays, a second one is refused.

        Args:
            native: path under our keys.
            value: as it stands there.
            source: path in the user's file.
            text: why it is what it is; empty where that is plain.
        """
        inner: Any = self.values
        for part, following in pairwise(native):
            if not _can_hold(inner, part):
                return  # the file has a plain value where the section should be: named as such
            if isinstance(inner, list):
                while len(inner) <= int(part):
                    inner.append({})
                inner = inner[int(part)]
            else:
                inner = inner.setdefault(part, [] if isinstance(following, int) else {})
        last = native[-1]
        if not _can_hold(inner, last):
            return
        if isinstance(inner, dict) and last in inner:
            if inner[last] != value:
                before = written_path(self.origins.get(native, ()))
                self.refuse(source, f"says another thing than {before!r}", "keep one of the two")
            return
        if isinstance(inner, list):
            while len(inner) <= int(last):
                inner.append({})
        inner[last] = value
        self.origins[native] = source
        self.decisions.append(KeyDecision(source, native, text))

    def add(self, native: JsonPath, value: Any, text: str) -> None:
        """Set a value that no key of the file gives, but its framework's defaults do.

        Args:
            native: path under our keys.
            value: as it stands there.
            text: why it is added.
        """
        if native[0] not in self.values or len(native) > 1:
            self.put(native, value, (), text)

    def drop(self, source: JsonPath, text: str) -> None:
        """Note that a key has no effect, and why none is needed."""
        self.decisions.append(KeyDecision(source, (), text))

    def withdraw(self, key: str, text: str) -> None:
        """Take a key of ``trainingService`` back wherever it stands, and note why."""
        for native in [each for each in self.origins if each[0] == "trainingService"]:
            if native[-1] != key:
                continue
            section: Any = self.values
            for part in native[:-1]:
                section = section[part]
            section.pop(key, None)
            source = self.origins.pop(native)
            self.decisions[:] = [each for each in self.decisions if each.source != source]
            self.drop(source, text)

    def refuse(self, source: JsonPath, text: str, hint: str = "", *, is_key: bool = True) -> None:
        """Refuse a key by name.

        Args:
            source: path in the user's file.
            text: why, as the end of a sentence about the key.
            hint: what to do instead.
            is_key: whether the error's place is that of the key, not of its value.
        """
        name = written_path(source[-1:]) if source else "the file"
        self.refusals.append(Refusal(source, f"{name!r} {text}", hint, is_key))

    def remark(self, text: str) -> None:
        """Have a sentence printed when the experiment starts."""
        if text not in self.remarks:
            self.remarks.append(text)

    def source_of(self, native: JsonPath) -> JsonPath:
        """The path in the user's file of what stands at a native path, as far as it goes."""
        for end in range(len(native), 0, -1):
            if native[:end] in self.origins:
                return self.origins[native[:end]] + native[end:]
        # A section that was put together from several keys: any of them shows the place.
        for known, source in self.origins.items():
            if known[: len(native)] == native:
                return source
        return ()


def _can_hold(section: Any, part: str | int) -> bool:
    """Whether a value can have something below a key, or below the number of an entry."""
    return isinstance(section, list if isinstance(part, int) else dict)
