"""Tags, stars and notes as text; what people typed is as foreign as what trials print."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from dispatcher.safe_text import safe_text
from dispatcher.terminal import formatting
from dispatcher.terminal.console import say

if TYPE_CHECKING:
    from dispatcher.queries import WrittenNote


def marks(tags: Sequence[str], *, starred: bool) -> str:
    """Return star and tags in one line; empty if there are none."""
    return safe_text(" ".join([*(["★"] if starred else []), *(f"#{tag}" for tag in tags)]))


def print_annotations(tags: Sequence[str], *, starred: bool, notes: Sequence[WrittenNote]) -> None:
    """Print what people gave a trial or an experiment; nothing if that is nothing.

    Args:
        tags: in the order in which they are printed.
        starred: whether it has a star.
        notes: the oldest first.
    """
    if line := marks(tags, starred=starred):
        say(line)
    for note in notes:
        begin = f"{note.number}  {formatting.moment(note.at)} UTC"
        for text in note.text.split("\n"):
            say(f"  {begin}  {safe_text(text)}")
            begin = " " * len(begin)
