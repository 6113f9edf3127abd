"""Fresh processes: commands and functions."""

from __future__ import annotations

import sys

from trial_runtime import facts
from trial_runtime.facts import EndReason

TRAIN = """
import trial_runtime as t
p = t.get_parameters()
for step in range(3):
    t.report_intermediate(step / 10)
t.report_final({"default": p["lr"], "loss": 1})
print("trained", t.trial_id(), t.attempt())
"""


def test_a_command_gets_parameters_and_reports(head_with):
    head = head_with(command=f"{sys.executable} train.py")
    head.script(TRAIN)
    end = head.run(7, 2, parameters={"lr": 0.5})
    assert (end.reason, end.exit_code) == (EndReason.FINISHED, 0), end
    assert head.metrics(7, 2) == [0.0, 0.1, 0.2]
    assert head.finals(7, 2) == [{"default": 0.5, "loss": 1}]
    assert head.output(7, 2) == "trained 7 2\n"
    assert type(head.words[0]) is facts.AttemptStarted
    assert type(head.words[-1]) is facts.AttemptEnded


def test_a_function_returns_its_result(head_with):
    head = head_with(function="train:main")
    head.script("def main(params):\n    print('in', params['x'])\n    return params['x'] * 2\n")
    end = head.run(1, parameters={"x": 21})
    assert end.reason == EndReason.FINISHED, end
    assert head.finals(1) == [42]
    assert head.output(1) == "in 21\n"
