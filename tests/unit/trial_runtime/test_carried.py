"""Modules that were brought come after all that a Python has itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from trial_runtime import carried

ROOT = Path(__file__).parents[3]
TAG = sys.implementation.cache_tag or ""


def module(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(f"said = {says!r}\n")
    return folder


def said(code: str, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", f"import trial_runtime\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
        env={**os.environ, **environment},
    )
    return ran.stdout.strip()


def test_ours_come_last_those_for_old_ones_first_and_foreign_ones_never(tmp_path: Path) -> None:
    """Mutations: ours first, and a trial's own module is another; no look at the tag."""
    own = module(tmp_path / "own", "both", "own")
    module(own, "old", "own")
    last = module(tmp_path / "modules" / TAG / "a", "both", "brought")
    module(last, "alone", "brought")
    first = module(tmp_path / "modules" / TAG / "b", "old", "brought")
    foreign = module(tmp_path / "modules" / "cpython-27" / "c", "foreign", "brought")
    environment = carried.variables([str(last), str(foreign)], [str(first)])
    names = ["both", "alone", "old"]
    code = "".join(f"import {name}; print({name}.said)\n" for name in names)
    code += "import importlib.util; print(importlib.util.find_spec('foreign'))"
    paths = os.pathsep.join((str(ROOT), str(own)))
    printed = said(code, PYTHONPATH=paths, **environment)
    assert printed.split() == ["own", "brought", "brought", "None"]


def test_without_any_nothing_changes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(carried.LAST, raising=False)
    before = list(sys.path)
    carried.use()
    assert sys.path == before
    assert carried.variables([], []) == {}


def test_said_twice_it_is_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / TAG / "a"
    monkeypatch.setenv(carried.LAST, str(folder))
    monkeypatch.setattr(sys, "path", list(sys.path))
    carried.use()
    once = list(sys.path)
    carried.use()
    assert sys.path == once
    assert once[-1] == str(folder)
