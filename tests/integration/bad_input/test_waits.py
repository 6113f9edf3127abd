"""Parents that cannot bequeath, and waits that cannot end."""

from __future__ import annotations

import re

import pytest

from dispatcher.core import events as e
from tests.integration.bad_input.conftest import User
from tests.support.lengths import first
from tests.support.processes import wait_until

WAITS = """\
import threading

from tuners import Tuner


class Plain(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        if parameter_id in {waiting}:
            try:
                self.wait_for({parent})
            except Exception as error:
                note("raised", parameter_id, type(error).__name__, error)
                {then}
        return {{"n": parameter_id}}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        note("result", parameter_id, value)

    def trial_end(self, parameter_id, success, **kwargs):
        note("end", parameter_id, success)


def note(*words):
    with open("heard.txt", "a") as file:
        print(*(" ".join(str(word).split()) for word in words), file=file)
"""

FIRST_IS_BAD = """\
import os
from tests.support import hold


def main(parameters):
    if parameters["n"] == 0:
        {deed}
    return 1.0
"""


def _raised(user: User) -> list[str]:
    return sorted(line for line in user.heard() if line.startswith("raised"))


@pytest.mark.parametrize(
    "deed, keys, word",
    first(
        1,
        [
            ("raise ValueError('as planned')", {}, "failed"),
            ("hold.for_ever()", {"maxTrialDuration": "5s", "trialStopGrace": 0}, "timed out"),
            ("os._exit(0)", {"onTrialWithoutResult": "fail"}, "failed"),
        ],
    ),
    ids=["raises", "times-out", "leaves"],
)
def test_children_of_a_parent_that_fails(
    user: User, deed: str, keys: dict[str, object], word: str
) -> None:
    user.write("tuner.py", WAITS.format(waiting="(1, 2)", parent=0, then="pass"))
    user.write("trial.py", FIRST_IS_BAD.format(deed=deed))
    answer = user.run(maxTrialNumber=3, **keys)
    assert answer.code == 0, answer
    first, second = _raised(user)
    assert first.startswith("raised 1 ParentFailed")
    assert second.startswith("raised 2 ParentFailed")
    assert "trial 0" in first
    assert word in first
    assert "end 0 False" in user.heard()
    assert "result 1 1.0" in user.heard()


def test_children_of_a_parent_that_a_user_kills(user: User) -> None:
    user.write("tuner.py", WAITS.format(waiting="(1, 2)", parent=0, then="pass"))
    user.write("trial.py", FIRST_IS_BAD.format(deed="hold.for_ever()"))
    running = user.start("run", user.experiment(maxTrialNumber=3))
    wait_until(lambda: len(user.snapshot().get("running", ())) == 1, "the parent runs")
    killed = user.type("trial", "kill", "0", "--folder", str(user.kept))
    assert killed.code == 0, killed
    answer = user.finish(running)
    assert answer.code == 0, answer
    user.assert_intact()
    assert [line.split()[2] for line in _raised(user)] == ["ParentFailed"] * 2
    assert "killed" in _raised(user)[0]


@pytest.mark.parametrize(
    "waiting, parent, error, words",
    first(
        1,
        [
            ("(0, 1, 2)", "(parameter_id + 1) % 3", "CycleRefused", ["0", "1", "2"]),
            ("(1,)", "parameter_id", "SelfWait", ["1"]),
            ("(1,)", "999", "UnknownParent", ["999"]),
        ],
    ),
    ids=["cycle", "self", "unknown"],
)
def test_waits_that_are_refused(
    user: User, waiting: str, parent: str, error: str, words: list[str]
) -> None:
    user.write("tuner.py", WAITS.format(waiting=waiting, parent=parent, then="pass"))
    answer = user.run(maxTrialNumber=4, trialConcurrency=4)
    assert answer.code == 0, answer
    raised = _raised(user)
    assert raised, "the wait was refused"
    assert raised[0].split()[2] == error
    for word in words:
        assert word in raised[0]
    if error == "CycleRefused":
        assert len([line for line in raised if error in line]) == 1
        assert re.search(r"(\d) .*(\d) .*(\d) .*\1", raised[0]), "the cycle closes"


def test_a_parent_that_fails_and_is_not_caught(user: User) -> None:
    """The request is abandoned: no tuner error, its place is given back."""
    user.write("tuner.py", WAITS.format(waiting="(1,)", parent=0, then="raise"))
    user.write("trial.py", FIRST_IS_BAD.format(deed="raise ValueError('as planned')"))
    answer = user.run(maxTrialNumber=3)
    assert answer.code == 0, answer
    assert "tuner error" not in answer.said
    proposed = {row.trial for row in user.rows() if isinstance(row, e.Proposed)}
    assert proposed == {0, 2, 3}


def test_single_threaded_tuners_cannot_wait(user: User) -> None:
    user.write("tuner.py", WAITS.format(waiting="(1,)", parent=0, then="raise"))
    answer = user.run(multiThread=False)
    assert answer.code == 3, answer
    assert "multiThread" in answer.said
    assert "WaitNotAllowed" in answer.said
    assert "dispatcher/" not in answer.said


DEADLOCK = """\
from tuners import Tuner


class Plain(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        self.wait_for(parameter_id + 1) if parameter_id < 7 else self.wait_for_nothing()
        return {}

    def wait_for_nothing(self):
        import threading

        threading.Event().wait()

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""


def test_a_stall_is_named_with_its_stacks(user: User) -> None:
    """Up to seven wait for one another through us, as many as ask after the next one was asked
    for; the others on Events of their own."""
    user.write("tuner.py", DEADLOCK)
    answer = user.run(stallTimeout="3s", trialConcurrency=2, lookahead=8, maxTrialNumber=20)
    assert answer.code == 3, answer
    assert "stall" in answer.said
    assert re.search(
        r"(request \d+|\d+ requests) stands? in `threading\.Event\(\)\.wait\(\)` at tuner\.py:12",
        answer.said,
    )
    assert "Stacks: reports/stall.txt" in user.type("why", str(user.lab)).out
    report = (user.lab / "reports" / "stall.txt").read_text()
    assert re.search(r"requests? 7", report)
    assert "wait_for_nothing" in report
    assert "threading.Event().wait()" in report
    again = user.type("resume", str(user.lab))
    assert again.code == 3, again
    user.assert_intact()


def test_waits_for_what_is_not_open_yet(user: User) -> None:
    """Each request waits for the next one: the last of them for one that the lookahead does not
    let open. That is refused, and the chain falls; no deadlock can come of it."""
    user.write(
        "tuner.py",
        DEADLOCK.replace(
            "self.wait_for(parameter_id + 1) if parameter_id < 7 else self.wait_for_nothing()",
            "self.wait_for(parameter_id + 1)",
        ),
    )
    answer = user.run(lookahead=3, maxTrialNumber=20)
    assert answer.code == 3, answer
    assert "requests failed with their parents, and nothing runs" in answer.said, answer


def test_waiters_for_one_that_is_never_proposed_do_not_hang(user: User) -> None:
    """Request 0 has no more trials, and the others wait for it: nothing could ever move."""
    user.write(
        "tuner.py",
        "import tuners\n\n\nclass Plain(tuners.Tuner):\n"
        "    def generate_parameters(self, parameter_id):\n"
        "        if parameter_id == 0:\n            raise tuners.NoMoreTrialError('not now')\n"
        "        self.wait_for(0)\n        return {}\n\n"
        "    def receive_trial_result(self, parameter_id, parameters, value):\n        pass\n",
    )
    answer = user.run(trialConcurrency=2, lookahead=8, maxTrialNumber=20)
    assert answer.code == 3, answer
    assert "requests failed with their parents, and nothing runs" in answer.out
    user.assert_intact()


CHAIN = """\
import threading

from tuners import Tuner


class Plain(Tuner):
    def __init__(self):
        super().__init__()
        self.over = {}

    def generate_parameters(self, parameter_id, **kwargs):
        self.over[parameter_id] = threading.Event()
        before = self.over.get(parameter_id - 1)
        if before is not None:
            before.wait()
        return {"n": parameter_id}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        note("result", parameter_id, value)

    def trial_end(self, parameter_id, success, **kwargs):
        note("end", parameter_id, success)
        self.over[parameter_id].set()


def note(*words):
    with open("heard.txt", "a") as file:
        print(*words, file=file)
"""

FIRST_WAITS = """\
import os
import pathlib
from tests.support import hold


def main(parameters):
    if parameters["n"] == 0:
        hold.until(os.path.join(os.environ["HERE"], "go"))
    return 1.0
"""


def test_those_who_wait_for_a_killed_request_in_their_own_way_hear_of_it(user: User) -> None:
    user.write("tuner.py", CHAIN)
    user.write("trial.py", FIRST_WAITS)
    head = user.start("run", user.experiment(maxTrialNumber=3, stallTimeout="60s"))
    user.wait_until_running()
    wait_until(lambda: len(user.snapshot().get("waiting", ())) >= 2, "two requests that wait")
    killed = user.type("trial", "kill", "1", "-e", str(user.lab))
    assert killed.code == 0, killed
    user.write("go", "")
    answer = user.finish(head)
    assert answer.code == 0, answer.said
    assert user.heard().count("end 1 False") == 1
    assert {"result 0 1.0", "result 2 1.0", "result 3 1.0"} <= set(user.heard())
    user.assert_intact()
    # A tuner that is rebuilt from the journal has heard the same.
    (user.folder / "heard.txt").unlink()
    updated = user.type("experiment", "update", "maxTrialNumber", "4", "-e", str(user.lab))
    assert updated.code == 0, updated
    again = user.type("resume", str(user.lab))
    assert again.code == 0, again.said
    assert user.heard().count("end 1 False") == 1
    assert "result 4 1.0" in user.heard()
