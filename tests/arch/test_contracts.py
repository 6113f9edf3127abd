"""What may import what, what the core may not touch, and pages drawn from code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

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
