"""Lines that begin with a mark: a topic, a text that wraps below itself, and what to do."""

from __future__ import annotations

import shutil
import textwrap
from collections.abc import Sequence
from typing import NamedTuple

from dispatcher.safe_text import safe_text
from dispatcher.terminal.console import is_terminal, say, styled


class MarkedLine(NamedTuple):
    """One line. In a pipe, ``word`` stands for the terminal's colour; empty if all is well."""

    mark: str
    colour: str
    word: str
    topic: str
    text: str
    hint: str = ""


def show_marked(lines: Sequence[MarkedLine]) -> None:
    """Print lines with their topics aligned; text of others is made harmless."""
    width = max((len(line.topic) for line in lines), default=0)
    for line in lines:
        mark = line.mark
        if is_terminal():
            mark = styled(mark, fg=line.colour)
        elif line.word:
            mark = f"{mark} {line.word}:"
        say(mark, f" {line.topic.ljust(width)}  {_wrapped(line.text, width + 4)}")
        if line.hint:
            hint = _wrapped(line.hint, width + 4)
            say(f"  {' ' * width}  ", styled(hint, dim=True) if is_terminal() else hint)


def _wrapped(text: str, indent: int) -> str:
    """Wrap a long text below its own beginning, on a terminal."""
    text = safe_text(text)
    if not is_terminal():
        return text
    room = max(20, shutil.get_terminal_size().columns - indent)
    return f"\n{' ' * indent}".join(textwrap.wrap(text, room) or [""])
