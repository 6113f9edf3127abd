"""``bequeath tuner check``: each way of breaking the contract is found and said in a sentence."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import PROGRAM, app

HEAD = """
import threading
from tuners import NoMoreTrialError, Tuner

class T(Tuner):
    def __init__(self, strict=False):
        self.count, self.mine, self.given = 0, threading.Lock(), []

    def receive_trial_result(self, parameter_id, parameters, value):
        {result}

    def generate_parameters(self, parameter_id):
        {body}
        return {{"i": parameter_id, "save_path": self.save_path(parameter_id)}}
"""

#: What generate_parameters does, what receive_trial_result does, and the words of the finding.
BROKEN = {
    "raises": ("if parameter_id == 7: raise KeyError('here')", "pass", "(7) raised KeyError"),
    "is no JSON": ("if parameter_id == 7: return {1: 2}", "pass", "JSON keys are text"),
    "waits with its lock": (
        "with self.lock:\n            self.wait_for(parameter_id - 1 if parameter_id else 1)",
        "pass",
        "raised tuners.errors.WaitWithLock",
    ),
    "waits with a lock of its own": (
        "with self.mine:\n            if parameter_id > 3: self.wait_for(parameter_id - 1)",
        "with self.mine: pass",
        "the tuner stands still in receive_trial_result",
    ),
    "never returns": (
        "while parameter_id == 5: pass",
        "pass",
        "request 5 has been in generate_parameters for",
    ),
    "changes what it returned": (
        "one = {'i': 1}; [each.update(i=2) for each in self.given]; self.given.append(one)\n"
        "        return one",
        "pass",
        "were changed after generate_parameters had returned them",
    ),
    "loses updates": (
        "number = self.count\n        last = [number]\n        self.count = number + 1\n"
        "        assert number not in self.given\n        self.given.append(number)",
        "pass",
        "raised AssertionError",
    ),
    "ends its process": (
        "if parameter_id == 5: import os; os._exit(3)",
        "pass",
        "the tuner host exited with code 3",
    ),
    "does not take results": ("pass", "raise ValueError(parameters)", "receive_trial_result("),
    "waits in a thread of its own": (
        "if parameter_id == 4: threading.Thread(target=self.wait_for, args=(3,)).start()",
        "pass",
        "a thread that the tuner started by itself",
    ),
    "does not forgive a failed parent": (
        "try:\n            self.wait_for(max(0, parameter_id - 1)) if parameter_id else None\n"
        "        except Exception as error: raise KeyError('no parent') from error",
        "pass",
        "raised KeyError: 'no parent'",
    ),
    "takes a result for weights": (
        "best = max(self.given, default=None)\n        try:\n"
        "            self.wait_for(best[1]) if best else None\n"
        "        except Exception as error: raise KeyError('it had a result') from error",
        "self.given.append((value, parameter_id))",
        "raised KeyError: 'it had a result'",
    ),
}

#: What state and restore do, and the words of the finding.
FORGETFUL = {
    "no JSON": ("return {1, 2}", "pass", "state() cannot be kept: TypeError: Object of type set"),
    "does not take it": ("return {'a': 1}", "state['b']", "the tuner cannot be restored"),
}


def check(folder: Path, text: str, *words: str) -> tuple[int, str]:
    (folder / "mine.py").write_text(text)
    command = ["tuner", "check", f"{folder}/mine.py:T", "--trials", "48", *words]
    done = CliRunner().invoke(app, command, prog_name=PROGRAM)
    return done.exit_code, " ".join(done.output.split())


@pytest.mark.parametrize("how", BROKEN)
def test_what_breaks_the_contract_is_said(how: str, tmp_path: Path) -> None:
    body, result, words = BROKEN[how]
    deadline = ["--deadline", "5"] if how == "never returns" else []
    code, said = check(tmp_path, HEAD.format(body=body, result=result), *deadline)
    assert code == 1, said
    assert words in said
    assert "breaks the contract; played:" in said


@pytest.mark.parametrize("how", FORGETFUL)
def test_a_state_that_is_none_is_said(how: str, tmp_path: Path) -> None:
    state, restore, words = FORGETFUL[how]
    text = HEAD.format(body="pass", result="pass") + (
        f"\n    def state(self):\n        {state}"
        f"\n    def restore(self, state):\n        {restore}\n"
    )
    code, said = check(tmp_path, text)
    assert code == 1, said
    assert words in said


def test_a_state_without_restore_is_said(tmp_path: Path) -> None:
    text = HEAD.format(body="pass", result="pass") + "\n    def state(self): return {}\n"
    code, said = check(tmp_path, text)
    assert code == 1, said
    assert "defines state() and no restore()" in said


def test_one_that_takes_back_less_than_it_was_is_remarked(tmp_path: Path) -> None:
    counts = "with self.lock: self.count += 1; return {'i': self.count}"
    text = HEAD.format(body=counts, result="pass") + (
        "\n    def state(self): return {}\n    def restore(self, state): pass\n"
    )
    code, said = check(tmp_path, text, "--json", "--trials", "24")
    verdict = json.loads(said)
    assert (code, verdict["comes_back_by"]) == (0, "its own state()")
    (remark,) = verdict["remarks"]
    assert "what it takes back by restore() is not all that it was" in remark["text"]
    kept = text.replace("return {}", "return self.count").replace(
        "state): pass",
        "state): self.count = state\n    def restore_proposal(self, *given): self.count += 1",
    )
    code, said = check(tmp_path, kept, "--json", "--trials", "24")
    assert (code, json.loads(said)["remarks"]) == (0, [])


def test_one_that_answers_twice_is_named(tmp_path: Path) -> None:
    many = HEAD.format(body="pass", result="pass") + (
        "\n    def generate_multiple_parameters(self, ids, **kwargs):"
        "\n        return [{'i': 1}, {'i': 2}]\n"
    )
    code, said = check(tmp_path, many)
    assert code == 1
    assert "answered 2 times: one set of parameters for each id" in said


def test_one_that_keeps_it_passes_and_random_numbers_are_remarked(tmp_path: Path) -> None:
    waits = "if parameter_id > 2: self.wait_for(parameter_id - 2, fallback=None)"
    code, said = check(tmp_path, HEAD.format(body=waits, result="pass"), "--json")
    verdict = json.loads(said)
    assert (code, verdict["keeps_contract"], verdict["trials"]) == (0, True, 48)
    assert verdict["failed"] > 0
    assert verdict["waits"] > 20
    assert verdict["other_waits"] >= 0
    assert verdict["comes_back_by"] == "a repetition of its calls"
    assert verdict["remarks"] == []
    rolls = "import random\n        return {'x': random.random()}"
    code, said = check(tmp_path, HEAD.format(body=rolls, result="pass"))
    assert code == 0
    assert "it does not come back as it was" in said
    assert " 0 waits for trials" in said


def test_what_cannot_be_built_or_found_is_named(tmp_path: Path) -> None:
    def of(*words: str) -> str:
        done = CliRunner().invoke(app, ["tuner", "check", *words], prog_name=PROGRAM)
        assert done.exit_code == 3, done.output
        return " ".join(done.output.split())

    assert "there is no file" in of(f"{tmp_path}/nobody.py:T")
    assert "Did you mean 'Random'" in of("Randm")
    assert "name its tuner's class" in of("experiment.yml")
    assert "an assessor; what is checked is tuners" in of("Medianstop")
    (tmp_path / "mine.py").write_text(HEAD.format(body="pass", result="pass"))
    assert "no JSON object" in of(f"{tmp_path}/mine.py:T", "--class-args", "[]")
    assert f"{tmp_path}/mine.py:CLASS" in of(f"{tmp_path}/mine.py")


def test_arguments_that_do_not_fit_end_it_at_once(tmp_path: Path) -> None:
    text = HEAD.format(body="pass", result="pass")
    code, said = check(tmp_path, text, "--class-args", '{"strikt": true}')
    assert code == 3
    assert "T takes no argument 'strikt'" in said
    assert "Did you mean 'strict'" in said
    assert "contract" not in said
    code, said = check(tmp_path, text.replace("class T(", "class Tea("))
    assert (code, "has no class T" in said) == (3, True)
    code, said = check(tmp_path, text.replace("strict=False):", "strict=False):\n        1 / 0"))
    assert (code, "ZeroDivisionError" in said) == (1, True)


FOLDERS = """
import threading
from nni.tuner import Tuner

class T(Tuner):
    def __init__(self):
        self.mutex, self.free, self.used = threading.Lock(), list(range(17)), {}

    def update_search_space(self, space): pass

    def generate_parameters(self, parameter_id, **kwargs):
        with self.mutex:
            self.used[parameter_id] = self.free.pop()
        return {"folder": self.used[parameter_id]}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs): pass

    def trial_end(self, parameter_id, success, **kwargs):
        with self.mutex:
            self.free.append(self.used.pop(parameter_id))
"""


def test_a_tuner_of_nni_is_asked_as_nni_asks(tmp_path: Path) -> None:
    """One folder for each trial and one more: enough there, and so in an experiment of ours.
    Mutation: requests are opened ahead, and the folders run out."""
    (tmp_path / "folders.py").write_text(FOLDERS)
    words = ["tuner", "check", f"{tmp_path}/folders.py:T", "--trials", "60", "--json"]
    result = CliRunner().invoke(app, words, prog_name=PROGRAM)
    assert json.loads(result.stdout)["faults"] == []
    assert result.exit_code == 0
