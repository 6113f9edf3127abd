"""docs/reliability.md names tests; they must be there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "reliability.md"

#: Where a bare name may stand: a table names the folder once and then its neighbours.
HOMES = ("", "tests", "tests/faults/storage")


def named() -> set[str]:
    words = re.findall(r"`([\w./]+)`", PAGE.read_text())
    return {word for word in words if word.endswith(".py") or word.startswith("tests/")}


def test_every_test_that_the_page_names_is_there() -> None:
    missing = {name for name in named() if not any((ROOT / home / name).exists() for home in HOMES)}
    assert not missing
    assert len(named()) > 30
