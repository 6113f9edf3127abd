"""Each way an attempt can end, and trials that do what they should not."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tests.support.workers import LOCAL
from trial_runtime import facts, wire
from trial_runtime.facts import EndReason
from trial_runtime.local_channel import SCHEME, LocalChannel

PY = sys.executable


def test_exit_code_and_the_end_of_stderr(head_with):
    head = head_with(command="for i in $(seq 100); do echo line $i >&2; done; exit 3")
    end = head.run()
    assert (end.reason, end.exit_code) == (EndReason.FAILED, 3)
    assert end.text.splitlines()[-1] == "line 100"
    assert len(end.text.splitlines()) == 20


def test_signal(head_with):
    head = head_with(command="kill -SEGV $$")
    end = head.run()
    assert (end.reason, end.signal, end.exit_code) == (EndReason.SIGNALLED, signal.SIGSEGV, None)


def test_all_that_a_dead_trial_has_left_is_heard(head_with):
    """More than one read of its socket takes. Mutation: what was not read in one go is dropped."""
    head = head_with(function="train:main")
    head.script(
        "import os, trial_runtime as t\nfrom tests.support import hold\n"
        "def main(p):\n"
        "    t.report_intermediate({'default': 0, 'pid': os.getpid()})\n"
        "    hold.until('go')\n"
        "    for n in range(1, 60): t.report_intermediate({'default': n, 'more': 'x' * 900})\n"
        "    os._exit(3)\n"
    )
    head.until(lambda: head.life, "hello")
    head.start(1)
    head.until(lambda: head.metrics(1), "its first metric")
    trial = Path(f"/proc/{head.metrics(1)[0]['pid']}/stat")
    os.kill(head.process.pid, signal.SIGSTOP)  # nothing is read meanwhile
    try:
        head.script("", "go")
        wait_until(lambda: trial.read_text().rpartition(")")[2].split()[0] == "Z", "its end")
    finally:
        os.kill(head.process.pid, signal.SIGCONT)
    assert head.end_of(1).exit_code == 3
    assert [metric["default"] for metric in head.metrics(1)] == list(range(60))


def test_memory_error(head_with):
    head = head_with(command=f"{PY} -c 'raise MemoryError'")
    assert head.run().reason == EndReason.OUT_OF_MEMORY


def test_command_not_found(head_with):
    head = head_with(command="no-such-program --x")
    end = head.run()
    assert end.reason == EndReason.START_FAILED
    assert "no-such-program" in end.text


def test_missing_code_directory(head_with):
    head = head_with(command="true")
    head.code.rmdir()
    end = head.run()
    assert end.reason == EndReason.START_FAILED
    assert str(head.code) in end.text


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_timeout(head_with, reuse):
    head = head_with(function="train:main", timeout_s=0.3, stop_grace_s=0.3, reuse=reuse)
    head.script("from tests.support import hold\ndef main(p): hold.for_ever()\n")
    assert head.run().reason == EndReason.TIMED_OUT
    assert head.run(2).reason == EndReason.TIMED_OUT


def test_stop_of_a_trial_that_ignores_sigterm(head_with):
    head = head_with(command="trap '' TERM; echo up; while :; do sleep 0.05; done")
    head.start(1)
    head.until(lambda: head.output(1))
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 0.3))
    end = head.end_of(1)
    assert (end.reason, end.signal) == ("killed by the user", signal.SIGKILL)


HEEDING = """
from tests.support import hold
import trial_runtime as t
def main(p):
    step = 0
    while not t.should_stop():
        t.report_intermediate(step)
        step += 1
        hold.pace()
    t.report_final(1)
"""


@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_a_trial_that_heeds_a_stop_has_time_to_report(head_with, reuse):
    head = head_with(function="train:main", reuse=reuse)
    head.script(HEEDING)
    head.start(1)
    head.until(lambda: head.metrics(1))
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.STOPPED_EARLY, 30.0))
    end = head.end_of(1)
    assert (end.reason, end.exit_code) == ("stopped early", 0)
    assert head.finals(1) == [1]


@pytest.mark.parametrize("heeds", [True, False])
@pytest.mark.parametrize("reuse", ["none", "forked", "inProcess"])
def test_an_order_to_stop_that_is_repeated_changes_nothing(head_with, reuse, heeds):
    """After each hello a head repeats what may not have come. Mutation: SIGTERM comes at once for a
    trial that heeds the stop and saves, and a second time for one that has begun to save by it."""
    head = head_with(function="train:main", reuse=reuse, slots=3)
    head.script(
        "import os, signal, trial_runtime as t\nfrom tests.support import hold\n"
        "def main(p):\n"
        "    seen = []\n"
        "    signal.signal(signal.SIGTERM, lambda number, frame: seen.append(number))\n"
        "    while p and not (t.should_stop() if p['heeds'] else seen):\n"
        "        t.report_intermediate(0)\n"
        "        hold.pace()\n"
        "    t.report_intermediate(1)\n"
        "    if p: hold.until('saved')\n"
        "    t.report_final(len(seen))\n"
    )
    head.start(1, parameters={"heeds": heeds})
    head.until(lambda: head.metrics(1), "it runs")
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.STOPPED_EARLY, 3600.0))
    head.until(lambda: 1 in head.metrics(1), "it saves")
    for trial in (2, 3):
        head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.STOPPED_EARLY, 3600.0))
        assert head.run(trial).reason == EndReason.FINISHED, "and the order before it was taken"
    (head.code / "saved").touch()
    assert (head.end_of(1).reason, head.end_of(1).exit_code) == ("stopped early", 0)
    assert head.finals(1) == [0 if heeds else 1], "so many signals came"


@pytest.mark.parametrize("grace_s", [0.0, 0.3])
def test_an_order_to_stop_that_is_repeated_with_a_shorter_grace_goes_further(head_with, grace_s):
    head = head_with(function="train:main")
    head.script(
        "import signal, trial_runtime as t\n"
        "def main(p):\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    t.report_intermediate(int(t.should_stop()))\n"
        "    while True: signal.pause()\n"
    )
    head.start(1)
    head.until(lambda: head.metrics(1), "it runs")
    for each in (3600.0, grace_s):
        head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, each))
    end = head.end_of(1)
    assert (end.reason, end.signal) == ("killed by the user", signal.SIGKILL)


def test_one_that_has_time_to_stop_keeps_to_its_memory_all_the_same(head_with):
    """Where the kernel bounds it, it does so however a trial is about to end. Mutation: what a user
    gave it to save in, ten minutes, it may fill its machine's memory in."""
    head = head_with(function="train:main")
    head.script(
        "import signal, trial_runtime as t\nfrom tests.support import hold\n"
        "def main(p):\n"
        "    signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "    t.report_intermediate(0)\n"
        "    hold.until(t.should_stop)\n"
        "    kept = b'x' * (300 << 20)\n"
        "    while kept: signal.pause()\n"
    )
    head.start(1, memory_bytes=200 << 20)
    head.until(lambda: head.metrics(1), "it runs")
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 3600.0))
    end = head.end_of(1)
    assert (end.reason, end.signal) == ("killed by the user", signal.SIGKILL)
    assert "its trialMemorySize is 200 MiB" in end.text


def test_a_fork_that_is_stopped_before_it_is_there_ends(head_with):
    """The server takes its time for imports. Mutation: SIGTERM, for which there was no process yet,
    never comes, and a script that asks nobody runs on until its grace is over."""
    head = head_with(command="python train.py", reuse="forked", preload=("slow",))
    (head.code / "slow.py").write_text(
        "import os\nfrom tests.support import hold\n"
        "open('importing', 'w').close()\n"
        "hold.until('go')\n"
    )
    head.script("from tests.support import hold\nhold.for_ever()\n")
    head.start(1)
    head.until(lambda: (head.code / "importing").exists(), "it imports")
    for _ in range(2):
        head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 3600.0))
    head.until(lambda: head.heartbeats and head.heartbeats[-1].running == 1)
    head.listen(1.0)
    (head.code / "go").touch()
    assert head.end_of(1).reason == "killed by the user"


def test_fork_and_leave(head_with):
    """Daemons in sessions of their own, two generations deep, end with their trial."""
    head = head_with(command=f"{PY} train.py")
    head.script(
        "import os\nfrom tests.support import hold\n"
        "if os.fork() == 0:\n"
        "    os.setsid()\n"
        "    if os.fork() == 0:\n"
        "        os.setsid()\n"
        "        open('daemon', 'w').write(str(os.getpid()))\n"
        "        hold.for_ever()\n"
        "    hold.for_ever()\n"
        "hold.until(lambda: os.path.exists('daemon') and open('daemon').read())\n"
    )
    assert head.run().reason == EndReason.FINISHED
    daemon = int((head.code / "daemon").read_text())
    assert not Path(f"/proc/{daemon}").exists()
    assert head.ours() == []


def test_background_process_that_holds_the_pipe(head_with):
    head = head_with(command="sleep 600 & echo started")
    assert head.run().reason == EndReason.FINISHED
    assert head.output(1) == "started\n"
    assert head.ours() == []


def test_leftovers_of_one_trial_while_another_runs(head_with):
    head = head_with(command=f"{PY} train.py")
    head.script(
        "import os, trial_runtime as t\nfrom tests.support import hold\n"
        "if os.fork() == 0:\n"
        "    os.setsid(); hold.for_ever()\n"
        "if t.trial_id() == 1:\n"
        "    hold.for_ever()\n"
    )
    head.start(1)
    head.until(lambda: head.of(facts.AttemptStarted, 1))
    head.until(lambda: len(head.ours()) == 2)
    head.run(2)
    assert len(head.ours()) == 2  # the first trial and its child go on
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 0.0))
    head.end_of(1)
    assert head.ours() == []


def test_a_trial_that_prints_without_end_stays_within_its_bound(head_with):
    head = head_with(command="head -c 60000000 /dev/zero; echo; echo last", max_log_bytes=1 << 20)
    assert head.run().reason == EndReason.FINISHED
    folder = head.folder / "trials/1/1"
    sizes = {p.name: p.stat().st_size for p in folder.iterdir() if p.name.startswith("stdout")}
    assert set(sizes) == {"stdout", "stdout.1"}
    assert max(sizes.values()) <= 1 << 20
    assert (folder / "stdout").read_bytes().endswith(b"\nlast\n")


def test_a_trial_that_never_reports(head_with):
    head = head_with(command=f"{PY} -c 'import trial_runtime; trial_runtime.get_parameters()'")
    end = head.run()
    assert end.reason == EndReason.FINISHED
    assert head.finals(1) == []


def test_nan_is_refused_at_the_call(head_with):
    head = head_with(function="train:main")
    head.script("import trial_runtime as t\ndef main(p): t.report_intermediate(float('nan'))\n")
    end = head.run()
    assert end.reason == EndReason.FAILED
    assert "must be finite, not nan" in end.text


def test_a_second_final_and_a_late_metric_are_recorded(head_with):
    head = head_with(function="train:main")
    head.script(
        "import trial_runtime as t\n"
        "def main(p):\n"
        "    t.report_final(1); t.report_final(2); t.report_intermediate(3)\n"
    )
    assert head.run().reason == EndReason.FINISHED
    assert head.finals(1) == [1, 2]
    assert head.metrics(1) == [3]
    seqs = [w.seq for w in head.words if hasattr(w, "seq")]
    assert seqs == [1, 2, 3]
    assert "does not count" in head.output(1, stream="stderr")


def test_too_many_metrics(head_with):
    head = head_with(function="train:main", max_metrics=10)
    head.script(
        "import trial_runtime as t\n"
        "def main(p):\n"
        "    for i in range(5000): t.report_intermediate(i)\n"
    )
    end = head.run()
    assert end.reason == EndReason.FAILED
    assert "more than 10 metrics" in end.text
    assert head.metrics(1) == list(range(10))


def test_many_metrics_arrive_in_order(head_with):
    head = head_with(function="train:main")
    head.script(
        "import trial_runtime as t\n"
        "def main(p):\n"
        "    for i in range(20000): t.report_intermediate(i)\n"
    )
    assert head.run().reason == EndReason.FINISHED
    assert head.metrics(1) == list(range(20000))


def test_a_crash_after_the_final_result_loses_nothing(head_with):
    head = head_with(function="train:main")
    head.script(
        "import os, trial_runtime as t\n"
        "def main(p):\n"
        "    for i in range(100): t.report_intermediate(i)\n"
        "    t.report_final(7)\n"
        "    os._exit(9)\n"
    )
    end = head.run()
    assert (end.reason, end.exit_code) == (EndReason.FAILED, 9)
    assert head.metrics(1) == list(range(100))
    assert head.finals(1) == [7]


def test_a_process_of_the_trial_reports_as_well(head_with):
    head = head_with(command=f"{PY} train.py; {PY} train.py")
    head.script("import trial_runtime as t\nt.report_intermediate(4)\n")
    head.run()
    assert head.metrics(1) == [4, 4]


def test_repeated_orders_start_nothing_twice(head_with):
    head = head_with(command="echo once")
    head.start(1)
    head.start(1)
    head.end_of(1)
    head.start(1)
    head.run(2)
    assert head.output(1) == "once\n"
    assert len(head.of(facts.AttemptEnded, 1)) == len(head.of(facts.AttemptStarted, 1)) == 1


def test_a_superseded_attempt_is_gone_before_its_successor_starts(head_with):
    head = head_with(command=f"{PY} train.py")
    head.script(
        "import os, signal, sys, trial_runtime as t\nfrom tests.support import hold\n"
        "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
        "print('up', flush=True)\n"
        "path = t.get_parameters()['save_path']\n"
        "if t.attempt() == 2:\n"
        "    assert not os.path.exists(path)\n"
        "    open(path, 'w').write('second'); sys.exit()\n"
        "while True:\n"
        "    open(path, 'a').write('first'); hold.pace(0.001)\n"
    )
    more = {"parameters": {"save_path": "x"}, "save_path": "w/t1"}
    head.start(1, 1, **more)
    head.until((head.weights / "w/t1").exists)
    end = head.run(1, 2, **more)
    assert end.reason == EndReason.FINISHED, end
    assert (end.weights.kind, end.weights.nbytes) == ("files", 6)
    assert head.end_of(1, 1).reason == EndReason.LOST
    assert (head.weights / "w/t1").read_text() == "second"
    assert (head.weights / "w/t1.superseded.1").read_text().replace("first", "") == ""
    assert head.ours() == []


def test_save_path_outside_the_root(head_with):
    head = head_with(command="echo never")
    (head.weights / "link").symlink_to("/tmp")
    for trial, path in enumerate(["../elsewhere", "/etc/weights", "link/x"], 1):
        end = head.run(trial, save_path=path)
        assert end.reason == EndReason.START_FAILED, path
        assert "weights root" in end.text
        assert head.output(trial) == ""


def test_a_parent_of_plain_files_is_verified(head_with):
    head = head_with(function="train:main")
    head.script(
        "def main(p):\n"
        "    if 'restore_path' in p: assert open(p['restore_path']).read() == 'w'\n"
        "    else: open(p['save_path'], 'w').write('w')\n"
    )
    parent = head.run(1, parameters={"save_path": "t1"}, save_path="t1")
    assert parent.weights.kind == "files"
    more = {"parameters": {"restore_path": "t1"}, "restore_path": "t1", "restore_kind": "files"}
    child = head.run(2, **more, restore_digest=parent.weights.digest)
    assert child.reason == EndReason.FINISHED, child


def test_weights_through_the_sdk(head_with):
    pytest.importorskip("numpy")
    head = head_with(function="train:main")
    head.script(
        "import numpy as np, trial_runtime as t\n"
        "def main(p):\n"
        "    state = t.load_weights() or {'a': np.zeros(3), 'b': np.ones(5)}\n"
        "    state['a'] = np.asarray(state['a']) + 1\n"
        "    t.save_weights(state)\n"
        "    return float(state['a'].sum())\n"
    )
    assert head.run(1, save_path="t/1").reason == EndReason.FINISHED
    (published,) = head.of(facts.WeightsPublished, 1)
    assert published.weights.kind == "bequeath"
    end = head.run(
        2,
        save_path="t/2",
        restore_path="t/1",
        restore_kind="bequeath",
        restore_digest=published.weights.digest,
    )
    assert end.reason == EndReason.FINISHED, end
    assert head.finals(2) == [6.0]
    assert end.weights is None  # published by itself


def test_environment_and_secrets(head_with, monkeypatch):
    monkeypatch.setenv("MY_SECRET", "s3cret")
    head = head_with(
        command='echo "$TOKEN $PLAIN $LITERAL $OMP_NUM_THREADS"; stat -c %a "$BEQUEATH_SESSION"',
        environment={"TOKEN": "env:MY_SECRET", "PLAIN": "p", "LITERAL": "literal:env:X"},
        cpus_per_trial=1,
    )
    head.run()
    assert head.output(1) == "s3cret p env:X 1\n600\n"


def test_a_missing_reference_is_named(head_with):
    head = head_with(command="true", environment={"TOKEN": "env:NOT_THERE_AT_ALL"})
    end = head.run()
    assert end.reason == EndReason.START_FAILED
    assert "NOT_THERE_AT_ALL" in end.text


def test_a_stranger_cannot_speak_for_an_attempt(head_with):
    head = head_with(command="echo up; sleep 600")
    head.start(1)
    head.until(lambda: head.output(1))
    stranger = LocalChannel(f"{SCHEME}{head.run_folder}/a-local", "t1.1:guess", patience_s=5)

    def speak() -> None:  # the agent may be so quick that `send` is refused
        stranger.send(wire.frame([wire.Final("1")]))
        stranger.receive(120)

    try:
        with pytest.raises(ConnectionError):
            speak()
    finally:
        stranger.close()
    head.send(facts.StopAttempt(LOCAL, 1, 1, EndReason.KILLED, 0.0))
    head.end_of(1)
    assert head.finals(1) == []


def test_shutdown_ends_everything(head_with):
    head = head_with(command="trap '' TERM; sleep 600")
    for trial in (1, 2):
        head.start(trial)
    head.until(lambda: len(head.ours()) >= 2)
    head.send(wire.Shutdown(0.2))
    assert {head.end_of(t).reason for t in (1, 2)} == {EndReason.SHUTDOWN}
    assert head.wait() == 0
    assert head.ours() == []


def test_a_sigterm_to_the_agent_ends_everything(head_with):
    head = head_with(command="sleep 600", stop_grace_s=0.5)
    head.start(1)
    head.until(head.ours)
    os.kill(head.process.pid, signal.SIGTERM)
    assert head.end_of(1).reason == EndReason.SHUTDOWN
    assert head.wait() == 0


def test_a_sigterm_where_a_scheduler_lent_the_place_means_that_it_is_taken_back(head_with):
    """The head is told before any attempt ends, so that none is sent there again. Mutations: they
    end as with the experiment; the head is told with the next heartbeat."""
    head = head_with(command="sleep 600", stop_grace_s=5.0, ticket="a ticket", heartbeat_s=5.0)
    head.start(1)
    head.until(lambda: head.of(facts.AttemptStarted, 1))
    head.until(lambda: head.heartbeats)
    assert not any(beat.leaving for beat in head.heartbeats)
    seen = []
    head.take_also = lambda message: seen.append(type(message))
    os.kill(head.process.pid, signal.SIGTERM)
    assert head.end_of(1).reason == EndReason.PREEMPTED
    assert head.heartbeats[-1].leaving
    assert seen[0] is wire.Heartbeat
    assert head.wait() == 0


def test_leftovers_of_a_function_go_while_others_run(head_with):
    head = head_with(function="train:main", reuse="inProcess")
    head.script(
        "import subprocess, sys, trial_runtime as t\nfrom tests.support import hold\n"
        "CODE = 'import os\\nfrom tests.support import hold\\n'\n"
        "CODE += 'if os.fork(): os._exit(0)\\nos.setsid(); hold.for_ever()'\n"
        "def main(p):\n"
        "    if t.trial_id() == 1: subprocess.run([sys.executable, '-c', CODE], check=True)\n"
        "    else: hold.for_ever()\n"
    )
    head.start(2)
    head.until(lambda: head.of(facts.AttemptStarted, 2))
    assert head.run(1).reason == EndReason.FINISHED
    workers = 2
    head.until(lambda: len(head.ours()) == workers, "the daemon is gone")
    assert not head.of(facts.AttemptEnded, 2)


def test_private_files_go_with_those_they_were_for(head_with):
    head = head_with(function="train:main", reuse="inProcess")
    head.script("def main(p): return p['x']\n")
    for trial in (1, 2, 3):
        head.run(trial, parameters={"x": trial})
    assert [head.finals(t) for t in (1, 2, 3)] == [[1], [2], [3]]
    for pattern in ("worker-*.json", "s*.json"):
        head.until(lambda pattern=pattern: not list(head.run_folder.glob(pattern)), pattern)
