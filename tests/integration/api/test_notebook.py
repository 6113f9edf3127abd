"""A script does in Python what a user does at the terminal."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

REPOSITORY = Path(__file__).parents[3]

SCRIPT = """
import math
import sys

from dispatcher import Experiment
from tuners import Tuner

OFFSET = 0.25


def distance(x):
    return math.fabs(x - OFFSET)


def trial(parameters):
    with open("note.txt") as file:  # a relative path means what it means here
        assert file.read() == "here"
    return distance(parameters["x"])


class Steps(Tuner):
    def __init__(self, step):
        super().__init__()
        self.step = step

    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": parameter_id * self.step}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass


experiment = Experiment(
    trial=trial,
    tuner=Steps,
    tuner_args={"step": 0.125},
    trial_concurrency=2,
    max_trial_number=4,
    optimize_mode="minimize",
    experiment_working_directory="kept",
)
summary = experiment.run(quiet=True)
assert summary.status == "completed", summary
assert not experiment.running
assert experiment.best().parameters == {"x": 0.25}
assert [one.id for one in experiment.trials()] == [0, 1, 2, 3]
assert experiment.rows()[2]["value"] == 0.0
assert "★" in experiment.lineage_text()
assert experiment.plot("progress")._repr_png_().startswith(b"\\x89PNG")
again = Experiment.open(experiment.folder)
assert again.status().ended == 4
assert "completed" in experiment.why()
print("well done")
"""

STOPPING = """
from tests.support import hold

from dispatcher import Experiment


def trial(parameters):
    import os
    hold.until("go")
    return parameters["x"]


experiment = Experiment(
    trial=trial,
    tuner="Random",
    search_space={"x": {"_type": "uniform", "_value": [0, 1]}},
    trial_concurrency=2,
    max_trial_number=3,
    trial_stop_grace=1,
    experiment_working_directory="kept",
).start()
assert experiment.running
hold.until(lambda: experiment.status().states.get("running", 0) >= 2)
assert not experiment.wait(timeout_s=0.01)
number = experiment.submit({"x": 5.0})
experiment.update("maxTrialNumber", 5)
experiment.stop()
assert not experiment.running
assert experiment.status().status == "stopped"
open("go", "w").close()
summary = experiment.run(quiet=True)
assert summary.status == "completed"
assert experiment.best().id == number
print("well done")
"""

CALLING = """
from pathlib import Path

from dispatcher import Experiment


def trial(parameters):
    return parameters["x"]


experiment = Experiment(
    trial=trial,
    tuner="Random",
    search_space={"x": {"_type": "uniform", "_value": [0, 1]}},
    trial_concurrency=1,
    max_trial_number=2,
    experiment_working_directory="kept",
    callbacks={
        "on_trial_end": "hooks:tell",
        "onExperimentEnd": {"command": "./notify.sh --channel nas"},
    },
)
experiment.run(quiet=True)
log = experiment.folder / "logs/callbacks.log"
assert Path("told.txt").read_text() == "trial_end trial_end ", log.read_text()
assert Path("notified.txt").read_text() == "--channel nas", log.read_text()
print("well done")
"""

ELSEWHERE = """
import helper
from dispatcher import Experiment
from tuners import Tuner


class Ones(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": helper.one()}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass


def trial(parameters):
    with open("note.txt") as file:
        assert file.read() == "here"
    return helper.one() + parameters["x"]


experiment = Experiment(
    trial=trial,
    tuner=Ones,
    trial_concurrency=1,
    max_trial_number=2,
    experiment_working_directory="kept",
    callbacks={"on_trial_end": "helper:tell"},
)
experiment.run(quiet=True)
assert experiment.best().value == 2
assert "helper was told" in (experiment.folder / "logs/callbacks.log").read_text()
print("well done")
"""


def _run(script: str, folder: Path, file: str = "script.py") -> None:
    (folder / file).write_text(script)
    (folder / "note.txt").write_text("here")
    done = subprocess.run(
        [sys.executable, "-W", "error::ResourceWarning", file],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "XDG_STATE_HOME": str(folder / "state"),
        },
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "well done\n"


def test_functions_and_classes_of_a_script(tmp_path: Path) -> None:
    _run(SCRIPT, tmp_path)


def test_stop_submit_update_and_go_on(tmp_path: Path) -> None:
    _run(STOPPING, tmp_path)


def test_callbacks_lie_beside_the_script(tmp_path: Path) -> None:
    """Mutation: they are looked for beside the source that was written of the script's trial."""
    (tmp_path / "hooks.py").write_text(
        "def tell(facts):\n"
        "    with open('told.txt', 'a') as file:\n"
        "        file.write(facts['event'] + ' ')\n"
    )
    program = tmp_path / "notify.sh"
    program.write_text('#!/bin/sh\nprintf %s "$*" > notified.txt\n')
    program.chmod(0o700)
    _run(CALLING, tmp_path)


def test_a_script_that_is_started_from_another_folder(tmp_path: Path) -> None:
    """Mutation: modules beside the script are looked for in the current folder."""
    (tmp_path / "search").mkdir()
    (tmp_path / "search" / "helper.py").write_text(
        "def one():\n    return 1\n\n\ndef tell(facts):\n    print('helper was told')\n"
    )
    _run(ELSEWHERE, tmp_path, "search/script.py")
