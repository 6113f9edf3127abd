"""An experiment whose agents reach the head through a folder alone, under real heads."""

from __future__ import annotations

import fcntl
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from tests.integration.platforms.test_queue import environment
from tests.support.checker import check_store, read_store
from tests.support.processes import wait_until

__all__ = ["environment"]

EXPERIMENT = """\
tuner: {{name: Random}}
searchSpace: {{x: {{_type: choice, _value: [1, 2, 3]}}}}
trialFunction: trial:main
trialConcurrency: 2
maxTrialNumber: 10
trialStopGrace: 1s
headGrace: 300s
experimentWorkingDirectory: {base}/experiments
trainingService:
  platform: queue
  queue: {base}/queue
  seats: 2
  wallTime: 1h
  slots: 1
  channel: folder
  sharedFolder: {base}/shared
  allocations: 2
"""
TRIAL = """\
import fcntl
import os
import trial_runtime as bq

def main(parameters=None):
    bq.report_intermediate(0.5)
    with open(os.environ["SEEN"] + ".begun", "ab") as begun:
        begun.write(b"x")
        begun.flush()
        number = begun.tell()
    with open(os.environ["SEEN"]) as seen:
        if number > 3:
            fcntl.flock(seen, fcntl.LOCK_SH)  # held by the test until the next head is there
    bq.report_final(1.0)
"""


class Lab:
    """The experiment's file and its heads."""

    def __init__(self, base: Path, environment: dict[str, str]) -> None:
        self.base, self.environment = base, environment
        (base / "trial.py").write_text(TRIAL)
        (base / "lab.yml").write_text(EXPERIMENT.format(base=base))
        self.heads: list[subprocess.Popen[bytes]] = []

    def head(self, *arguments: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "dispatcher.cli", *arguments]
        with open(self.base / "out", "ab") as out:
            made = subprocess.Popen(
                command, cwd=self.base, env=self.environment, stdout=out, stderr=out
            )
        self.heads.append(made)
        return made

    @property
    def folder(self) -> Path:
        (folder,) = (self.base / "experiments").glob("lab-*")
        return folder

    def succeeded(self) -> int:
        try:
            events = [row.event for row in read_store(self.folder / "journal.sqlite")]
        except Exception:  # noqa: BLE001 - it is not there yet
            return 0
        return len({x.trial for x in events if isinstance(x, e.FinalReported)})

    def output(self) -> str:
        return (self.base / "out").read_text()


@pytest.fixture
def lab(tmp_path: Path, environment: dict[str, str]) -> Iterator[Lab]:
    made = Lab(tmp_path, environment)
    yield made
    for head in made.heads:
        if head.poll() is None:
            head.kill()
            head.wait()


def test_a_head_that_is_killed_is_followed_by_one_over_the_same_folder(lab: Lab) -> None:
    """Agents go on while there is no head, and the next one takes them up: no worker is lost.

    Mutations: agents listen at a port; the lines of the next head are other ones; the folder of
    lines stays when the experiment is over."""
    seen_by_us = open(lab.environment["SEEN"], "w")  # noqa: SIM115 - closed when it was seen
    fcntl.flock(seen_by_us, fcntl.LOCK_EX)
    first = lab.head("run", "lab.yml")

    def some() -> bool:
        assert first.poll() is None, lab.output()
        return lab.succeeded() >= 2

    wait_until(some, "two trials are over")
    assert not (lab.folder / "keys" / "port").exists(), "the head listens at a port"
    lines = sorted((lab.base / "shared" / "bequeath").glob("*/*/line/up.bell"))
    assert len(lines) == 2
    first.send_signal(signal.SIGKILL)
    first.wait()
    seen_by_us.close()  # trials end while there is no head, or under the next one
    second = lab.head("resume", str(lab.folder))
    assert second.wait(240) == 0, lab.output()
    journal = lab.folder / "journal.sqlite"
    assert check_store(journal, over=True) == []
    events = [row.event for row in read_store(journal)]
    assert len({x.trial for x in events if isinstance(x, e.FinalReported)}) == 10
    assert [x for x in events if isinstance(x, e.WorkerLost)] == []
    assert not any(line.parent.exists() for line in lines)
    assert os.listdir(lab.folder / "agents") != []


def test_a_platform_whose_workers_see_no_folder_of_ours_is_refused_one(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Mutation: agents start, and are never heard."""
    lab = Lab(tmp_path, environment)
    platform = tmp_path / "installed/bequeath_queue/platform.py"
    text = platform.read_text()
    platform.write_text(text.replace("    shares_folders = True\n", ""))
    checked = lab.head("validate", "lab.yml")
    assert checked.wait(120) == 3, lab.output()
    assert lab.output().count("do not see folders of this machine") == 2, "one for each key"
    assert "lab.yml:15" in lab.output()
    assert "lab.yml:16" in lab.output()
    file = tmp_path / "lab.yml"
    file.write_text(file.read_text().replace("channel: folder", "channel: tunnel"))
    assert lab.head("validate", "lab.yml").wait(120) == 3, lab.output()
    assert "agents of this platform know no jump host" in lab.output()
