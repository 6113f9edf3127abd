"""No public name appears, goes or changes its signature unnoticed."""

from __future__ import annotations

import difflib

from tests.arch.public_names import PAGE, page


def test_public_names_are_those_that_were_agreed() -> None:
    written, now = PAGE.read_text().splitlines(), page().splitlines()
    changed = "\n".join(difflib.unified_diff(written, now, PAGE.name, "the code", "", "", 0, ""))
    assert not changed, (
        f"what users import has changed:\n{changed}\n\n"
        "If that is meant: python -m tests.arch.public_names, and a line in CHANGELOG.md."
    )
