"""The code of docs/tuner-authors.md runs as it is printed, and does what the page says."""

from __future__ import annotations

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest
import yaml
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.experiment import load_experiment

GUIDE = Path(__file__).parents[3] / "docs" / "tuner-authors.md"
REST = {"searchSpace": {}, "trialCommand": "true", "trialConcurrency": 1}


def snippets(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", GUIDE.read_text(), re.DOTALL | re.MULTILINE)


@pytest.fixture
def folder(tmp_path):
    """The files of the page: a snippet begins one by its name, or goes on in the last one."""
    name = ""
    for code in snippets("python"):
        begun = re.match(r"# (\w+\.py)\n", code)
        name = begun[1] if begun else name
        with (tmp_path / name).open("a") as file:
            file.write(f"\n\n{code}")
    return tmp_path


def test_its_tests_pass(folder):
    assert {file.name for file in folder.glob("test_*.py")} == {
        "test_my_tuner.py",
        "test_sharing.py",
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", "."]
    ran = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=300)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "6 passed" in ran.stdout


def test_its_tuner_runs_by_the_lines_that_it_shows(folder):
    (shown,) = snippets("yaml")
    (folder / "experiment.yml").write_text(yaml.safe_dump(REST | yaml.safe_load(shown)))
    config = load_experiment(folder / "experiment.yml")
    assert config.tuner.class_name == "my_tuner:Halving"


def test_its_commands_run(folder, monkeypatch):
    monkeypatch.chdir(folder)
    monkeypatch.setenv("BEQUEATH_HOME", str(folder / "experiments"))
    monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))  # folders that were used before
    (shown,) = snippets("bash")
    commands = [shlex.split(line, comments=True) for line in shown.splitlines()]
    assert [command[:3] for command in commands] == [
        ["bequeath", "tuner", "new"],
        ["bequeath", "tuner", "check"],
        ["bequeath", "tuner", "replay"],
    ]
    new, check, replay = (CliRunner().invoke(app, command[1:]) for command in commands)
    assert new.exit_code == 0, new.output
    assert check.exit_code == 0, check.output
    said = " ".join(replay.output.split())  # the line is broken where the folder's name is long
    assert "there are no experiments yet" in said
