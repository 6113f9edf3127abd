"""The words of ``nnictl``, from ``create`` to ``delete``, with real processes."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from dispatcher.folders.status import is_led
from tests.integration.cli.conftest import Place

CONFIG = """\
authorName: somebody
experimentName: classic
trialConcurrency: 2
maxExecDuration: 1h
maxTrialNum: 4
trainingServicePlatform: local
searchSpacePath: space.json
logDir: kept
tuner:
  builtinTunerName: Random
trial:
  command: python3 trial.py
  codeDir: .
  gpuNum: 0
"""

#: Ends when the file ``go`` is there, so that the test decides.
TRIAL = """\
import os
from tests.support import hold

import nni

parameters = nni.get_next_parameter()
print("x is", parameters["x"], flush=True)
nni.report_intermediate_result(parameters["x"])
hold.until("go")
nni.report_final_result({"default": parameters["x"], "of": nni.get_trial_id()})
"""

Nni = Callable[..., str]


@pytest.fixture
def nni(place: Place) -> Nni:
    """``bequeath nni`` in a folder as somebody has it who comes from NNI."""
    (place.folder / "config.yml").write_text(CONFIG)
    (place.folder / "trial.py").write_text(TRIAL)
    space = {"x": {"_type": "uniform", "_value": [0, 1]}}
    (place.folder / "space.json").write_text(json.dumps(space))

    def call(*words: str, code: int = 0) -> str:
        return place("nni", *words, code=code)

    return call


def _rows(nni: Nni, file: Path, form: str, *more: str) -> list[dict[str, Any]]:
    nni("experiment", "export", "--filename", str(file), "--type", form, *more)
    text = file.read_text()
    rows: list[dict[str, Any]] = (
        json.loads(text) if form == "json" else list(csv.DictReader(text.splitlines()))
    )
    return rows


def test_an_experiment_from_create_to_delete(place: Place, nni: Nni) -> None:
    """Mutations: ``stop`` does not wait; what an attempt that was stopped has reported is
    exported as well."""
    ident = nni("create", "--config", "config.yml").strip()
    place.wait_until_running()
    assert ident in nni("experiment", "list")
    assert json.loads(nni("experiment", "status"))["status"] == "RUNNING"
    assert "nothing listens" not in nni("top", "--time", "1"), "the answer, not a note"
    printed = lambda: nni("log", "trial", "--trial_id", "0")  # noqa: E731 - later than it reports
    place.wait_until(lambda: printed().startswith("x is 0."), "it has printed")

    nni("trial", "kill", "-T", "0")
    nni("update", "trialnum", ident, "--value", "5")
    data = [{"parameter": {"x": 0.5}, "value": 1}, {"parameter": {"x": 0.6}, "value": "0.7"}]
    (place.folder / "data.json").write_text(json.dumps(data))
    assert "2 results" in nni("experiment", "import", ident, "-f", "data.json")
    (place.folder / "data.json").write_text(json.dumps([{"parameter": {}}]))
    assert "has no 'value'" in nni("experiment", "import", "-f", "data.json", code=3)
    place.wait_until(lambda: place.trials()[0].outcome == "killed", "trial 0 is ended")
    nni("stop", f"{ident[:-2]}*")
    assert json.loads(nni("experiment", "status", ident))["status"] == "STOPPED"
    assert ident not in nni("experiment", "list")

    place.go()
    nni("resume", ident, "--experiment_dir", str(place.kept))
    place.wait_until(lambda: not is_led(place.experiment), "it is over")
    assert _statuses(nni) == ["USER_CANCELED", *["SUCCEEDED"] * 4]
    assert "what was imported is ignored" in nni("log", "stdout", ident), "Random says so"

    rows = _rows(nni, place.folder / "out.json", "json", "-i")
    assert [row["trialJobId"] for row in rows] == ["1", "2", "3", "4"]
    for row in rows:
        value = json.loads(row["value"])
        assert value == {"default": row["parameter"]["x"], "of": row["trialJobId"]}
        assert row["intermediate"] == [str(row["parameter"]["x"])]
    table = _rows(nni, place.folder / "out.csv", "csv")
    assert [float(row["default"]) for row in table] == [row["parameter"]["x"] for row in rows]

    assert "completed" in nni("view", ident)
    nni("experiment", "save", ident, "--path", "copies")
    nni("experiment", "delete", ident, "--yes")
    assert "DONE" in nni("experiment", "status", str(place.folder / "copies" / ident))


def _statuses(nni: Nni) -> list[str]:
    return [one["status"] for one in json.loads(nni("trial", "ls"))]


SCRIPT = """\
import argparse
import os

from nni.experiment import Experiment

words = argparse.ArgumentParser()
words.add_argument("many", type=int)
words.add_argument("--name")
many, name = vars(words.parse_args()).values()
assert os.path.isabs(__file__)
experiment = Experiment("local")
experiment.config.experiment_name = name
known = experiment.id
experiment.config.experiment_working_directory = "kept"
experiment.config.trial_command = "python3 trial.py"
experiment.config.search_space = {"x": {"_type": "uniform", "_value": [0, 1]}}
experiment.config.tuner.name = "Random"
experiment.config.trial_concurrency = 2
experiment.config.max_trial_number = many
assert experiment.run(8080)
assert known == experiment.id and known.startswith(name), known
results = experiment.export_data()
assert [one.value["default"] == one.parameter["x"] for one in results] == [True] * 3
print(experiment.get_status(), experiment.get_job_statistics())
print([[one.type for one in of] for of in experiment.get_job_metrics().values()])
experiment.stop()
"""


#: Starts it, as those do who try several things one after another.
OUTER = """\
import os
import subprocess
import sys

from nni.experiment import Experiment

subprocess.run([sys.executable, "launch.py", *sys.argv[1:]], check=True)
(ident,) = os.listdir("kept")
print(Experiment(id=ident).get_status(), Experiment.view(ident, 8080).id == ident)
"""


def test_a_script_that_starts_an_experiment_runs_as_it_is(place: Place, nni: Nni) -> None:
    """Mutations: a script gets no arguments; what it starts finds no ``nni``; its head finds the
    one that is meant for scripts."""
    (place.folder / "launch.py").write_text(SCRIPT)
    (place.folder / "outer.py").write_text(OUTER)
    place.go()
    assert place("run", "outer.py", "3", "--name", "mine").splitlines() == [
        "DONE [{'trialJobStatus': 'SUCCEEDED', 'trialJobNumber': 3}]",
        "[['PERIODICAL', 'FINAL'], ['PERIODICAL', 'FINAL'], ['PERIODICAL', 'FINAL']]",
        "DONE True",
    ]
    assert "own options" in place("run", "--json", "launch.py", code=2)
    assert "no arguments: 3" in place("run", "config.yml", "3", code=2)
    assert _statuses(nni) == ["SUCCEEDED"] * 3
