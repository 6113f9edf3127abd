"""``docs/cli.md`` is what the commands say of themselves."""

from __future__ import annotations

from pathlib import Path

from dispatcher.cli.json_shapes import SHAPES
from dispatcher.cli.lazy_group import load
from dispatcher.cli.reference import reference_markdown
from tests.unit.cli.test_help import ALL

DOCS = Path(__file__).parents[3] / "docs" / "cli.md"


def test_the_page_is_up_to_date() -> None:
    assert DOCS.read_text() == reference_markdown(), "run: python -m dispatcher.cli.reference"


def test_each_command_that_prints_json_says_its_shape() -> None:
    for path, entry in ALL:
        command = load(path[-1], entry)
        if any("--json" in getattr(parameter, "opts", ()) for parameter in command.params):
            assert " ".join(path) in SHAPES, path


def test_no_shape_without_its_command() -> None:
    assert set(SHAPES) <= {" ".join(path) for path, _ in ALL}


def test_the_page_leaves_to_help_what_help_says() -> None:
    """It had 2,279 lines: usages, whole docstrings, and one row of each option that all take."""
    text = DOCS.read_text()
    assert len(text.splitlines()) <= 1140
    assert len(text) <= 60_000
    assert text.count("Look for experiments in this folder only.") == 1
    assert "Usage:" not in text
