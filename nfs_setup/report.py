"""Report of what a verb did or would do: plain, the same on a terminal, as JSON and over SSH."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any


@dataclass
class Line:
    """One step. ``state``: ``done``, ``already``, ``planned``, ``undone`` or ``kept``."""

    state: str
    text: str
    detail: str = ""  # the diff of a file, the command


@dataclass
class Note:
    """Something to know. ``level``: ``note``, ``warning`` or ``do`` (for the reader to do)."""

    level: str
    text: str


@dataclass
class Report:
    """The answer of a verb."""

    verb: str
    target: str
    dry_run: bool = False
    steps: list[Line] = field(default_factory=list)
    notes: list[Note] = field(default_factory=list)
    shown: dict[str, Any] = field(default_factory=dict)

    @property
    def changed(self) -> bool:
        """Whether anything was changed, or would be."""
        return any(line.state in ("done", "planned", "undone") for line in self.steps)

    def note(self, text: str, level: str = "note") -> None:
        """Add a note, once."""
        if all(note.text != text for note in self.notes):
            self.notes.append(Note(level, text))

    def plain(self) -> dict[str, Any]:
        """Return the report as JSON has it."""
        facts = asdict(self)
        first = {name: facts.pop(name) for name in ("verb", "target", "dry_run")}
        return {**first, "changed": self.changed, **facts}
