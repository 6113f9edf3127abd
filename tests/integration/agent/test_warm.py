"""Warm workers: forked from a server, and functions one after another in a process."""

from __future__ import annotations

import sys

import pytest

from tests.integration.agent.fake_head import PATIENCE_S
from tests.support.workers import LOCAL
from trial_runtime import facts
from trial_runtime.facts import EndReason

FUNCTION = """
import os
import trial_runtime as t
calls = 0
def main(params):
    global calls
    calls += 1
    t.report_intermediate(calls)
    print("pid", os.getpid())
    os.system("echo from a child; echo complaint >&2")
    if params.get("fail"):
        raise ValueError("no luck")
    if params.get("exit") is not None:
        raise SystemExit(params["exit"])
    if params.get("report"):
        t.report_final({"default": params["report"]})
    return params["x"]
"""


@pytest.mark.parametrize("reuse", ["forked", "inProcess"])
def test_functions_run_one_after_another(head_with, reuse):
    head = head_with(function="train:main", reuse=reuse, preload=("json",))
    head.script(FUNCTION)
    for trial in range(1, 6):
        end = head.run(trial, parameters={"x": trial * 1.5})
        assert (end.reason, end.exit_code) == (EndReason.FINISHED, 0), end
        assert head.finals(trial) == [trial * 1.5]
        lines = head.output(trial).splitlines()
        assert lines[1] == "from a child" or lines[0] == "from a child"
        assert head.output(trial, stream="stderr") == "complaint\n"
    pids = {head.output(t).partition("pid ")[2].split()[0] for t in range(1, 6)}
    calls = [head.metrics(t)[0] for t in range(1, 6)]
    if reuse == "inProcess":
        assert len(pids) == 1
        assert calls == [1, 2, 3, 4, 5]
    else:
        assert len(pids) == 5
        assert calls == [1] * 5


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_exceptions_and_exit_codes(head_with, reuse):
    head = head_with(function="train:main", reuse=reuse)
    head.script(FUNCTION)
    end = head.run(1, parameters={"x": 1, "fail": True})
    assert (end.reason, end.exit_code) == (EndReason.FAILED, 1)
    assert end.text.splitlines()[-1] == "ValueError: no luck"
    assert "trial_runtime" not in end.text
    assert "ValueError: no luck" in head.output(1, stream="stderr")
    end = head.run(2, parameters={"x": 1, "exit": 7})
    assert (end.reason, end.exit_code) == (EndReason.FAILED, 7)
    end = head.run(3, parameters={"x": 1, "exit": 0})
    assert (end.reason, end.exit_code) == (EndReason.FINISHED, 0)
    assert head.finals(3) == []
    end = head.run(4, parameters={"x": 1, "report": 9})
    assert head.finals(4) == [{"default": 9}]


def test_a_module_that_does_not_import_fails_its_trials_only(head_with):
    head = head_with(function="nowhere:main", reuse="inProcess")
    for trial in (1, 2):
        end = head.run(trial)
        assert end.reason == EndReason.FAILED
        assert "No module named 'nowhere'" in end.text


def test_a_worker_is_replaced_after_its_share(head_with):
    head = head_with(function="train:main", reuse="inProcess", max_trials_per_worker=2)
    head.script(FUNCTION)
    calls = []
    for trial in range(1, 6):
        assert head.run(trial, parameters={"x": 1}).reason == EndReason.FINISHED
        calls += head.metrics(trial)
    assert calls == [1, 2, 1, 2, 1]


def test_a_worker_that_was_sent_a_signal_runs_nothing_more(head_with):
    """It may be on its way out: the next trial would end by a signal that was not for it.
    Mutation: a worker whose function returned all the same is used again."""
    head = head_with(function="train:main", reuse="inProcess", slots=1)
    head.script(
        "import os, signal, trial_runtime as t\nfrom tests.support import hold\n"
        "def main(p):\n"
        "    seen = []\n"
        "    signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))\n"
        "    t.report_intermediate(os.getpid())\n"
        "    if p.get('waits'): hold.until(lambda: seen)\n"
        "    return 5\n"
    )
    head.until(lambda: head.life, "hello")
    head.start(1, parameters={"waits": True})
    head.until(lambda: head.metrics(1), "its first metric")
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.STOPPED_EARLY, 60.0))
    assert (head.end_of(1).reason, head.end_of(1).exit_code) == ("stopped early", 0)
    assert head.run(2).reason == EndReason.FINISHED
    assert head.metrics(2) != head.metrics(1)
    assert head.run(3).reason == EndReason.FINISHED
    assert head.metrics(3) == head.metrics(2)


def test_a_stop_is_heeded_by_the_trial_that_it_was_for_and_by_no_other(head_with):
    """Mutation: what a worker was told while one trial ran holds for the next one as well."""
    head = head_with(function="train:main", reuse="inProcess", slots=1)
    head.script(
        "import os, trial_runtime as t\nfrom tests.support import hold\n"
        "def main(p):\n"
        "    t.report_intermediate({'default': os.getpid(), 'heeds': t.should_stop()})\n"
        "    if p.get('waits'): hold.until(t.should_stop)\n"
        "    return 5\n"
    )
    head.until(lambda: head.life, "hello")
    for trial in (1, 3):
        head.start(trial, parameters={"waits": True})
        head.until(lambda trial=trial: head.metrics(trial), "its first metric")
        # No signal comes before a part of the grace is over: a trial that heeds keeps its worker.
        head.send(facts.StopAttempt(LOCAL, trial, 1, EndReason.STOPPED_EARLY, 10 * PATIENCE_S))
        assert (head.end_of(trial).reason, head.end_of(trial).exit_code) == ("stopped early", 0)
        assert head.run(trial + 1).reason == EndReason.FINISHED
    told = [head.metrics(trial)[0] for trial in range(1, 5)]
    assert [each["heeds"] for each in told] == [False] * 4
    assert len({each["default"] for each in told}) == 1, "one worker ran them all"


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_nnis_functions_speak_for_the_trial_that_calls_them(head_with, reuse):
    """Mutation: they take a warm worker for a script that is run by hand, and print its results; or
    they know the parameters of the trial before."""
    head = head_with(function="train:main", reuse=reuse, slots=1, nni=True)
    head.script(
        "import nni\n"
        "def main(params):\n"
        "    assert nni.get_current_parameter() is None\n"
        "    assert nni.get_next_parameter() == params == nni.get_current_parameter()\n"
        "    assert nni.get_next_parameter() is None\n"
        "    assert nni.get_current_parameter('x') == params['x']\n"
        "    assert int(nni.get_trial_id()) == nni.get_sequence_id() == params['x']\n"
        "    nni.report_intermediate_result(params['x'] / 2)\n"
        "    nni.report_final_result(params['x'])\n"
    )
    for trial in (1, 2, 3):
        end = head.run(trial, parameters={"x": trial})
        assert (end.reason, end.text) == (EndReason.FINISHED, "")
        assert (head.metrics(trial), head.finals(trial)) == ([trial / 2], [trial])
        assert head.output(trial) == ""


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
@pytest.mark.parametrize("what", ["function", "command"])
def test_a_trial_of_nnis_finds_its_own_folder_around_it(head_with, reuse, what):
    """Mutation: only in a process that was made for it from the start."""
    runs = {"function": "train:main", "command": "python train.py"}
    head = head_with(**{what: runs[what]}, reuse=reuse, slots=1, nni=True)
    head.script(
        "import json, os, nni\n"
        "def main(params=None):\n"
        "    folder = os.environ['NNI_OUTPUT_DIR']\n"
        "    assert folder == os.environ['NNI_SYS_DIR'] and os.path.isdir(folder + '/.nni')\n"
        "    told = json.load(open(folder + '/parameter.cfg'))\n"
        "    assert told['parameters'] == nni.get_next_parameter()\n"
        "    number = os.environ['NNI_TRIAL_JOB_ID']\n"
        "    assert number == nni.get_trial_id() == str(told['parameter_id'])\n"
        "    assert os.environ['NNI_TRIAL_SEQ_ID'] == nni.get_trial_id()\n"
        "    open(folder + '/mine', 'w').write(nni.get_trial_id())\n"
        "if __name__ == '__main__': main()\n"
    )
    for trial in (1, 2):
        end = head.run(trial, parameters={"x": trial})
        assert end.reason == EndReason.FINISHED, end.text + head.output(trial, stream="stderr")
        assert (head.folder / "trials" / str(trial) / "1" / "mine").read_text() == str(trial)


def test_a_worker_that_dies_is_replaced(head_with):
    head = head_with(function="train:main", reuse="inProcess")
    head.script("import os, signal\ndef main(p):\n    if p: os.kill(os.getpid(), 11)\n    return 1")
    end = head.run(1, parameters={"x": 1})
    assert (end.reason, end.signal) == (EndReason.SIGNALLED, 11)
    assert head.run(2).reason == EndReason.FINISHED


def test_a_script_is_run_by_the_fork_server(head_with):
    head = head_with(command="python train.py --width 3", reuse="forked")
    head.script(
        "import sys, os, trial_runtime as t\n"
        "assert __name__ == '__main__'\n"
        "print(sys.argv, os.environ.get('PYTHONMALLOC'), os.environ.get('GLIBC_TUNABLES'))\n"
        "t.report_final(t.get_parameters()['x'])\n"
        "sys.exit(3)\n"
    )
    end = head.run(1, parameters={"x": 4})
    assert (end.reason, end.exit_code) == (EndReason.FAILED, 3)
    assert head.finals(1) == [4]
    assert head.output(1) == "['train.py', '--width', '3'] None None\n"


def test_children_of_one_server_draw_different_numbers(head_with):
    pytest.importorskip("numpy")
    head = head_with(function="train:main", reuse="forked", preload=("numpy",))
    head.script("import numpy, random\ndef main(p): return numpy.random.rand() + random.random()\n")
    for trial in (1, 2):
        head.run(trial)
    assert head.finals(1) != head.finals(2)


def test_a_preload_that_fails_is_named(head_with):
    head = head_with(function="train:main", reuse="forked", preload=("no_such_module",))
    head.script(FUNCTION)
    end = head.run(1, parameters={"x": 1})
    assert end.reason in (EndReason.FAILED, EndReason.START_FAILED)
    assert "no_such_module" in end.text


#: More than a socket to the fork server holds, while that takes nothing.
MANY = 400

SLOWLY = """
import os
from tests.support import hold
hold.until("go")
"""


def _start_many(head) -> None:
    head.until(lambda: head.life, "hello")
    for trial in range(MANY):
        head.start(trial, parameters={"x": trial})

    def taken():
        ended = sum(isinstance(word, facts.AttemptEnded) for word in head.words)
        return head.heartbeats and head.heartbeats[-1].running + ended >= MANY

    head.until(taken, "an agent that has all orders")


def test_starts_that_come_while_the_server_imports_wait_for_it(head_with):
    """Mutation: what the socket does not hold counts as an error of the trial."""
    head = head_with(function="train:main", reuse="forked", preload=("slow",), slots=MANY)
    head.script(SLOWLY, "slow.py")
    head.script("def main(p): return p['x']\n")
    _start_many(head)
    stopped = MANY - 1
    head.send(facts.StopAttempt(LOCAL, stopped, 1, EndReason.KILLED, 60.0))
    assert head.end_of(stopped).reason == "killed by the user"
    head.script("", "go")
    ends = {trial: head.end_of(trial) for trial in range(stopped)}
    assert {end.reason for end in ends.values()} == {EndReason.FINISHED}, ends
    assert [head.finals(trial) for trial in range(stopped)] == [[n] for n in range(stopped)]
    assert head.finals(stopped) == []


def test_starts_that_wait_for_a_server_that_fails_fail_with_it(head_with):
    head = head_with(function="train:main", reuse="forked", preload=("slow",), slots=MANY)
    head.script(f"{SLOWLY}raise RuntimeError('no such data')\n", "slow.py")
    _start_many(head)
    head.script("", "go")
    for trial in range(MANY):
        assert "no such data" in head.end_of(trial).text


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_the_users_own_names_do_not_collide(head_with, reuse):
    head = head_with(function="train:main", reuse=reuse)
    for name in ("dispatcher", "msgspec", "zmq"):
        head.script(f"mine = {name!r}\n", f"{name}.py")
    (head.code / "tuners").mkdir()
    head.script("mine = 'tuners'\n", "tuners/__init__.py")
    head.script(
        "import dispatcher, tuners, trial_runtime\n"
        "def main(p):\n"
        "    trial_runtime.report_intermediate(1)\n"
        "    assert (dispatcher.mine, tuners.mine) == ('dispatcher', 'tuners')\n"
        "    return 5\n"
    )
    end = head.run(1)
    assert end.reason == EndReason.FINISHED, end
    assert head.finals(1) == [5]


def test_python_of_a_command_finds_the_sdk_only(head_with):
    head = head_with(command=f"{sys.executable} train.py")
    head.script(
        "import trial_runtime as t\n"
        "import sys\n"
        "t.report_final(sum(p.endswith('/r/path') for p in sys.path))\n"
    )
    head.run(1)
    assert head.finals(1) == [1]
