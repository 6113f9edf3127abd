"""Weights at wrong places, and files that are not what was published."""

from __future__ import annotations

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from tests.integration.bad_input.conftest import TUNER, User
from tests.support.lengths import first

SAVES = """\
import numpy as np

import trial_runtime as bq


def main(parameters):
    bq.save_weights({"w": np.arange(1000.0)})
    return float(parameters["n"])
"""


def _saving(expression: str) -> str:
    return TUNER.replace('{"n": parameter_id}', f'{{"n": parameter_id, "save_path": {expression}}}')


@pytest.mark.parametrize(
    "path, words",
    first(
        2,
        [
            ("'../../elsewhere'", ["elsewhere", "weights root"]),
            ("'a\\0b'", ["save_path"]),
            ("'/etc/weights'", ["/etc/weights", "weights root"]),
            ("''", ["save_path"]),
            ("'x' * 5000", ["save_path", "5,000 bytes"]),
            ("'.'", ["save_path"]),
        ],
    ),
    ids=["parent", "nul", "absolute", "empty", "long", "root"],
)
def test_a_save_path_outside_the_weights_root(user: User, path: str, words: list[str]) -> None:
    user.write("tuner.py", _saving(path))
    user.write("trial.py", SAVES)
    answer = user.run(maxTrialNumber=1)
    assert answer.code == 3, answer
    for word in words:
        assert word in answer.said, answer.said
    assert "dispatcher/" not in answer.said
    assert user.ended() == {}, "nothing was started"


def test_a_save_path_through_a_symbolic_link(user: User) -> None:
    (user.folder / "outside").mkdir()
    (user.folder / "root").mkdir()
    (user.folder / "root" / "link").symlink_to(user.folder / "outside")
    user.write("tuner.py", _saving("'link/0'"))
    user.write("trial.py", SAVES)
    answer = user.run(maxTrialNumber=1, weightsRoot="root")
    assert answer.code == 3, answer
    assert "symbolic link" in answer.said
    assert list((user.folder / "outside").iterdir()) == []


@pytest.mark.parametrize(
    "path, word",
    [("'shared'", "trial 0"), ("'a/' * parameter_id + 'b'", ""), ("'s' + '/x' * parameter_id", "")],
    ids=["same", "beside", "nested"],
)
def test_a_save_path_that_is_another_trials(user: User, path: str, word: str) -> None:
    """The same path and one below another's are refused by name; neighbours are fine."""
    user.write("tuner.py", _saving(path))
    user.write("trial.py", SAVES)
    answer = user.run(maxTrialNumber=2, trialConcurrency=1, onTunerError="fail")
    saved = [row for row in user.rows() if isinstance(row, e.WeightsPublished)]
    if path.startswith("'a/'"):
        assert answer.code == 0, answer
        assert len(saved) == 2
    else:
        assert answer.code == 3, answer
        assert "save_path" in answer.said
        assert "trial 0" in answer.said
        assert len(saved) <= 1


def test_a_trial_that_saves_where_it_may_not(user: User) -> None:
    user.write("tuner.py", _saving("f't/{parameter_id}'"))
    user.write("trial.py", SAVES.replace("1000.0)}", '1000.0)}, path="/tmp/bequeath-not-here"'))
    answer = user.run(maxTrialNumber=1)
    assert answer.code == 3, answer
    assert "PathOutsideRoot" in answer.out
    assert "PathOutsideRoot" in user.ended()[0].text
    assert user.heard() == ["end 0 False"]


INHERITS = '''\
import threading

from tuner_base import note
from tuners import Tuner

DAMAGE = """{damage}"""


class Plain(Tuner):
    """Harms the parent's files between its end and the child's start."""

    def generate_parameters(self, parameter_id, **kwargs):
        parameters = {{"n": parameter_id, "save_path": self.save_path(parameter_id)}}
        if parameter_id:
            self.wait_for(0)
            self.harm()
            parameters["restore_path"] = self.save_path(0)
        return parameters

    def harm(self):
        import glob, os, json, struct, sys
        (manifest,) = glob.glob("root/**/manifest.json", recursive=True)
        folder = os.path.dirname(manifest)
        files = glob.glob(folder + "/**/*.safetensors", recursive=True)
        exec(DAMAGE)

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        note("result", parameter_id, value)

    def trial_end(self, parameter_id, success, **kwargs):
        note("end", parameter_id, success)
'''

LOADS = """\
import numpy as np

import trial_runtime as bq


def main(parameters):
    found = np.zeros(1000)
    bq.load_weights(into={"w": found})
    bq.save_weights({"w": found + parameters["n"] + 1.0})
    return float(found[0])
"""

#: What happens to the parent's files, and what the child's error must say.
DAMAGES = {
    "truncated": ("os.truncate(files[0], os.path.getsize(files[0]) // 2)", "CorruptWeights"),
    "terabytes": (
        "f = open(files[0], 'r+b'); f.write(struct.pack('<Q', 5 << 40)); f.close()",
        "CorruptWeights",
    ),
    "changed": (
        "f = open(files[0], 'r+b'); f.seek(-8, 2); f.write(b'otherbit'); f.close()",
        "CorruptWeights",
    ),
    "manifest": ("f = open(manifest, 'a'); f.write(' '); f.close()", "StaleWeights"),
    "gone": ("os.remove(files[0])", "CorruptWeights"),
}


@pytest.mark.parametrize(
    "damage", first(2, ["changed", "manifest", "truncated", "terabytes", "gone"])
)
def test_a_parent_whose_files_are_not_what_it_published(user: User, damage: str) -> None:
    """The child fails with the writer's name, the tuner hears of it, and the rest goes on."""
    code, error = DAMAGES[damage]
    user.write("tuner_base.py", TUNER)
    user.write("tuner.py", INHERITS.format(damage=code))
    user.write("trial.py", LOADS)
    answer = user.run(
        maxTrialNumber=2, trialConcurrency=1, weightsRoot="root", trialEnvironment={"A": "1"}
    )
    assert answer.code == 0, answer
    row = user.ended()[1]
    assert row.reason is EndReason.FAILED
    assert error in row.text, row.text
    if error == "CorruptWeights":
        assert "written by" in row.text, row.text
        assert "0.1" in row.text, row.text
    assert user.heard() == ["result 0 0.0", "end 0 True", "end 1 False"]
    assert row.cpu_s < 5
