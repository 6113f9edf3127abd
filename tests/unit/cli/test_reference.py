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
