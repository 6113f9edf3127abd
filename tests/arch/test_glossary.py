"""The glossary explains each term once, and names modules that are there."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
ROW = re.compile(r"^\| ([^|]+) \| ([^|]+) \| ([^|]+) \|$", re.M)


def rows() -> list[tuple[str, str, str]]:
    every = ROW.findall((ROOT / "docs" / "glossary.md").read_text())
    return [row for row in every if row[0] != "term" and not set(row[0]) <= set("-")]


def test_each_term_has_a_meaning_and_an_owner_that_exists() -> None:
    assert len(rows()) >= 25
    for term, meaning, owner in rows():
        assert meaning.strip(), term
        owners = re.findall(r"`([^`]+)`", owner)
        assert owners, f"{term} belongs to no module"
        for one in owners:
            assert (ROOT / one).exists(), f"{term}: {one} is not there"


def test_no_term_is_explained_twice() -> None:
    terms = [one.strip() for row in rows() for one in row[0].split(",")]
    assert len(terms) == len(set(terms))
