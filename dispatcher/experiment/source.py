"""Plain values of a text, with the places where they stand; ``yaml_text`` reads them."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from dispatcher.errors import ExperimentFileError
from tuners.plain_json import JsonPath, written_path

MOST_BYTES = 16 << 20
"""The largest text that is read."""

Place = tuple[int, int]
"""Line and column, both from 1."""


@dataclass(slots=True)
class Source:
    """Plain values and the places of their keys and values, by path."""

    origin: str
    value: Any = None
    keys: dict[JsonPath, Place] = field(default_factory=dict)
    values: dict[JsonPath, Place] = field(default_factory=dict)
    grafts: dict[JsonPath, Source] = field(default_factory=dict)
    """Values that came from files of their own."""
    doubles: list[ExperimentFileError] = field(default_factory=list)
    """Keys that are given twice, where that was allowed: the last one counts."""

    def place(self, path: JsonPath, *, key: bool = False) -> Place | None:
        """Return the place of a value, or of its key, or of what is nearest above it."""
        if key and path in self.keys:
            return self.keys[path]
        for end in range(len(path), -1, -1):
            if path[:end] in self.values:
                return self.values[path[:end]]
        return None

    def where(self, path: JsonPath, *, key: bool = False) -> str:
        """Return ``file:line:column`` of a value or key; without places ``file: key``."""
        for root, graft in self.grafts.items():
            if path[: len(root)] == root:
                return graft.where(path[len(root) :], key=key)
        place = self.place(path, key=key)
        if place is not None:
            return f"{self.origin}:{place[0]}:{place[1]}"
        return f"{self.origin}: {written_path(path)}" if path else self.origin
