"""The tours of the core lead past all files that their examples are in, and past no others."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "contributing" / "tour-core.md"
PACKAGES = ("bequeath", "dispatcher", "nfs_setup", "trial_runtime", "tuners")

SECTION = re.compile(r"^## \w+ \w+: `(\w+)`\n(.*?)(?=^## |\Z)", re.M | re.S)
STATION = re.compile(r"^\d\. `([^`]+)`:", re.M)

#: A newcomer keeps so many files in mind.
MOST = 4


@pytest.mark.parametrize("example, text", SECTION.findall(PAGE.read_text()))
def test_a_tour_leads_past_each_file_of_its_example(example: str, text: str) -> None:
    stations = STATION.findall(text)
    mentioned = {
        str(path.relative_to(ROOT))
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if re.search(rf"\b{example}\b", path.read_text())
    }
    assert set(stations) == mentioned
    assert len(stations) == len(mentioned) <= MOST


def test_there_are_two_tours() -> None:
    assert len(SECTION.findall(PAGE.read_text())) == 2
