"""The programs of ``examples/coming_from``: their lengths, and the pages that show them."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

from tests.support.pages import blocks

ROOT = Path(__file__).parents[3]
EXAMPLES = ROOT / "examples" / "coming_from"
PAGES = sorted((ROOT / "docs" / "coming-from").glob("*.md"))
KATIB = EXAMPLES / "katib"  # both files of one program are in one folder
LINK = re.compile(r"\]\(([^)]+)\)")


def lines(path: Path) -> int:
    """Lines with code: no blank ones, no comments, no docstring."""
    text = without_docstring(path)
    return sum(
        bool(line.strip()) and not line.lstrip().startswith("#") for line in text.split("\n")
    )


def without_docstring(path: Path) -> str:
    text = path.read_text()
    if path.suffix != ".py" or ast.get_docstring(ast.parse(text)) is None:
        return text
    first = ast.parse(text).body[0]
    return "\n".join(text.split("\n")[first.end_lineno or 0 :]).lstrip("\n")


def rows() -> list[list[str]]:
    """The rows of the README's tables, without their heads."""
    text = (EXAMPLES / "README.md").read_text()
    table = [line for line in text.splitlines() if line.startswith("| ") and LINK.search(line)]
    return [line.strip("| ").split(" | ") for line in table]


def program(cell: str) -> list[Path]:
    """The files that a cell names; of a folder with an experiment file, all that is in it."""
    named = [EXAMPLES / target for target in LINK.findall(cell)]
    whole = [each.parent for each in named if each.suffix == ".yml" and each.parent != KATIB]
    return sorted(whole[0].glob("*.*")) if whole else named


def test_none_is_longer_than_its_original() -> None:
    """Mutation: a program that grew, and a table that was not told."""
    table = [row for row in rows() if len(row) == 5]
    assert len(table) == 12
    for ours, _, original, theirs, shown in table:
        assert sum(map(lines, program(ours))) == int(shown), ours
        assert int(shown) <= int(theirs), ours
        assert re.search(r"\b[0-9a-f]{7}\b", original), f"{original}: of which commit?"


def test_none_is_longer_than_the_same_in_their_words() -> None:
    table = [row for row in rows() if len(row) == 3]
    assert len(table) == 8
    for _, *cells in table:
        counted = [sum(map(lines, program(cell))) for cell in cells]
        shown = [int(cell.rpartition(": ")[2]) for cell in cells]
        assert counted == shown, cells
        assert shown[1] <= shown[0]


def test_every_program_is_run_by_a_test() -> None:
    """Mutation: a program in the table that nobody runs."""
    runs = (ROOT / "tests" / "integration" / "examples" / "test_coming_from.py").read_text()
    for row in rows():
        for cell in (row[0], *row[-2:]):
            files = LINK.findall(cell)  # what runs the others comes first
            assert not files or files[0] in runs, cell


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_a_page_shows_the_programs_as_they_are(page: Path) -> None:
    shown = [block for block in blocks(page) if block.file]
    if page.stem != "index":
        whose = {"theirs" in block.file or block.file.endswith("katib.yaml") for block in shown}
        assert whose == {True, False}, "their program and ours"
    for block in shown:
        text = block.text.partition("\n")[2]
        assert text.strip() == without_docstring(ROOT / block.file).strip(), block.file
