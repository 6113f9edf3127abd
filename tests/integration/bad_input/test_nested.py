"""Scripts that start an experiment as they are imported, by the processes of that experiment.

Each counts how often it came to its start and gives up after a few, so that a fault of ours costs
seconds and not the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from tests.integration.bad_input.conftest import User

REFUSAL = "boom.py starts an experiment when it is imported: put that under `if __name__ =="

COUNTED = """
import os
from pathlib import Path

HERE = Path(os.environ["HERE"])
STARTS = HERE / "starts"
STARTS.touch()
with STARTS.open("r+") as file:
    many = len(file.read())
    file.write("x")
if many > 8:
    raise SystemExit("came here too often")
"""

#: Names its own function or class by a text, and starts wherever it is imported.
SCRIPT = (
    """
from dispatcher import Experiment
from tuners import Tuner


def plain(parameters):
    return 1.0


class Mine(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        return {"x": parameter_id}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass

"""
    + COUNTED
    + """
Experiment(
    %s,
    trial_concurrency=1,
    max_trial_number=2,
    trial_retries=0,
    trial_code_directory=str(HERE),
    experiment_working_directory=str(HERE / "kept"),
).run(quiet=True)
"""
)

#: The same by a program of its own.
BY_PROGRAM = (
    COUNTED
    + """
import subprocess
import sys

subprocess.run(
    [sys.executable, "-P", "-m", "dispatcher.cli", "run", "experiment.yml"], cwd=HERE, check=True
)


def main(parameters):
    return 1.0
"""
)

SPACE = '"search_space": {"x": {"_type": "uniform", "_value": [0, 1]}}'
TRIAL = f'**{{"trial": "boom:plain", "tuner": "Random", {SPACE}, "training_service": %s}}'


def experiments(user: User) -> int:
    return len(list(user.kept.iterdir()))


@pytest.mark.parametrize(
    "service",
    [
        pytest.param({"platform": "local", "reuseMode": "none"}, marks=pytest.mark.extended),
        pytest.param({"platform": "local", "reuseMode": "forked"}, marks=pytest.mark.extended),
        {"platform": "local", "reuseMode": "forked", "preload": ["boom"]},
        {"platform": "local", "reuseMode": "inProcess"},
    ],
    ids=["fresh", "forked", "preloaded", "warm"],
)
def test_a_script_whose_trial_is_itself_by_name(user: User, service: dict[str, Any]) -> None:
    user.write("boom.py", SCRIPT % (TRIAL % service))
    answer = user.type("python", "boom.py")
    assert answer.code != 0
    assert REFUSAL in answer.said
    assert experiments(user) == 1
    user.assert_intact()


def test_a_script_whose_tuner_is_itself_by_name(user: User) -> None:
    config = {"tuner": {"className": "boom:Mine", "codeDirectory": str(user.folder)}}
    user.write("boom.py", SCRIPT % f'{config}, trial="trial:main"')
    answer = user.type("python", "boom.py")
    assert answer.code != 0
    assert REFUSAL in answer.said
    assert experiments(user) == 1


def test_a_cell_that_imports_a_script_that_starts_an_experiment(user: User) -> None:
    """What a notebook's function uses is imported by the file that is written for it."""
    user.write("boom.py", SCRIPT % (TRIAL % {"platform": "local"}))
    user.write(
        "cells.py",
        """
import os, sys, types
sys.modules["boom"] = boom = types.ModuleType("boom")  # as if it had been run in another cell

def trial(parameters):
    return float(len(boom.__name__))

from dispatcher import Experiment
Experiment(trial=trial, tuner="Random", trial_concurrency=1, max_trial_number=1, trial_retries=0,
           search_space={"x": {"_type": "uniform", "_value": [0, 1]}},
           experiment_working_directory="kept").run(quiet=True)
""",
    )
    answer = user.type("python", "cells.py")
    assert REFUSAL in answer.said
    assert experiments(user) == 1


def test_imported_code_that_types_bequeath_run(user: User) -> None:
    user.write("trial.py", BY_PROGRAM)
    answer = user.run(maxTrialNumber=1)
    assert answer.code != 0
    stderr = next(user.lab.glob("**/trials/0/**/stderr")).read_text()
    assert "an experiment is started while trial is imported: put that under" in stderr
    assert experiments(user) == 1


def test_a_trial_command_that_runs_its_own_script_is_bounded_in_depth(user: User) -> None:
    """Nothing is imported here, and an experiment in a trial is a fair thing; but not endlessly."""
    user.write(
        "boom.py",
        SCRIPT % f'**{{"trial_command": "python boom.py", "tuner": "Random", {SPACE}}}',
    )
    user.type("python", "boom.py")
    assert (user.folder / "starts").read_text().count("x") <= 8
    # One at the top, one in each of its two trials; those in their trials were refused.
    assert experiments(user) == 3
