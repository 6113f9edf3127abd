"""Tuners that raise, crash, hog the interpreter, hang, or live beside files named like ours."""

from __future__ import annotations

import time

import pytest

from dispatcher.core import events as e
from tests.integration.bad_input.conftest import TUNER, User
from tests.support.processes import processes_of, wait_until

RAISES = """\
from tuners import Tuner


class Plain(Tuner):
    def update_search_space(self, search_space):
        self.maybe("update_search_space", 1)

    def generate_parameters(self, parameter_id, **kwargs):
        self.maybe("generate_parameters", parameter_id)
        return {"n": parameter_id}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        note("result", parameter_id, value)
        self.maybe("receive_trial_result", parameter_id)

    def trial_end(self, parameter_id, success, **kwargs):
        note("end", parameter_id, success)
        self.maybe("trial_end", parameter_id)

    def _on_exit(self):
        self.maybe("_on_exit", 1)

    def maybe(self, method, parameter_id):
        if method == METHOD and parameter_id == 1:
            raise RuntimeError(f"no {method} today")


def note(*words):
    with open("heard.txt", "a") as file:
        print(*words, file=file)
"""


@pytest.mark.parametrize(
    "method", ["generate_parameters", "receive_trial_result", "trial_end", "update_search_space"]
)
@pytest.mark.parametrize(
    "policy", ["fail", "retry", pytest.param("continue", marks=pytest.mark.extended)]
)
def test_a_tuner_that_raises(user: User, method: str, policy: str) -> None:
    """The policy decides; the traceback shows the author's lines; what was told counts as told."""
    user.write("tuner.py", f"METHOD = {method!r}\n{RAISES}")
    answer = user.run(onTunerError=policy, maxTrialNumber=4)
    assert f"no {method} today" in answer.said, answer.said
    assert "dispatcher/" not in answer.said
    if method == "update_search_space" or policy == "fail":
        assert answer.code == 3, answer
    else:
        assert answer.code == 0, answer
        proposed = {row.trial for row in user.rows() if isinstance(row, e.Proposed)}
        assert len(proposed) == 4
        ends = [line.split()[1] for line in user.heard() if line.startswith("end")]
        assert sorted(map(int, ends)) == sorted(proposed)
    told = [line for line in user.heard() if line.startswith("result")]
    assert len(told) == len(set(told)), "nothing is told twice"


def test_a_tuner_that_raises_when_it_leaves(user: User) -> None:
    user.write("tuner.py", f"METHOD = '_on_exit'\n{RAISES}")
    answer = user.run()
    assert answer.code == 0, answer
    assert "no _on_exit today" in (user.lab / "logs" / "tuner.log").read_text()


WAITING = """\
from tests.support import hold


def main(parameters):
    if parameters["n"] < 2:
        hold.until("go")
    return 1.0
"""

CONDUCT = TUNER.replace(
    "    def generate_parameters(self, parameter_id, **kwargs):\n",
    "    def generate_parameters(self, parameter_id, **kwargs):\n"
    "        import os, time\n"
    "        if parameter_id == 2 and not os.path.exists('done'):\n"
    "            open('done', 'w').close()\n"
    "            {deed}\n",
)


def _submit_third(user: User) -> None:
    """A slot more: the tuner is asked for trial 2 while 0 and 1 run."""
    asked = user.type("experiment", "update", "trialConcurrency", "3", "--folder", str(user.kept))
    assert asked.code == 0, asked


@pytest.mark.parametrize(
    "deed, lost",
    [
        ("import ctypes; ctypes.string_at(0)", True),
        ("os._exit(9)", True),
        ("sum(range(60_000_000))", False),
    ],
    ids=["segfault", "exit", "hog"],
)
def test_trials_are_unharmed_by_their_tuner(user: User, deed: str, lost: bool) -> None:
    user.write("tuner.py", CONDUCT.replace("{deed}", deed))
    user.write("trial.py", WAITING)
    running = user.start("run", user.experiment(maxTrialNumber=5))
    user.wait_until_running(2)
    _submit_third(user)
    wait_until(lambda: (user.folder / "done").exists(), "the tuner did it")
    if lost:
        wait_until(
            lambda: [row for row in user.rows() if isinstance(row, e.TunerHostLost)], "noticed"
        )
    user.write("go", "")
    answer = user.finish(running)
    assert answer.code == 0, answer
    user.assert_intact()
    rows = user.rows()
    assert len([row for row in rows if isinstance(row, e.TunerHostLost)]) == int(lost)
    attempts = [row for row in rows if isinstance(row, e.AttemptEnded)]
    assert {row.attempt for row in attempts} == {1}, "no trial was run again"
    assert len(attempts) == 5


def test_a_tuner_that_always_crashes(user: User) -> None:
    """Started again a few times, then given up with its last words."""
    user.write(
        "tuner.py",
        TUNER.replace(
            "        return {",
            "        import os\n        print('farewell', flush=True)\n        os._exit(9)\n"
            "        return {",
        ),
    )
    answer = user.run()
    assert answer.code == 3, answer
    assert "exited with code 9" in answer.said
    assert "farewell" in answer.said


MANY = """\
import threading

from tuners import Tuner

never = threading.Event()


class Plain(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        if parameter_id:
            never.wait()
        return {"n": parameter_id}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        for _ in range(10_000):
            threading.Thread(target=never.wait, daemon=False).start()
        open("all-there", "w").close()
"""

#: For a machine that is busy, beyond what is promised; without the promise it takes for ever.
PATIENCE_S = 30.0

FAR = {"lookahead": 1000, "maxTrialNumber": 2000, "onStall": "wait", "stallTimeout": "1h"}


@pytest.mark.extended
def test_ten_thousand_threads_on_a_foreign_event_stop_in_seconds(user: User) -> None:
    user.write("tuner.py", MANY)
    running = user.start("run", user.experiment(**FAR))
    wait_until(lambda: (user.folder / "all-there").exists(), "ten thousand threads", 200)
    began = time.monotonic()
    stopped = user.type("stop", "--folder", str(user.kept))
    took = time.monotonic() - began
    assert stopped.code == 0, stopped
    assert user.finish(running).code == 6
    assert took < 10 + PATIENCE_S, "ten seconds are promised, and the command has to start"
    user.assert_intact()


NOTEBOOK = """\
import sys, time
from tests.support import hold

from dispatcher import Experiment

experiment = Experiment("experiment.yml")
experiment.start()
hold.until("all-there")
began = time.monotonic()
experiment.stop()
print("stopped in", round(time.monotonic() - began, 1))
"""


@pytest.mark.extended
def test_the_same_from_a_notebook(user: User) -> None:
    user.write("tuner.py", MANY)
    user.write("cell.py", NOTEBOOK)
    user.experiment(**FAR)
    answer = user.type("python", "cell.py")
    assert answer.code == 0, answer
    assert float(answer.out.split()[-1]) < 10 + PATIENCE_S
    wait_until(lambda: processes_of(user.folder) == [], "nothing is left")
    user.assert_intact()


def test_a_code_folder_with_names_like_ours(user: User) -> None:
    """Its own ``tuners/``, ``dispatcher.py`` and ``store.py`` are the author's; ours are ours."""
    user.write("tuners/__init__.py", "FACTOR = 3\n")
    user.write("tuners/shapes.py", "from tuners import FACTOR\n\nSHAPE = [FACTOR]\n")
    user.write("dispatcher.py", "def pick():\n    return 7\n")
    user.write(
        "tuner.py",
        "from dispatcher import pick\nfrom tuners.shapes import SHAPE\n\n\n"
        "class Plain:\n"
        "    def update_search_space(self, search_space):\n        pass\n\n"
        "    def generate_parameters(self, parameter_id, **kwargs):\n"
        "        return {'n': pick() * SHAPE[0]}\n\n"
        "    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):\n"
        "        with open('heard.txt', 'a') as file:\n            print(value, file=file)\n",
    )
    user.write(
        "trial.py",
        "from dispatcher import pick\nfrom tuners.shapes import SHAPE\n\n"
        "import trial_runtime as bq\n\n\n"
        "def main(parameters):\n    bq.report_final(parameters['n'] + pick() + SHAPE[0])\n",
    )
    answer = user.run(maxTrialNumber=1)
    assert answer.code == 0, answer
    made = user.type("create", user.experiment(reuse="none", maxTrialNumber=1))
    assert made.code == 0, made
    wait_until(lambda: len(user.heard()) == 2 and not processes_of(user.lab), "it is over")
    assert [float(line) for line in user.heard()] == [31.0, 31.0]
