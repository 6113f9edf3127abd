"""What finds planted faults: what counts as found, and that nothing of a run is left."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from tests.mutations.__main__ import ALONE, FOUND, MISSED, TIME_LIMIT, run_alone, verdict
from tests.mutations.mutation import Mutation
from tests.support.processes import wait_until

#: As a background head is: of nobody's session, and nobody's child.
DAEMON = """
import os, subprocess, sys, time
one = [sys.executable, "-c", "import time; time.sleep(600)", os.environ["MARK"]]
quiet = "stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL"
code = f"import subprocess; subprocess.Popen({one!r}, start_new_session=True, {quiet})"
subprocess.run([sys.executable, "-c", code], check=True, start_new_session=True)
print("started", flush=True)
time.sleep(float(sys.argv[1]))
sys.exit(int(sys.argv[2]))
"""


@pytest.mark.parametrize(
    "outcome, hangs, expected",
    [
        ("fails", False, FOUND),
        ("fails", True, FOUND),
        ("hangs", True, FOUND),
        ("hangs", False, TIME_LIMIT),
        ("passes", False, MISSED),
        ("passes", True, MISSED),
        ("no tests", False, MISSED),
        ("no such tests", True, MISSED),
    ],
)
def test_what_counts_as_found(outcome: str, hangs: bool, expected: str) -> None:
    """Mutation: tests that take long are taken for a fault that was found."""
    assert verdict(Mutation("x", 1, "", "", "", "", hangs=hangs), outcome) == expected


def marked(mark: str) -> list[psutil.Process]:
    """Those that have the mark among their words, and have not ended."""
    found = []
    for process in psutil.process_iter():
        try:
            if mark in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                found.append(process)
        except psutil.Error:
            continue
    return found


@pytest.fixture
def mark(tmp_path: Path) -> Iterator[str]:
    yield str(tmp_path)
    for process in marked(str(tmp_path)):
        process.kill()


@pytest.mark.parametrize(
    "lasts_s, code, limit_s, expected",
    [(0, 0, 120.0, "passes"), (0, 1, 120.0, "fails"), (600, 0, 2.0, "hangs")],
)
def test_nothing_of_a_run_is_left(
    mark: str, lasts_s: float, code: int, limit_s: float, expected: str
) -> None:
    """Mutation: only the session of the tests is ended; the heads that they had started lead on."""
    command = [sys.executable, "-c", DAEMON, str(lasts_s), str(code)]
    environment = {**os.environ, "MARK": mark}
    outcome, _, said = run_alone(command, limit_s, env=environment)
    assert marked(mark) == []
    assert outcome == expected, said
    assert lasts_s or "started" in said


def test_nothing_is_left_when_who_asked_for_it_is_killed(mark: str) -> None:
    """Whoever interrupts a run of an hour goes on with something else."""
    asking = (
        "import os; from tests.mutations.__main__ import run_alone;"
        f"run_alone([{sys.executable!r}, '-c', {DAEMON!r}, '600', '0'], 600.0)"
    )
    root = str(ALONE.parents[2])
    environment = {**os.environ, "MARK": mark, "PYTHONPATH": root}
    with subprocess.Popen([sys.executable, "-c", asking], env=environment) as run:
        wait_until(lambda: marked(mark), "the daemon runs")
        run.send_signal(signal.SIGKILL)
    wait_until(lambda: not marked(mark), "it is ended")


def test_orphans_are_reaped_while_the_tests_run() -> None:
    """Tests look whether processes are gone, and one that nobody reaps is not. A command that is
    killed is reported as a shell does."""
    code = """
import os, subprocess, sys
from tests.support import hold
left = subprocess.run(
    [sys.executable, "-c", "import subprocess; print(subprocess.Popen(['true']).pid)"],
    stdout=subprocess.PIPE, check=True)
hold.until(lambda: not os.path.exists(f"/proc/{int(left.stdout)}"))
print("gone", flush=True)
os.kill(os.getpid(), 15)
"""
    run = subprocess.Popen(
        [sys.executable, "-P", str(ALONE), sys.executable, "-c", code],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert run.stdin is not None
    assert run.stdout is not None
    assert run.stdout.read() == b"gone\n"
    assert run.wait() == 128 + signal.SIGTERM
    run.stdin.close()
    run.stdout.close()
