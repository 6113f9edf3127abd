"""Files of the user's that are called like packages of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.bad_input.conftest import User

SCRIPT = """\
import bequeath as bq

from dispatcher import goal
from trial_runtime import log
from tuners import Plain


def trial(parameters):
    return log(parameters["n"], goal())


if __name__ == "__main__":
    bq.Experiment(
        trial=trial, tuner=Plain, trial_concurrency=2, max_trial_number=3,
        experiment_working_directory="kept", weights_root="weights",
    ).run(quiet=True)
"""  # fmt: skip


@pytest.mark.parametrize("name", ["tuners.py", "trial_runtime.py", "tuners/__init__.py"])
def test_one_beside_a_script_hides_nothing(user: User, name: str) -> None:
    user.write(name, "X = 1\n")
    word = name.partition("/")[0].removesuffix(".py")
    user.write("script.py", f"from dispatcher import Experiment\nfrom {word} import X\nprint(X)\n")
    answer = user.type("python", "script.py")
    assert (answer.code, answer.out) == (0, "1\n"), answer.said


def test_all_beside_a_script_that_takes_its_names_from_bequeath(user: User) -> None:
    """Mutation: the tuner's class is looked for in our folder, a head reads the user's file, or a
    trial finds ours where it means the user's."""
    text = (user.folder / "tuner.py").read_text()
    user.write("tuners.py", text.replace("from tuners import Tuner", "from bequeath import Tuner"))
    user.write("dispatcher.py", "def goal():\n    return 1\n")
    user.write("trial_runtime.py", "def log(a, b):\n    return float(abs(a - b))\n")
    user.write("script.py", SCRIPT)
    answer = user.type("python", "script.py")
    assert answer.code == 0, answer.said
    (heard,) = user.folder.rglob("heard.txt")  # in the folder that the tuner runs in
    results = [line for line in heard.read_text().splitlines() if line.startswith("result")]
    assert sorted(results) == ["result 0 1.0", "result 1 0.0", "result 2 1.0"]


def test_one_beside_an_experiment_file_is_the_users_tuner(user: User) -> None:
    text = (user.folder / "tuner.py").read_text()
    user.write("tuners.py", text)
    user.write("dispatcher.py", "raise RuntimeError('nobody wants this')\n")
    user.write("trial_runtime.py", "def log():\n    return 1.0\n")
    trial = "import bequeath as bq\nfrom trial_runtime import log\n\n\n"
    user.write("trial.py", f"{trial}def main(parameters):\n    bq.log('a')\n    return log()\n")
    tuner = {"className": "tuners:Plain", "codeDirectory": "."}
    assert user.type("validate", user.experiment(tuner=tuner)).code == 0
    answer = user.run(tuner=tuner)
    assert answer.code == 0, answer.said


STUDIES = """\
import bequeath as bq
from tuners import X

for where in "in", "in":
    with bq.Study(folder=where, tuner="Random") as study:
        study.optimize(lambda t: t.suggest_float("x", 0, 1) + X, n_trials=2)
print(len(study.trials()))
"""


@pytest.mark.parametrize("name", ["tuners.py", "tuners/__init__.py"])
def test_one_beside_a_study_without_a_space(user: User, name: str) -> None:
    """Mutation: our tuner of such studies is looked for in the user's file."""
    user.write(name, "X = 1\n")
    user.write("script.py", STUDIES)
    answer = user.type("python", "script.py")
    assert (answer.code, answer.out) == (0, "4\n"), answer.said
