"""``bequeath tuner new``: its test passes, and it keeps the contract."""

from __future__ import annotations

import shlex
import subprocess
import sys
from pathlib import Path

from typer.testing import CliRunner

from dispatcher.cli.main import PROGRAM, app
from dispatcher.experiment.loader import load_experiment

ROOT = Path(__file__).parents[3]


def call(*words: str) -> tuple[int, str]:
    done = CliRunner().invoke(app, ["tuner", *words], prog_name=PROGRAM)
    return done.exit_code, done.output


def test_a_new_one_passes_its_test_and_keeps_the_contract(tmp_path: Path) -> None:
    folder = tmp_path / "mine"
    code, said = call("new", str(folder))
    assert code == 0
    assert {Path(line).name for line in said.splitlines() if line.startswith("/")} == {
        "experiment.yml",
        "my_tuner.py",
        "test_my_tuner.py",
        "trial.py",
    }
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."],
        cwd=folder,
        env={"PYTHONPATH": str(ROOT), "PATH": ""},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "6 passed" in done.stdout
    assert load_experiment(folder / "experiment.yml").tuner.class_name == "my_tuner:MyTuner"
    code, said = call("check", f"{folder}/my_tuner.py:MyTuner", "--trials", "48")
    assert code == 0, said
    assert "keeps the contract" in said


def test_nothing_is_overwritten(tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    code, said = call("new", str(tmp_path / "mine"))
    assert code == 3
    assert "is there already" in said


def test_the_command_to_try_is_quoted_for_a_shell(tmp_path: Path) -> None:
    folder = tmp_path / "My Tuner; $x"
    code, printed = call("new", str(folder))
    assert code == 0
    command = printed.splitlines()[-1].removeprefix("try: ")
    assert shlex.split(command) == ["bequeath", "run", f"{folder}/experiment.yml"]
