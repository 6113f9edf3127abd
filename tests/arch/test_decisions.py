"""Decisions have a number of their own and a status, and supersede decisions that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = sorted((ROOT / "docs" / "decisions").glob("*.md"))

STATUS = re.compile(r"^\*\*Status\.\*\* (Proposed|Accepted|Rejected|Superseded)\b", re.M)
SUPERSEDING = re.compile(r"[Ss]upersede[sd][^\[.;]*\[(\d+)\]\((\d{4})-[\w-]+\.md\)")


@pytest.mark.parametrize("page", DECISIONS, ids=lambda page: page.name[:4])
def test_a_decision_has_its_number_and_a_status(page: Path) -> None:
    """Mutation: a decision that was given up, and reads as if it stood."""
    title, _, rest = page.read_text().partition("\n")
    assert re.match(rf"# {int(page.name[:4])}\. \S", title)
    assert STATUS.search(rest[:200])


def test_numbers_are_given_once() -> None:
    numbers = [page.name[:4] for page in DECISIONS]
    assert len(set(numbers)) == len(numbers)


def test_both_of_a_pair_name_one_another() -> None:
    """What supersedes another one is named there, so that a reader of either finds the other."""
    pairs = {
        (page.name[:4], number)
        for page in DECISIONS
        for line in [page.read_text().partition("**Status.**")[2].partition("\n\n")[0]]
        for shown, number in SUPERSEDING.findall(line)
        if int(shown) == int(number)
    }
    assert pairs
    for page, other in pairs:
        (there,) = [each for each in DECISIONS if each.name.startswith(other)]
        assert page in there.read_text(), f"{other} does not name {page}"
