"""The table of trials as a page holds it: columns that are kept, and patched with what changed."""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import Any, Final

from dispatcher.queries.columns import FlatTrial

#: Columns of parameters and of metrics beside the value; more are left out.
MOST_COLUMNS: Final = 200

#: Characters of a text in a cell.
MOST_TEXT: Final = 200

#: Texts of which one column may have so many different ones are numbered.
_MOST_CHOICES: Final = 256

#: Digits of the newest intermediate value, which nobody computes with, and of seconds behind the
#: point: a third of what a page of ten thousand trials loads would be digits that it never shows.
_LATEST_DIGITS: Final = 7
TIME_DIGITS: Final = 3

#: Integers beyond it are not what they were in a browser.
_EXACT: Final = 1 << 53

#: The columns that each table has, with kind and group.
FIXED: Final[dict[str, tuple[str, str]]] = {
    "trial": ("integer", "trial"),
    "state": ("choice", "trial"),
    "outcome": ("choice", "trial"),
    "parent": ("integer", "trial"),
    "generation": ("integer", "trial"),
    "value": ("number", "objective"),
    "created": ("time", "trial"),
    "started": ("time", "trial"),
    "ended": ("time", "trial"),
    "attempts": ("integer", "trial"),
    "reports": ("integer", "trial"),
    "latest": ("number", "trial"),
    "worker": ("choice", "trial"),
    "pinned": ("integer", "trial"),
    "tags": ("choice", "trial"),
    "starred": ("integer", "trial"),
    "notes": ("integer", "trial"),
}

#: The beginnings of names by which columns of parameters and of metrics are told apart.
_GROUPS: Final = ("parameters.", "metrics.")

#: Kinds from the narrowest to the one that holds all.
_RANK: Final = {"": 0, "integer": 1, "number": 2, "choice": 3, "text": 4}


class _Column:
    """One column; its kind is the narrowest that holds all its values."""

    def __init__(self, name: str, kind: str, group: str, rows: int) -> None:
        self.name = name
        self.group = group
        self.kind = kind
        self.values: list[Any] = [None] * rows
        self._numbers: dict[str, int] = {}  # of a choice, by text

    def put(self, row: int, value: Any) -> bool:
        """Put a value in; whether the column is of another kind now."""
        before = self.kind
        if value is not None and self.kind not in ("time",):
            kind = _kind_of(value)
            if self.group != "trial" and self.name not in FIXED:
                self._widen(kind)
            if self.kind in ("choice", "text"):
                value = value if isinstance(value, str) else _text(value)
        if self.kind == "choice" and isinstance(value, str):
            if value not in self._numbers and len(self._numbers) >= _MOST_CHOICES:
                self._to_texts()
            else:
                value = self._numbers.setdefault(value, len(self._numbers))
        self.values[row] = value
        return self.kind != before and before != ""

    def _widen(self, kind: str) -> None:
        if _RANK[kind] <= _RANK[self.kind]:
            return
        before, self.kind = self.kind, kind
        if before in ("integer", "number") and kind in ("choice", "text"):
            texts = [None if one is None else _text(one) for one in self.values]
            self.values = [None if one is None else self._number(one) for one in texts]
            if kind == "text":
                self.values = list(texts)
        elif before == "choice" and kind == "text":
            self._to_texts()

    def _number(self, text: str) -> int:
        return self._numbers.setdefault(text, len(self._numbers))

    def _to_texts(self) -> None:
        texts = list(self._numbers)
        self.values = [None if one is None else texts[one] for one in self.values]
        self.kind = "text"
        self._numbers = {}

    def shown(self, row: int) -> Any:
        """Return one value as it is, a choice by its text."""
        value = self.values[row]
        if self.kind == "choice" and isinstance(value, int):
            return list(self._numbers)[value]
        return value

    def described(self) -> dict[str, Any]:
        """Return it for JSON."""
        plain = {"name": self.name, "kind": self.kind or "number", "group": self.group}
        choices = {"choices": list(self._numbers)} if self.kind == "choice" else {}
        return {**plain, **choices, "values": self.values}


class TrialTable:
    """All trials of one experiment in columns. Thread: one at a time."""

    def __init__(self) -> None:
        self._columns = {
            name: _Column(name, kind, group, 0) for name, (kind, group) in FIXED.items()
        }
        self._rows: dict[int, int] = {}  # by trial
        self.left_out: set[str] = set()

    def __len__(self) -> int:
        return len(self._rows)

    def put(self, trials: Iterable[FlatTrial]) -> bool:
        """Take trials in, new or changed; whether columns came, or are of other kinds now."""
        changed = False
        for one in trials:
            changed = self._put(one) or changed
        return changed

    def _put(self, one: FlatTrial) -> bool:
        row = self._rows.get(one.trial)
        if row is None:
            row = self._rows[one.trial] = len(self._rows)
            for column in self._columns.values():
                column.values.append(None)
        else:
            for name, column in self._columns.items():
                if name not in FIXED:
                    column.values[row] = None  # what it had may be gone
        values: dict[str, Any] = {name: getattr(one, name, None) for name in FIXED}
        values["generation"] = self._generation(one)
        for name, value in values.items():
            # Tags are bounded by themselves, and a condition needs all of them.
            shown = value if name == "tags" else _short(name, _plain(value))
            self._columns[name].put(row, shown)
        changed = False
        for group, beside in (("parameter", one.parameters), ("objective", one.metrics)):
            for name, value in beside.items():
                known = self._column(name, group)
                if known is None:
                    continue
                column, new = known
                changed = column.put(row, _plain(value)) or new or changed
        return changed

    def _column(self, name: str, group: str) -> tuple[_Column, bool] | None:
        """Return the column of a parameter or metric, made if there is room; and if it is new."""
        name = name[:MOST_TEXT]
        taken = name in FIXED or name.startswith(_GROUPS) or group == "objective"
        key = f"{group.replace('objective', 'metric')}s.{name}" if taken else name
        column = self._columns.get(key)
        if column is not None:
            return column, False
        if len(self._columns) >= len(FIXED) + MOST_COLUMNS:
            if len(self.left_out) < 10 * MOST_COLUMNS:
                self.left_out.add(key)
            return None
        self._columns[key] = column = _Column(key, "", group, len(self._rows))
        return column, True

    def _generation(self, one: FlatTrial) -> int:
        row = None if one.parent is None else self._rows.get(one.parent)
        return 0 if row is None else int(self._columns["generation"].values[row] or 0) + 1

    def rows(self, trials: Iterable[int]) -> list[dict[str, Any]]:
        """Return trials by column, as they are now; those that are not there are left out."""
        found = [(each, self._rows[each]) for each in sorted(trials) if each in self._rows]
        return [
            {name: column.shown(row) for name, column in self._columns.items()} for _, row in found
        ]

    def described(self) -> dict[str, Any]:
        """Return all columns for JSON."""
        return {
            "count": len(self._rows),
            "left_out": len(self.left_out),
            "columns": [column.described() for column in self._columns.values()],
        }


def _kind_of(value: Any) -> str:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "choice"
    return "integer" if isinstance(value, int) else "number"


def _text(value: Any) -> str:
    return str(value) if not isinstance(value, float) else repr(value)


def _short(name: str, value: Any) -> Any:
    """Return the value of a fixed column without digits that its place does not show."""
    if not isinstance(value, float):
        return value
    if FIXED[name][0] == "time":
        return round(value, TIME_DIGITS)
    return float(f"{value:.{_LATEST_DIGITS}g}") if name == "latest" else value


def _plain(value: Any) -> Any:
    """Return a value that a cell may have: a number, a short text or None."""
    if value is None:
        return None
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int):
        return value if -_EXACT <= value <= _EXACT else str(value)[:MOST_TEXT]
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    text = value if isinstance(value, str) else _json(value)
    return text if len(text) <= MOST_TEXT else f"{text[: MOST_TEXT - 1]}…"


def _json(value: Any) -> str:
    from dispatcher.web.answering import encoded

    return encoded(value).decode(errors="replace")
