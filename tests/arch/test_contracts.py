"""What may import what, what the core may not touch, and pages drawn from code."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

from dispatcher.core.arrows import ARROWS, name_of
from tests.arch.states import PAGE, page

ROOT = Path(__file__).parents[2]
BIN = Path(sys.executable).parent


def test_import_contracts() -> None:
    found = subprocess.run(
        [BIN / "lint-imports", "--no-cache"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout


def test_the_core_has_no_clock_no_dice_and_no_files() -> None:
    found = subprocess.run(
        [BIN / "ruff", "check", "--no-cache", "dispatcher/core"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 0, found.stdout


def test_the_rule_bites() -> None:
    found = subprocess.run(
        [BIN / "ruff", "check", "--no-cache", "--stdin-filename", "dispatcher/core/x.py", "-"],
        cwd=ROOT,
        input='"""X."""\n\nimport time\n\nNOW = time.time()\n',
        capture_output=True,
        text=True,
        check=False,
    )
    assert "time enters the core beside an event" in found.stdout


def test_the_state_diagram_is_that_of_the_table() -> None:
    assert PAGE.read_text() == page(), "run: python -m tests.arch.states"


def test_make_lint_asks_every_tool() -> None:
    """Mutation: dead code is looked for by hand, when somebody thinks of it."""
    recipe = (ROOT / "Makefile").read_text().partition("\nlint:")[2].partition("\n\n")[0]
    tools = re.findall(r"^\t\$\(BIN\)/(\S+)", recipe, re.M)
    assert tools == ["ruff", "ruff", "mypy", "lint-imports", "vulture"]


def test_the_state_diagram_has_arrows_from_state_to_state() -> None:
    """Mutation: a catalogue without targets, of which one can draw loops only."""
    drawn = re.findall(r"^    (\w+|\[\*\]) --> (\w+): (.+)$", PAGE.read_text(), re.M)
    assert ("RUNNING", "DELIVERING") in {(before, after) for before, after, _ in drawn}
    assert {name_of(kind) for kind, arrows in ARROWS.items() if arrows} == {
        name for _, _, names in drawn for name in names.split(", ")
    }
