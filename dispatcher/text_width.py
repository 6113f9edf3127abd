"""How much of a text is shown: its columns on a terminal, and a few names for all of them."""

from __future__ import annotations

from collections.abc import Sequence


def columns_of(text: str) -> int:
    """Return how many columns of a terminal a text takes."""
    if text.isascii():
        return len(text)
    from rich.cells import cell_len

    return cell_len(text)


def some_of(names: Sequence[object], most: int) -> str:
    """Return names with commas between them: the first ones, and how many more there are."""
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(map(str, names[:most])) + more
