"""The page of studies: all its blocks run, in one program, in their order."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

PAGE = Path(__file__).parents[3] / "docs" / "ask-tell.md"


def test_all_blocks_of_the_page_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "home"))
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)
    assert len(blocks) >= 8
    names: dict[str, Any] = {}
    for block in blocks:
        exec(block, names)
    printed = capsys.readouterr().out
    assert "{'x': " in printed
    assert "10 results of first were taken" in printed


def test_the_first_search_is_no_longer_than_optunas() -> None:
    """The first example of Optuna's page has seven lines with code."""
    first = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.S)[0]
    assert sum(bool(line.strip()) for line in first.splitlines()) <= 7
