"""The experiment file is wrong: file:line:column, exit code 3, nothing made, no traceback."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.bad_input.conftest import Answer, User


def _refused(user: User, answer: Answer) -> str:
    assert answer.code == 3, answer
    assert "Traceback" not in answer.err
    assert answer.out == ""
    assert not user.kept.exists()
    return answer.err


def test_broken_yaml(user: User) -> None:
    user.write("experiment.yml", "trialConcurrency: 2\ntuner: {name: Random\ntrialCommand: x\n")
    error = _refused(user, user.type("run", "experiment.yml"))
    assert "experiment.yml:3:" in error


def test_a_file_that_is_not_there(user: User) -> None:
    answer = user.type("run", "experimet.yml")
    assert answer.code == 3
    assert "experimet.yml: does not exist" in answer.err
    user.experiment()
    assert "did you mean 'experiment.yml'?" in user.type("run", "experimet.yml").err


def test_a_folder_and_a_binary_file(user: User) -> None:
    assert "Traceback" not in user.type("run", ".").err
    (user.folder / "picture.yml").write_bytes(bytes(range(256)) * 10)
    error = _refused(user, user.type("run", "picture.yml"))
    assert "picture.yml" in error


@pytest.mark.parametrize(
    "keys, line, words",
    [
        ({"maxTrialNumer": 3}, "14:1", ["unknown key 'maxTrialNumer'", "maxTrialNumber"]),
        ({"maxTrialDuration": "5 parsecs"}, "14:", ["maxTrialDuration", "parsecs"]),
        ({"onStall": "panic"}, "14:", ["onStall", "panic", "grow"]),
        ({"searchSpace": {}, "tuner": {"name": "Random"}}, "", ["searchSpace"]),
        (
            {
                "searchSpace": {"x": {"_type": "uniform", "_value": [3, 1]}},
                "tuner": {"name": "Random"},
            },
            "14:",
            ["searchSpace.x", "contradictory"],
        ),
    ],
    ids=["misspelt", "unit", "word", "empty-space", "contradictory-space"],
)
def test_a_key_that_does_not_fit(
    user: User, keys: dict[str, Any], line: str, words: list[str]
) -> None:
    error = _refused(user, user.type("run", user.experiment(**keys)))
    assert f"experiment.yml:{line}" in error
    for word in words:
        assert word in error, error


def test_a_wrong_type(user: User) -> None:
    error = _refused(user, user.type("run", user.experiment(trialConcurrency="two")))
    assert "experiment.yml:5:" in error
    assert "trialConcurrency" in error
    assert "two" in error


def test_validate_says_the_same(user: User) -> None:
    file = user.experiment(maxTrialNumer=3)
    assert user.type("validate", file).code == 3


def test_a_name_that_cannot_be_one(user: User) -> None:
    file = user.experiment()
    for name in ("", "two\nlines", "x" * 300):
        answer = user.type("run", file, "--name", name)
        assert answer.code in (2, 3), answer
        assert "name" in answer.err
        assert "pydantic" not in answer.err
        assert not user.kept.exists()
