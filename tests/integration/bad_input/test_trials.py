"""Trials that misbehave: each ends with its own reason, and the experiment goes on."""

from __future__ import annotations

import signal
from typing import Any

import psutil
import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.trials import metrics
from tests.integration.bad_input.conftest import User
from tests.support.processes import wait_until


def _stderr(user: User, trial: int) -> str:
    return (user.lab / "trials" / str(trial) / "1" / "stderr").read_text()


def test_a_command_that_does_not_exist(user: User) -> None:
    """Seen before anything is made, where the first word tells."""
    answer = user.run(trialFunction=None, trialCommand="pyhton trial.py", reuse="none")
    assert answer.code == 3, answer
    assert "experiment.yml:13:" in answer.err
    assert "'pyhton'" in answer.err
    assert not user.kept.exists()


def test_a_command_that_turns_out_not_to_exist(user: User) -> None:
    """Where only bash can tell: each trial fails to start, with bash's own words."""
    answer = user.run(trialFunction=None, trialCommand="true && pyhton trial.py", reuse="none")
    assert answer.code == 3, answer  # nothing went well
    assert "could not start" in answer.out
    ended = user.ended()
    assert {row.reason for row in ended.values()} == {EndReason.START_FAILED}
    assert {row.exit_code for row in ended.values()} == {127}
    assert "pyhton" in ended[0].text, ended[0]
    assert sorted(user.heard()) == ["end 0 False", "end 1 False", "end 2 False"]
    assert "3 failed" in answer.out


def test_a_code_directory_that_is_missing(user: User) -> None:
    answer = user.run(trialCodeDirectory="cod")
    assert answer.code == 3, answer
    assert "experiment.yml:14:" in answer.err
    assert "trialCodeDirectory" in answer.err
    assert "cod" in answer.err
    assert not user.kept.exists()


def test_a_code_directory_that_is_huge(user: User) -> None:
    for number in range(30):
        user.write(f"data/{number}.bin", "x")
    answer = user.run(
        trialCodeDirectory=".",
        limits={"maxCodeFiles": 20},
        trainingService={"platform": "local", "codeSnapshot": True},
    )
    assert answer.code == 3, answer
    assert "20" in answer.err
    assert "Traceback" not in answer.err


NEEDS = """\
def main(parameters):
    import a_package_that_nobody_has
"""


def test_trials_that_all_fail_are_ended_explained_and_gone_on_with(user: User) -> None:
    """The cause is named where the user looks, and mending it is enough."""
    user.write("trial.py", NEEDS)
    answer = user.run(maxTrialNumber=30, maxFailedTrialsInARow=4)
    assert answer.code == 3, answer
    cause = "ModuleNotFoundError: No module named 'a_package_that_nobody_has'"
    assert "4 trials failed in a row with: failed (exit code 1): " + cause in answer.out
    assert "bequeath resume" in answer.out
    for command in ("why", "status"):
        assert cause in user.type(command, str(user.lab)).out
    assert len(user.ended()) <= 6
    user.write("trial.py", "def main(parameters):\n    return 1.0\n")
    again = user.type("resume", str(user.lab))
    assert again.code == 0, again
    assert "30 trials" in again.out
    user.assert_intact()


SILENT = "def main(parameters):\n    return None\n"


@pytest.mark.parametrize(
    "policy, heard",
    [
        ("ignore", ["end 0 True"]),
        ("fail", ["end 0 False"]),
        (0.25, ["result 0 0.25", "end 0 True"]),
    ],
)
def test_trials_that_never_report(user: User, policy: Any, heard: list[str]) -> None:
    user.write("trial.py", SILENT)
    answer = user.run(onTrialWithoutResult=policy, maxTrialNumber=1)
    assert answer.code == (3 if policy == "fail" else 0), answer
    assert user.heard() == heard


@pytest.mark.parametrize(
    "number", ["nan", *(pytest.param(each, marks=pytest.mark.extended) for each in ("inf", "-inf"))]
)
def test_trials_that_report_no_number(user: User, number: str) -> None:
    user.write("trial.py", f"def main(parameters):\n    return float('{number}')\n")
    answer = user.run(maxTrialNumber=1)
    assert answer.code == 3, answer  # nothing went well
    assert user.heard() == ["end 0 False"]
    row = user.ended()[0]
    assert row.reason is EndReason.FAILED
    assert "InvalidMetric" in row.text
    assert number.strip("-") in row.text
    assert "trial_runtime/" not in row.text, "the author's lines only"


TWICE = """\
import trial_runtime as bq


def main(parameters):
    bq.report_final(1.0)
    bq.report_final(2.0)
    bq.report_intermediate(3.0)
"""


@pytest.mark.parametrize("reuse", ["inProcess", pytest.param("none", marks=pytest.mark.extended)])
def test_trials_that_report_twice_and_after_the_final(user: User, reuse: str) -> None:
    """The first final counts; what comes later is recorded, said, and told to nobody."""
    user.write("trial.py", TWICE)
    answer = user.run(reuse=reuse, maxTrialNumber=1)
    assert answer.code == 0, answer
    assert user.heard() == ["result 0 1.0", "end 0 True"]
    assert "a second final result is recorded and does not count" in _stderr(user, 0)
    finals = [row.value for row in user.rows() if isinstance(row, e.FinalReported)]
    assert finals[0] == "1.0"


LOUD = """\
import os
import sys
import time

import trial_runtime as bq


def main(parameters):
    if parameters["n"] == 0:
        chunk = b"all work and no play makes a dull log\\n" * 27_000
        for _ in range(300):
            sys.stdout.buffer.write(chunk)
        sys.stdout.flush()
    return 1.0
"""


@pytest.mark.parametrize("reuse", ["none", pytest.param("inProcess", marks=pytest.mark.extended)])
def test_trials_that_print_300_megabytes(user: User, reuse: str) -> None:
    """Log files stay below their bound, and trials beside it go on meanwhile."""
    user.write("trial.py", LOUD)
    answer = user.run(reuse=reuse, maxTrialNumber=6, maxLogSize="2MiB", maxLogFiles=2)
    assert answer.code == 0, answer
    rows = [row for row in user.rows() if isinstance(row, e.AttemptEnded)]
    assert {row.reason for row in rows} == {EndReason.FINISHED}
    assert rows[-1].trial == 0 or rows[0].trial != 0, "the others did not wait for the loud one"
    files = list((user.lab / "trials" / "0" / "1").glob("stdout*"))
    assert len(files) <= 3
    assert sum(file.stat().st_size for file in files) <= 3 * (2 << 20)


LEAVES = """\
import os
from tests.support import hold


def main(parameters):
    mine = f"left-{os.getpid()}"
    if os.fork() == 0:
        os.setsid()
        if os.fork():
            os._exit(0)
        with open(mine + ".new", "w") as file:
            print(os.getpid(), file=file)
        os.rename(mine + ".new", mine)
        hold.for_ever()
        os._exit(0)
    hold.until(mine)
    return 1.0
"""


@pytest.mark.parametrize("reuse", ["forked", pytest.param("none", marks=pytest.mark.extended)])
def test_trials_that_fork_and_leave(user: User, reuse: str) -> None:
    """A daemon in a session of its own is found and ended all the same."""
    user.write("trial.py", LEAVES)
    answer = user.run(reuse=reuse, maxTrialNumber=2)
    assert answer.code == 0, answer
    pids = [int(file.read_text()) for file in user.folder.glob("left-*")]
    assert len(pids) == 2
    for pid in pids:
        wait_until(lambda pid=pid: _gone(pid), f"{pid} is gone")


DEAF = """\
import os
import signal
from tests.support import hold

import trial_runtime as bq


def main(parameters):
    for name in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        signal.signal(name, signal.SIG_IGN)
    bq.report_intermediate(0.5)
    while True:
        hold.for_ever()


if __name__ == "__main__":
    main(bq.get_parameters())
"""


@pytest.mark.parametrize("reuse", ["forked", pytest.param("none", marks=pytest.mark.extended)])
def test_trials_that_ignore_sigterm_and_exceed_their_time(user: User, reuse: str) -> None:
    user.write("trial.py", DEAF)
    answer = user.run(
        trialFunction=None if reuse == "none" else "trial:main",
        trialCommand="exec python trial.py" if reuse == "none" else None,
        reuse=reuse,
        maxTrialNumber=1,
        maxTrialDuration="5s",  # by then it is deaf
        trialStopGrace="300ms",
    )
    assert answer.code == 3, answer  # nothing went well
    row = user.ended()[0]
    assert row.reason is EndReason.TIMED_OUT
    assert row.signal == signal.SIGKILL
    assert user.heard() == ["end 0 False"]
    assert "longer than its maxTrialDuration of 5 s" in row.text


def test_a_function_in_process_that_exceeds_its_time(user: User) -> None:
    """Its worker goes with it, and the next trial has a new one."""
    user.write(
        "trial.py",
        "def main(parameters):\n    while parameters['n'] == 0:\n        pass\n    return 1.0\n",
    )
    answer = user.run(
        maxTrialDuration="5s", trialStopGrace="300ms", maxTrialNumber=3, trialConcurrency=1
    )
    assert answer.code == 0, answer
    reasons = [user.ended()[trial].reason for trial in range(3)]
    assert reasons == [EndReason.TIMED_OUT, EndReason.FINISHED, EndReason.FINISHED]


def test_metrics_without_end_are_not_kept(user: User) -> None:
    user.write(
        "trial.py",
        "import trial_runtime as bq\n\n\ndef main(parameters):\n"
        "    for step in range(100):\n        bq.report_intermediate(step)\n    return 1.0\n",
    )
    answer = user.run(maxTrialNumber=1, limits={"maxMetricsPerTrial": 10})
    # A trial that is still reporting when the refusal reaches it fails by it; one that is
    # quicker has its result. Either way no more is kept than the file allows.
    row = user.ended()[0]
    assert answer.code == (3 if row.reason is EndReason.FAILED else 0), answer
    if row.reason is EndReason.FAILED:
        assert "ReportRefused" in row.text
        assert user.heard() == ["end 0 False"]
    else:
        assert user.heard() == ["result 0 1.0", "end 0 True"]
    with ExperimentReader.open(user.lab) as reader:
        assert len(metrics(reader, 0)) <= 11  # ten, and the final


def test_a_metric_that_is_too_large(user: User) -> None:
    user.write(
        "trial.py",
        "def main(parameters):\n    return {'default': 1.0, 'notes': 'x' * 100_000}\n",
    )
    answer = user.run(maxTrialNumber=1)
    assert answer.code == 3, answer  # nothing went well
    assert "the only trial failed with: failed (exit code 1): " in answer.out
    assert user.ended()[0].reason is EndReason.FAILED
    assert "InvalidMetric" in user.ended()[0].text


def _gone(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True
