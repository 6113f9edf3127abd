"""Ctrl-C once and twice, and SIGKILL for the head a user leads: resume goes on from each."""

from __future__ import annotations

import signal

import pytest

from dispatcher.core import events as e
from tests.integration.bad_input.conftest import TUNER, User
from tests.support.processes import processes_of, wait_until

INHERITING = TUNER.replace(
    '        return {"n": parameter_id}\n',
    '        parameters = {"n": parameter_id, "save_path": self.save_path(parameter_id)}\n'
    "        if parameter_id >= 2:\n"
    "            self.wait_for(parameter_id - 2)\n"
    '            parameters["restore_path"] = self.save_path(parameter_id - 2)\n'
    "        return parameters\n",
)

HELD = """\
import os
from tests.support import hold

import numpy as np

import trial_runtime as bq


def main(parameters):
    depth = np.zeros(1)
    if "restore_path" in parameters:
        bq.load_weights(into={"depth": depth})
    bq.report_intermediate(0.0)
    if parameters["n"] >= 2:
        hold.until(lambda: os.path.exists("go") or bq.should_stop())
        if bq.should_stop():
            return None
    bq.save_weights({"depth": depth + 1})
    return float(depth[0] + 1)
"""


@pytest.mark.parametrize("how", ["once", "twice", "kill", "kill and no grace"])
def test_what_is_interrupted_is_resumed(user: User, how: str) -> None:
    """Trials 0 and 1 are over, their children run, grandchildren wait: nothing is lost, nothing
    is told twice, and every child has its parent's weights."""
    user.write("tuner.py", INHERITING)
    user.write("trial.py", HELD)
    grace = "0s" if how == "kill and no grace" else "30s"
    leader = user.start("run", user.experiment(maxTrialNumber=6, headGrace=grace))

    def children_run() -> bool:
        seen = user.snapshot()
        return seen.get("ended") == 2 and len(seen["running"]) == 2

    wait_until(children_run, "the children run")
    if how in ("once", "twice"):
        leader.send_signal(signal.SIGINT)
        wait_until(lambda: user.snapshot().get("phase") == "draining", "draining")
        if how == "twice":
            leader.send_signal(signal.SIGINT)
        else:
            user.write("go", "")
        answer = user.finish(leader)
        assert answer.code == 130, answer
        assert "bequeath resume" in answer.said
        user.assert_intact()
    else:
        leader.kill()
        leader.wait()
        if how == "kill and no grace":
            wait_until(lambda: processes_of(user.lab) == [], "nothing is left")
    ended = user.ended()
    assert sorted(ended)[:2] == [0, 1]
    user.write("go", "")
    resumed = user.type("resume", str(user.lab))
    assert resumed.code == 0, resumed
    user.assert_intact()
    finals = {row.trial: row.value for row in user.rows() if isinstance(row, e.FinalReported)}
    assert finals == {0: "1.0", 1: "1.0", 2: "2.0", 3: "2.0", 4: "3.0", 5: "3.0"}
    delivered = [row.trial for row in user.rows() if isinstance(row, e.ResultDelivered)]
    assert sorted(delivered) == [0, 1, 2, 3, 4, 5]
