"""The tours at the edges lead past files that have what the tour finds in them."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing" / "tours.md"

STATION = re.compile(r"^\d\. `([^`]+)`:(.*?)(?=^\d\. |^$)", re.M | re.S)
NAME = re.compile(r"`(\w+)`")

STATIONS = STATION.findall(PAGE.read_text())


def test_there_are_three_tours_of_few_files() -> None:
    tours = PAGE.read_text().split("\n## ")[1:]
    assert len(tours) == 3
    # At most the six files of a platform, and its entry point.
    assert all(0 < len(STATION.findall(f"{tour}\n\n")) <= 7 for tour in tours)


def test_a_platform_is_one_folder_and_an_entry_point() -> None:
    """Mutation: a platform that a shared table has to name as well."""
    platform = [path for path, _ in STATIONS if "platforms" in path]
    folder = ROOT / "dispatcher" / "platforms" / "local"
    assert {ROOT / path for path in platform} == set(folder.glob("*.py"))
    assert "pyproject.toml" in [path for path, _ in STATIONS]


@pytest.mark.parametrize("path, text", STATIONS, ids=[path for path, _ in STATIONS])
def test_a_file_has_what_the_tour_finds_in_it(path: str, text: str) -> None:
    """Mutation: a tour whose names have moved to another file."""
    names = set(NAME.findall(text.split(". ")[0]))
    content = (ROOT / path).read_text()
    assert not {name for name in names if not re.search(rf"\b{name}\b", content)}
