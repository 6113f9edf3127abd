"""Examples import their neighbours by plain names; each test gets them fresh, and leaves none."""

from __future__ import annotations

import importlib
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).resolve().parents[3] / "examples"


@pytest.fixture
def example(monkeypatch):
    """``example(folder, module)`` imports a module of an example's folder."""

    def load(folder: str, module: str):
        monkeypatch.syspath_prepend(str(EXAMPLES / folder))
        return importlib.import_module(module)

    before = set(sys.modules)
    yield load
    for name in set(sys.modules) - before:
        origin = getattr(sys.modules[name], "__file__", None) or ""
        if origin.startswith(str(EXAMPLES)):
            del sys.modules[name]
