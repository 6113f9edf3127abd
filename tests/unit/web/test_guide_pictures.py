"""The pictures that pages show are there, are small, and none lies about unused."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
PICTURES = ROOT / "docs" / "pictures"

#: Bytes of one.
MOST = 150_000


def shown_in(page: str) -> set[Path]:
    text = (ROOT / page).read_text()
    found = re.findall(r"!\[[^\]]+\]\(([^)]*pictures/[^)]+)\)", text)
    return {((ROOT / page).parent / one).resolve() for one in found}


def test_each_picture_is_shown_and_small() -> None:
    there = {path.resolve() for path in PICTURES.iterdir()}
    assert shown_in("docs/web.md") == there
    assert [path.name for path in there if path.stat().st_size > MOST] == []


def test_the_readme_shows_one_of_them() -> None:
    (one,) = shown_in("README.md")
    assert one.parent == PICTURES
