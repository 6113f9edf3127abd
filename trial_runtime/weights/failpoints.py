"""Named moments of a publish at which a test may interfere; nothing happens otherwise.

Names say what has just happened: ``data.written``, ``data.synced``, ``data.renamed``,
``manifest.synced``, ``manifest.renamed``.
"""

from __future__ import annotations

from collections.abc import Callable

armed: dict[str, Callable[[], None]] = {}


def hit(name: str) -> None:
    """Say that something has happened."""
    if armed:
        action = armed.get(name)
        if action is not None:
            action()
