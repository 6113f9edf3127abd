"""The view in a cell of a notebook: one line with a bar, which is written over itself."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Final, TextIO

from dispatcher.terminal import formatting

if TYPE_CHECKING:
    from dispatcher.queries import ExperimentSummary

#: Characters of the bar.
WIDTH: Final = 24

_EIGHTHS: Final = " ▏▎▍▌▋▊▉█"


def is_cell(stream: TextIO) -> bool:
    """Whether a stream is shown below a cell, where a line can be written over."""
    return type(stream).__module__.startswith("ipykernel.")


def bar(ended: int, most: int | None) -> str:
    """Return the share of trials that are over, as a bar; empty if it is not known."""
    if not most:
        return ""
    share = min(1.0, ended / most)
    full, rest = divmod(round(share * WIDTH * 8), 8)
    drawn = ("█" * full + _EIGHTHS[rest])[:WIDTH].rstrip()
    return f"{share:4.0%} |{drawn:<{WIDTH}}| "


def last_line(over: ExperimentSummary) -> str:
    """Return what became of a search that no head leads any more."""
    done = f"{over.ended}/{over.max_trials}" if over.max_trials else str(over.ended)
    best = over.best
    shown = "" if best is None else f"  best {formatting.number(best.value)} (trial {best.id})"
    return f"{bar(over.ended, over.max_trials)}{done} trials{shown}  {over.status.value}"


class CellLine:
    """The last line below a cell."""

    def __init__(self) -> None:
        self._length = 0

    def show(self, text: str) -> None:
        """Write a text over the one before. It is made of our own words and numbers."""
        sys.stderr.write(f"\r{text:<{self._length}}")
        sys.stderr.flush()
        self._length = len(text)

    def leave(self) -> None:
        """Let the line stand; what is written next is below it."""
        if self._length:
            sys.stderr.write("\n")
            sys.stderr.flush()
        self._length = 0
