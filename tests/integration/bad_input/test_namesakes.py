"""Files of the user's that are called like packages of ours."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.bad_input.conftest import User

SCRIPT = """\
import bequeath as bq

from dispatcher import goal
from trial_runtime import distance
from tuners import Plain


def trial(parameters):
    return distance(parameters["n"], goal())


if __name__ == "__main__":
    done = bq.Experiment(
        trial=trial, tuner=Plain, trial_concurrency=2, max_trial_number=3,
        experiment_working_directory="kept", weights_root="weights",
    ).run(quiet=True)
    print(done.counts)
"""  # fmt: skip


@pytest.mark.parametrize("name", ["tuners.py", "trial_runtime.py", "tuners/__init__.py"])
def test_one_beside_a_script_is_named(user: User, name: str) -> None:
    user.write(name, "X = 1\n")
    user.write("script.py", "from dispatcher import Experiment\n")
    answer = user.type("python", "script.py")
    assert answer.code == 1
    last = answer.err.rstrip().splitlines()[-1]
    assert last.startswith(f"ImportError: {user.folder / name} takes the place of bequeath's own")
    assert "rename it" in last
    assert "import bequeath as bq" in last


def test_three_beside_a_script_that_takes_all_from_bequeath_break_nothing(user: User) -> None:
    """Mutation: the tuner's class is looked for in our folder, or a head reads the user's file."""
    text = (user.folder / "tuner.py").read_text()
    user.write("tuners.py", text.replace("from tuners import Tuner", "from bequeath import Tuner"))
    user.write("dispatcher.py", "def goal():\n    return 1\n")
    user.write("trial_runtime.py", "def distance(a, b):\n    return float(abs(a - b))\n")
    user.write("script.py", SCRIPT)
    answer = user.type("python", "script.py")
    assert answer.code == 0, answer.said
    ends = [json.dumps(each) for each in user.heard() if each.startswith("result")]
    assert sorted(ends) == ['"result 0 1.0"', '"result 1 0.0"', '"result 2 1.0"']


def test_one_beside_an_experiment_file_is_the_users_tuner(user: User) -> None:
    text = (user.folder / "tuner.py").read_text()
    user.write("tuners.py", text)
    user.write("trial_runtime.py", "raise RuntimeError('nobody wants this')\n")
    user.write(
        "trial.py", "import bequeath as bq\n\n\ndef main(parameters):\n    bq.log\n    return 1.0\n"
    )
    tuner = {"className": "tuners:Plain", "codeDirectory": "."}
    assert user.type("validate", user.experiment(tuner=tuner)).code == 0
    answer = user.run(tuner=tuner)
    assert answer.code == 0, answer.said
