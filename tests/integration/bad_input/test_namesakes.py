"""Files of the user's that are called like packages of ours."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from tests.integration.bad_input.conftest import User


@pytest.mark.parametrize("name", ["tuners.py", "trial_runtime.py", "tuners/__init__.py"])
def test_one_beside_a_script_is_named(user: User, name: str) -> None:
    user.write(name, "X = 1\n")
    user.write("script.py", "from dispatcher import Experiment\n")
    answer = user.type("python", "script.py")
    assert answer.code == 1
    last = answer.err.rstrip().splitlines()[-1]
    assert last.startswith(f"ImportError: {user.folder / name} takes the place of bequeath's own")
    assert "rename it" in last


def test_one_beside_an_experiment_file_is_the_users_tuner(user: User) -> None:
    text = (user.folder / "tuner.py").read_text()
    user.write("tuners.py", text)
    user.write("trial_runtime.py", "raise RuntimeError('nobody wants this')\n")
    tuner = {"className": "tuners:Plain", "codeDirectory": "."}
    assert user.type("validate", user.experiment(tuner=tuner)).code == 0
    answer = user.run(tuner=tuner)
    assert answer.code == 0, answer.said
