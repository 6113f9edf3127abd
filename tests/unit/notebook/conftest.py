"""Cells of a notebook, and another process, for all tests here."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.notebook.cells import Cells, Elsewhere


@pytest.fixture
def cells(monkeypatch: pytest.MonkeyPatch) -> Cells:
    return Cells(monkeypatch)


@pytest.fixture
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Elsewhere:
    return Elsewhere(tmp_path / "elsewhere", monkeypatch)
