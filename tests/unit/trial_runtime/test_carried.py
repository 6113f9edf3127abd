"""Modules that were brought come after all that a Python has itself."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.workers import agent_config
from trial_runtime import carried
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.agent.runners.environment import base_environment
from trial_runtime.agent.runners.trial_dialect import TrialDialect

ROOT = Path(__file__).parents[3]
TAG = sys.implementation.cache_tag or ""


def module(folder: Path, name: str, says: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{name}.py").write_text(f"said = {says!r}\n")
    return folder


def config(folder: Path) -> AgentConfig:
    return agent_config(folder, trial=TrialSpec(str(folder), command="python train.py"))


def said(code: str, **environment: str) -> str:
    ran = subprocess.run(
        [sys.executable, "-c", f"import trial_runtime\n{code}"],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
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


def test_a_program_finds_them_before_it_imports_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Sorted imports name numpy before trial_runtime. A machine's own sitecustomize runs, too.

    Mutations: a trial's PYTHONPATH lacks the folder; the other sitecustomize stays hidden.
    """
    last = module(tmp_path / "modules" / TAG / "a", "alone", "brought")
    own = tmp_path / "own"
    own.mkdir()
    (own / "sitecustomize.py").write_text("import sys\nsys.ran_as = __name__, __file__\n")
    for name, value in carried.variables([str(last)], []).items():
        monkeypatch.setenv(name, value)
    monkeypatch.setenv("PYTHONPATH", "")
    environment = base_environment(config(tmp_path), TrialDialect(config(tmp_path)))
    environment["PYTHONPATH"] += f"{os.pathsep}{own}"
    code = "import alone, sys, sitecustomize as s; print(alone.said, *sys.ran_as, s.__file__)"
    ran = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=True,
        timeout=240,
        env=environment,
    )
    theirs = str(own / "sitecustomize.py")
    assert ran.stdout.split() == ["brought", "sitecustomize", theirs, theirs]
    assert ran.stderr == ""


def test_where_none_were_brought_no_python_imports_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(carried.LAST, raising=False)
    monkeypatch.delenv(carried.FIRST, raising=False)
    monkeypatch.delenv("PYTHONPATH", raising=False)
    paths = base_environment(config(tmp_path), TrialDialect(config(tmp_path)))["PYTHONPATH"].split(
        os.pathsep
    )
    assert not [path for path in paths if Path(path, "sitecustomize.py").exists()]
