"""A head that dies between the order of an allocation and its note of it: the next one finds what
its scheduler has, and asks for nothing twice."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from tests.integration.platforms.test_queue import environment
from tests.support.checker import check_store, read_store
from tests.support.processes import end_processes_of, left_of, wait_until
from trial_runtime import failpoints

__all__ = ["environment"]

EXPERIMENT = """\
tuner: {{name: Random}}
searchSpace: {{x: {{_type: choice, _value: [1]}}}}
trialFunction: trial:main
trialConcurrency: 2
maxTrialNumber: 6
trialRetries: 0
lostRetries: 0
trialStopGrace: 1s
experimentWorkingDirectory: {base}/experiments
trainingService: {{platform: queue, queue: {base}/queue, seats: 4, slots: 1, allocations: 2}}
"""
TRIAL = """\
import trial_runtime as bq

def main(parameters=None):
    bq.report_final(1.0)
"""
HEAD_S = 240.0


class Lab:
    """An experiment whose two workers are allocations of a queue."""

    def __init__(self, base: Path, environment: dict[str, str]) -> None:
        self.base = base
        self.queue = base / "queue"
        self.struck = base / "struck"
        self.struck.mkdir()
        self._environment = environment
        (base / "trial.py").write_text(TRIAL)
        (base / "lab.yml").write_text(EXPERIMENT.format(base=base))

    @property
    def folder(self) -> Path:
        (folder,) = (self.base / "experiments").glob("lab-*")
        return folder

    def head(self, *arguments: str, plan: str = "") -> int:
        """One head, from its start to its end: its exit code."""
        variables = {
            failpoints.VARIABLE: plan,
            failpoints.STRUCK_VARIABLE: str(self.struck),
        }
        with open(self.base / "out", "ab") as out:
            return subprocess.run(
                [sys.executable, "-m", "dispatcher.cli", *arguments],
                cwd=self.base,
                env={**self._environment, **variables},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
                timeout=HEAD_S,
                check=False,
            ).returncode

    def allocations(self) -> dict[str, str]:
        """All that the queue has ever had, with how they stand."""
        states = (json.loads(each.read_text()) for each in self.queue.glob("*.state"))
        return {each["name"]: each["state"] for each in states}


@pytest.fixture
def lab(tmp_path: Path, environment: dict[str, str]) -> Iterator[Lab]:
    made = Lab(tmp_path, environment)
    yield made
    for job in made.queue.glob("*.job"):
        job.with_suffix(".cancel").touch()
    for folder in (tmp_path / "experiments").glob("lab-*"):
        end_processes_of(folder)


@pytest.mark.parametrize(
    "place",
    ["allocations.order.recorded@2", "allocations.order.taken@1", "allocations.order.noted@1"],
)
def test_no_allocation_is_leaked_and_none_is_doubled(lab: Lab, place: str) -> None:
    """Mutations: what is on record as ordered by nobody gets another name; what the queue has, and
    no record says, is asked for once more, or cancelled; a worker counts as lost."""
    assert lab.head("run", "lab.yml", plan=f"{place}=kill") == -signal.SIGKILL
    assert (lab.struck / place).exists()
    assert lab.head("resume", str(lab.folder)) == 0, (lab.base / "out").read_text()
    journal = lab.folder / "journal.sqlite"
    assert check_store(journal, over=True) == []
    events = [row.event for row in read_store(journal)]
    started = [(x.trial, x.attempt) for x in events if isinstance(x, e.AttemptStarted)]
    assert sorted(started) == [(trial, 1) for trial in range(6)]
    assert not [x for x in events if isinstance(x, e.WorkerLost)]
    names = lab.allocations()
    assert len(names) == 2, "one for each worker, whatever the first head had come to"
    wait_until(lambda: set(lab.allocations().values()) == {"ended"}, "nothing is left there")
    assert list(lab.queue.glob("*.job")) == []
    assert left_of(lab.folder) == []
