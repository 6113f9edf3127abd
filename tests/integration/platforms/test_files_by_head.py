"""Files of trials on a platform that shares no folder: agents read them, and the head is asked."""

from __future__ import annotations

import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from tests.integration.platforms.test_folder_channel import Lab
from tests.integration.platforms.test_queue import environment
from tests.support.checker import read_store
from tests.support.processes import wait_until

__all__ = ["environment"]

EXPERIMENT = """\
tuner: {{name: Random}}
searchSpace: {{x: {{_type: choice, _value: [1]}}}}
trialFunction: trial:main
trialConcurrency: 1
maxTrialNumber: 2
trialStopGrace: 1s
experimentWorkingDirectory: {base}/experiments
trainingService:
  platform: queue
  queue: {base}/queue
  seats: 1
  wallTime: 1h
  slots: 1
  allocations: 1
"""
TRIAL = """\
import fcntl
import os
import trial_runtime as bq

def main(parameters=None):
    os.makedirs("artefacts", exist_ok=True)
    print("the trial has begun", flush=True)
    print("z" * 700_000, flush=True)
    bq.report_intermediate(0.5)
    with open(os.environ["SEEN"] + ".begun", "ab") as begun:
        begun.write(b"x")
        begun.flush()
        number = begun.tell()
    with open(os.environ["SEEN"] + str(number)) as seen:
        fcntl.flock(seen, fcntl.LOCK_SH)  # held by the test until it has followed
    print("the trial is over", flush=True)
    bq.report_final(1.0)
"""


@pytest.fixture
def lab(tmp_path: Path, environment: dict[str, str]) -> Iterator[Lab]:
    made = Lab(tmp_path, environment)
    (tmp_path / "trial.py").write_text(TRIAL)
    (tmp_path / "lab.yml").write_text(EXPERIMENT.format(base=tmp_path))
    platform = tmp_path / "installed/bequeath_queue/platform.py"
    text = platform.read_text()
    assert "return bq.files_in(given, given.home, trial, attempt)" in text
    platform.write_text(
        text.replace("return bq.files_in(given, given.home, trial, attempt)", "return None")
    )
    yield made
    for head in made.heads:
        if head.poll() is None:
            head.kill()
            head.wait()


def ends(journal: Path) -> list[e.AttemptEnded]:
    return [x.event for x in read_store(journal) if isinstance(x.event, e.AttemptEnded)]


def test_output_is_followed_and_fetched_through_the_head(lab: Lab) -> None:
    """Mutations: nothing is shown; the end of what a trial prints is missing; a file of more than
    one part comes back wrong; what nobody has fetched goes with its place, logs and all."""
    path = lab.environment["SEEN"]
    held = [open(path + each, "w") for each in "12"]  # noqa: SIM115 - closed when it was seen
    for each in held:
        fcntl.flock(each, fcntl.LOCK_EX)
    head = lab.head("run", "lab.yml")

    def begun() -> bool:
        assert head.poll() is None, lab.output()
        return Path(lab.environment["SEEN"] + ".begun").exists()

    wait_until(begun, "the trial has begun")

    def ask(*arguments: str) -> subprocess.CompletedProcess[bytes]:
        of = ("--experiment", lab.folder.name, "--folder", str(lab.base / "experiments"))
        return subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", "trial", *arguments[:2], *of, *arguments[2:]],
            env=lab.environment,
            cwd=lab.base,
            capture_output=True,
            timeout=120,
            check=False,
        )

    listed = ask("files", "0", "--json")
    assert listed.returncode == 0, listed.stderr
    files = {each["path"]: each["size"] for each in json.loads(listed.stdout)["files"]}
    assert files["stdout"] > 700_000
    fetched = ask("fetch", "0", "stdout", "--to", str(lab.base / "there"))
    assert fetched.returncode == 0, fetched.stderr
    content = (lab.base / "there/stdout").read_bytes()
    assert content == b"the trial has begun\n" + b"z" * 700_000 + b"\n"
    shell = ask("shell", "0")
    assert shell.returncode == 4
    assert b"opens no shell on the platform 'queue'" in shell.stderr

    follower = lab.head(
        *("trial", "log", "0", "-f", "--raw", "--folder", str(lab.base / "experiments"))
    )
    wait_until(lambda: "z" * 1000 in lab.output(), "what it has printed so far is there")
    held[0].close()
    wait_until(lambda: "the trial is over" in lab.output(), "and what it prints now")
    assert follower.wait(120) == 0, lab.output()
    journal = lab.folder / "journal.sqlite"
    wait_until(lambda: len(ends(journal)) == 1, "its end is noted")
    gather = ("--folder", str(lab.base / "experiments"))
    command = [sys.executable, "-m", "dispatcher.cli", "experiment", "fetch", *gather]
    gathered = subprocess.run(
        command, env=lab.environment, capture_output=True, timeout=120, check=False
    )
    assert gathered.returncode == 0, gathered.stderr
    assert (lab.folder / "trials/0/1/stdout").read_bytes().endswith(b"the trial is over\n")
    held[1].close()
    assert head.wait(120) == 0, lab.output()

    assert b"the trial is over" in ask("log", "0").stdout, "it was fetched"
    for words in (["log", "1", "--raw"], ["log", "1", "--raw", "-f"]):
        kept = ask(*words)
        assert kept.returncode == 0, kept.stderr
        assert kept.stdout.endswith(b"zz\nthe trial is over\n"), "as it was handed in"
        assert len(kept.stdout) == 64 << 10
        if "-f" not in words:
            assert b"is not running" in kept.stderr
            assert b"stdout: its first" in kept.stderr
    fetched = ask("fetch", "1")
    assert fetched.returncode == 0, fetched.stderr
    assert b"were here already" in fetched.stdout
