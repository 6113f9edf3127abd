"""``bequeath tuner replay``: the tuner as it is now against what was proposed then."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import PROGRAM, app
from dispatcher.creating import create
from dispatcher.experiment.loader import build_experiment
from dispatcher.folders import ExperimentFolder
from dispatcher.tuner_tools.rehearsal import Plan, rehearse
from dispatcher.wiring.tuner_host import tuner_host_config
from trial_runtime.endpoint import Endpoint

TUNER = """
from tuners import Tuner

class Climbing(Tuner):
    def __init__(self):
        self.best = (-1.0, None)

    def generate_parameters(self, parameter_id):
        if parameter_id > 3:
            self.wait_for(parameter_id - 4, fallback=None)
        return {"i": parameter_id, "step": STEP, "save_path": self.save_path(parameter_id)}

    def receive_trial_result(self, parameter_id, parameters, value):
        with self.lock:
            self.best = max(self.best, (value, parameter_id))
"""


@pytest.fixture
def experiment(tmp_path: Path) -> Path:
    (tmp_path / "mine.py").write_text(TUNER.replace("STEP", "1"))
    config = build_experiment(
        {
            "experimentName": "climb",
            "experimentWorkingDirectory": str(tmp_path / "kept"),
            "tuner": {"className": "mine:Climbing", "codeDirectory": str(tmp_path)},
            "trialCommand": "true",
            "trialCodeDirectory": str(tmp_path),
            "trialConcurrency": 4,
        }
    )
    home = ExperimentFolder(create(config))
    stage = tmp_path / "stage"
    stage.mkdir()
    told = tuner_host_config(config, home, Endpoint(""), 0)
    rehearse(told, Plan(trials=40, slots=4, lookahead=16), folder=stage)
    shutil.copy(stage / "journal.sqlite", home.journal)
    return home.path


def replay(experiment: Path, *words: str) -> tuple[int, dict[str, object]]:
    command = ["tuner", "replay", str(experiment), "--json", *words]
    done = CliRunner().invoke(app, command, prog_name=PROGRAM)
    return done.exit_code, json.loads(done.output)


def test_the_same_code_answers_the_same(experiment: Path) -> None:
    before = (experiment / "journal.sqlite").read_bytes()
    code, seen = replay(experiment)
    assert code == 0
    assert (seen["requests"], seen["ends"]) == (40, 40)
    assert 20 < seen["results"] < 40  # type: ignore[operator]  # some have failed
    assert seen["differences"] == []
    assert seen["notes"] == []
    assert (experiment / "journal.sqlite").read_bytes() == before


def test_edited_code_shows_what_it_would_have_done(experiment: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(TUNER.replace("STEP", "1 if parameter_id != 7 else 2"))
    import sys

    sys.modules.pop("mine", None)
    code, seen = replay(experiment, "--until", "9")
    assert code == 1
    (only,) = seen["differences"]  # type: ignore[misc]
    assert only["trial"] == 7
    assert json.loads(only["then"])["step"] == 1
    assert json.loads(only["now"])["step"] == 2
    assert 10 <= seen["requests"] < 40  # type: ignore[operator]


def test_a_trial_that_never_was_is_named(experiment: Path) -> None:
    words = ["tuner", "replay", str(experiment), "--until", "77"]
    done = CliRunner().invoke(app, words, prog_name=PROGRAM)
    assert done.exit_code == 3
    assert "trial 77 was never proposed" in done.output
