"""The places of keys in an experiment file, for what is found wrong after it was read."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Protocol

from tuners.plain_json import JsonPath


class Where(Protocol):
    """Names the place of a value."""

    def __call__(self, path: JsonPath) -> str:
        """Return ``file:line:column`` of the value at a path of ours, or of what is nearest above.

        Args:
            path: of canonical keys.
        """


@dataclass(frozen=True)
class FilePlaces:
    """The places of one file's keys.

    Attributes:
        where: names the place of a value.
        written: paths of the keys that the file has.
    """

    where: Where
    written: Collection[JsonPath]

    def of(self, at: JsonPath, keys: Sequence[JsonPath]) -> str:
        """Return ``file:line:column`` of the first of some keys that the file has; of the section
        if it has none.

        Args:
            at: the section that they are in, or in one around it.
            keys: the likeliest first.
        """
        for key in keys:
            for end in range(len(at), -1, -1):
                if (*at[:end], key[0]) in self.written:
                    return self.where((*at[:end], *key))
        return self.where(at)
