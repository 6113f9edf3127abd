"""Points as the store holds them: made one by one for a sink that looks at them one by one, and
columns for one that writes thousands alike."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple, overload

from dispatcher.queries.records import json_value
from dispatcher.sinks.protocol import Point


class NumberColumns(NamedTuple):
    """Points that are numbers and nothing else, as columns of one length."""

    seqs: Sequence[int]
    ats: Sequence[float]
    numbers: Sequence[float]


class StoredPoints(Sequence[Point]):
    """Points of one attempt, in the order of ``seq``. Values are read when they are looked at.

    Args:
        rows: each ``seq``, ``at``, ``value`` (its JSON text) and ``number``.
    """

    def __init__(self, rows: Sequence[sqlite3.Row] | Sequence[tuple[Any, ...]]) -> None:
        self._rows = rows

    def number_columns(self) -> NumberColumns | None:
        """Return the points as columns if each is a number, and no object that may hold more;
        else None."""
        seqs, ats, texts, numbers = zip(*self._rows, strict=True) if self._rows else ((),) * 4
        if None in numbers or "{" in "".join(texts):
            return None
        return NumberColumns(seqs, ats, numbers)

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Point]:
        return (Point(seq, at, json_value(text), n) for seq, at, text, n in self._rows)

    @overload
    def __getitem__(self, index: int) -> Point: ...

    @overload
    def __getitem__(self, index: slice) -> StoredPoints: ...

    def __getitem__(self, index: int | slice) -> Point | StoredPoints:
        if isinstance(index, slice):
            return StoredPoints(self._rows[index])
        seq, at, text, number = self._rows[index]
        return Point(seq, at, json_value(text), number)
