"""The page in a real Chromium, beside Optuna's dashboard; what looking costs a search.

Parts, since a quiet machine is had for minutes at a time: ``python -m benchmarks.web PART …``.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from benchmarks.rows import Row, row
from benchmarks.web import arrival, company, motion
from benchmarks.web.command_line import rows_of_command
from benchmarks.web.looked_at import chromium

#: By name: what gives the rows of a part, and whether that needs a browser.
PARTS: Final[dict[str, tuple[Callable[..., list[Row]], bool]]] = {
    "arrival": (arrival.rows, True),
    "many": (arrival.rows_of_many, True),
    "weight": (arrival.rows_of_weight, False),
    "news": (motion.rows_of_news, True),
    "frames": (motion.rows_of_frames, True),
    "engine": (company.cpu_of_head, False),
    "memory": (company.memory_of_web, False),
    "command": (rows_of_command, False),
}


def run(*, quick: bool = False) -> list[Row]:
    """All rows; blocks for a quarter of an hour, and longer when stores have to be made first."""
    return [line for part in PARTS for line in rows_of(part, quick=quick)]


def rows_of(part: str, *, quick: bool = False) -> list[Row]:
    """The rows of a part.

    Args:
        part: one of :data:`PARTS`.
        quick: small stores and few repetitions.
    """
    measure, needs_browser = PARTS[part]
    if needs_browser and (missing := chromium()):
        return [row(f"the page: {part}", "", "not measured", None, missing)]
    return measure(quick=quick)
