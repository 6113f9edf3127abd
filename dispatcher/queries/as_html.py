"""Small tables as HTML, for notebooks. Whatever comes from a trial or a file is escaped."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Sequence
from typing import Final

#: Characters of a cell; longer ones are cut.
LONGEST: Final = 120

#: What a page or a terminal would obey, or cannot be sent at all.
CONTROLS: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)


def cell(value: object) -> str:
    """Return a value as the text of a cell, escaped and cut."""
    if value is None:
        return ""
    text = f"{value:.6g}" if isinstance(value, float) else str(value)
    if len(text) > LONGEST:
        text = f"{text[: LONGEST - 1]}…"
    return html.escape(CONTROLS.sub("�", text))


def table(
    rows: Iterable[Sequence[object]], head: Sequence[object] = (), caption: object = ""
) -> str:
    """Return a table.

    Args:
        rows: cells, row by row; without a head the first of each names it.
        head: names of columns.
        caption: text above it.
    """
    parts = ["<table>"]
    if caption:
        parts.append(f"<caption>{cell(caption)}</caption>")
    if head:
        parts.append(f"<thead><tr>{''.join(f'<th>{cell(one)}</th>' for one in head)}</tr></thead>")
    parts.append("<tbody>")
    for row in rows:
        first, *others = map(cell, row)
        start = f"<td>{first}</td>" if head else f'<th scope="row">{first}</th>'
        parts.append(f"<tr>{start}{''.join(f'<td>{one}</td>' for one in others)}</tr>")
    parts.append("</tbody></table>")
    return "".join(parts)
