"""A made-up search as what is saved as one file."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from dispatcher.web.curves import thinned
from tests.support.made_search import MadeSearch


class MadeRun:
    """Implements :class:`dispatcher.web.saved.contents.Run`.

    Args:
        search: what it holds.
        log: what each trial has written.
    """

    def __init__(self, search: MadeSearch, log: str = "") -> None:
        self.id = search.ident
        self.name = search.name
        self._search = search
        self._log = log
        self._children: dict[int | None, list[int]] = {}
        for one in search.trials:
            self._children.setdefault(one.parent, []).append(one.trial)

    def answers(self) -> dict[str, Any]:
        """About the whole."""
        search = self._search
        return {
            "": search.standing(head=True),
            "/table": search.table("1"),
            "/history": search.lives(),
        }

    def ranked(self) -> list[int]:
        """By value."""
        return [one.trial for one in sorted(self._search.trials, key=lambda one: -(one.value or 0))]

    def details(self, trials: Sequence[int], points: int) -> dict[str, Any]:
        """As stored, of a hundred points each."""
        found = {}
        for number in trials:
            one = self._search.trials[number]
            curve = [(one.value or 0) * (1 - 0.9**step) for step in range(100)] if one.curve else []
            curve = curve if points else []
            steps, values = thinned(list(range(len(curve))), curve, max(3, points))
            summary = one.summary().to_json()
            summary["parameters"] = {
                name: str(value) if isinstance(value, int) and value >= 1 << 63 else value
                for name, value in one.parameters.items()
            }
            found[str(number)] = {
                "trial": summary, "attempts": [], "children": self._children.get(number, []),
                "curve": {"attempt": 1, "steps": steps, "values": values} if steps else None,
                "unnumbered": 0, "final": one.value is not None,
            }  # fmt: skip
        return found

    def tensors(self, trial: int) -> Any | None:
        """Of each."""
        return self._search.tensors(trial)

    def log(self, trial: int, stream: str, most: int) -> dict[str, Any] | None:
        """The same of each."""
        if not self._log or stream == "stderr":
            return None
        return {
            "text": self._log[-most:],
            "begin": max(0, len(self._log) - most),
            "size": len(self._log),
        }
