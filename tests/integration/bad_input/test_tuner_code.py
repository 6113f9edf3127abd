"""The tuner cannot be built, or answers nonsense: exit code 3, and the author's own lines only."""

from __future__ import annotations

import pytest

from tests.integration.bad_input.conftest import TUNER, User


def _only_the_authors_lines(text: str) -> None:
    assert "dispatcher/" not in text, text
    assert text.count("Traceback") <= 1, text


def test_a_module_that_is_missing(user: User) -> None:
    answer = user.run(tuner={"className": "tunr:Plain", "codeDirectory": "."})
    assert answer.code == 3, answer
    assert "'tunr'" in answer.said
    assert "did you mean 'tuner'?" in answer.said
    assert "Traceback" not in answer.said
    assert answer.said.count("did you mean") == 1, answer.said


def test_a_class_that_is_missing(user: User) -> None:
    answer = user.run(tuner={"className": "tuner:Plan", "codeDirectory": "."})
    assert answer.code == 3, answer
    assert "nothing there is called 'Plan'" in answer.said
    assert "did you mean 'Plain'" in answer.said
    assert "Traceback" not in answer.said


def test_a_constructor_that_raises(user: User) -> None:
    user.write(
        "tuner.py",
        TUNER.replace(
            "    def generate",
            "    def __init__(self, size=1):\n        self.share = 1 / (size - 1)\n\n"
            "    def generate",
        ),
    )
    answer = user.run()
    assert answer.code == 3, answer
    assert "ZeroDivisionError" in answer.said
    assert 'tuner.py", line 6' in answer.said
    why = user.type("why", "--folder", str(user.kept)).out
    assert "cannot be built: ZeroDivisionError" in why, "one line, with what was raised"
    assert "\u240a" not in why
    _only_the_authors_lines(answer.said)


def test_arguments_that_do_not_fit(user: User) -> None:
    tuner = {"className": "tuner:Plain", "codeDirectory": ".", "classArgs": {"sise": 1}}
    answer = user.run(tuner=tuner)
    assert answer.code == 3, answer
    assert "sise" in answer.said
    _only_the_authors_lines(answer.said)


@pytest.mark.parametrize(
    "answer, word",
    [
        ("{'n': object()}", "object"),
        ("{'n': float('nan')}", "nan"),
        ("{'n': 'x' * 2_000_000}", "1,048,576 are allowed"),
        ("None", "None"),
        ("{'n': 1, 'save_path': 7}", "save_path"),
    ],
    ids=["object", "nan", "large", "none", "path"],
)
def test_nonsense_parameters(user: User, answer: str, word: str) -> None:
    user.write("tuner.py", TUNER.replace('{"n": parameter_id}', answer))
    told = user.run()
    assert told.code == 3, told
    assert word.lower() in told.said.lower(), told.said
    assert "generate_parameters" in told.said
    _only_the_authors_lines(told.said)
    assert len(told.said) < 5_000


def test_a_tuner_without_methods(user: User) -> None:
    user.write("tuner.py", "class Plain:\n    pass\n")
    answer = user.run()
    assert answer.code == 3, answer
    assert "has no method generate_parameters" in answer.said


def test_a_module_that_exits(user: User) -> None:
    user.write("tuner.py", TUNER + "\nraise SystemExit('not today')\n")
    answer = user.run()
    assert answer.code == 3, answer
    assert "not today" in answer.said
    _only_the_authors_lines(answer.said)
