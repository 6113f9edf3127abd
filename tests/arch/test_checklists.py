"""Checklists are short, and each file that they name is there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = sorted((ROOT / "docs" / "contributing").glob("*.md"))

#: Boxes of each checklist. What takes more is a thing that the code should do by itself.
MOST_BOXES = {
    "checklist-backend.md": 4,
    "checklist-event.md": 5,
    "checklist-experiment-key.md": 7,
    "checklist-message.md": 8,
}

#: Rooms in which a page has what it names by less than its whole path.
ROOMS = (
    "", "dispatcher/", "dispatcher/core/", "dispatcher/experiment/", "dispatcher/platforms/ssh/",
    "dispatcher/store/", "dispatcher/tuner_host/", "trial_runtime/", "tests/support/",
)  # fmt: skip

BOX = re.compile(r"^- \[ \] ", re.M)
FILE = re.compile(r"`([\w/]+\.(?:py|md|yml|toml))`|`((?:[\w]+/)+[\w]*)`")


def test_a_checklist_is_short() -> None:
    boxes = {page.name: len(BOX.findall(page.read_text())) for page in PAGES}
    boxes = {name: many for name, many in boxes.items() if many}
    assert boxes.keys() == MOST_BOXES.keys()
    assert not {name: many for name, many in boxes.items() if many > MOST_BOXES[name]}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_what_a_page_sends_a_newcomer_to_is_there(page: Path) -> None:
    """Mutation: a module moves, and the checklist sends people to where it was."""
    named = {file or folder for file, folder in FILE.findall(page.read_text())}
    rooms = {*ROOMS, *(f"{Path(name).parent}/" for name in named)}  # beside another one, too
    assert not {name for name in named if not any((ROOT / room / name).exists() for room in rooms)}
