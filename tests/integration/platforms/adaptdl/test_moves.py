"""A trial whose pods AdaptDL takes away and starts anew, with another number of them, below a real
head, and below none."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import sqlite3
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from tests.support.checker import check_store, read_store
from tests.support.kubernetes.adaptdl import AdaptdlController, judge_of_jobs
from tests.support.kubernetes.cluster import Cluster, cluster
from tests.support.processes import wait_until

pytestmark = [pytest.mark.slow, pytest.mark.timeout(400)]

ROOT = Path(__file__).parents[4]

#: Rank 0 notes each group that it runs in beside its checkpoints, and has done with the third one.
TRIAL = """\
import os
import signal
from pathlib import Path

notes = Path(os.environ["ADAPTDL_CHECKPOINT_PATH"]) / "groups"
if os.environ["RANK"] != "0":
    signal.pause()
with notes.open("a") as file:
    print(os.environ["ADAPTDL_NUM_RESTARTS"], os.environ["WORLD_SIZE"], file=file)
lines = notes.read_text().splitlines()
Path(os.environ["SEEN"]).write_text("\\n".join(lines))
if len(lines) < 3:
    signal.pause()
import trial_runtime as bq
bq.report_final(len(lines))
"""


NO_ROOM = "AdaptDL has no room for it now"


class Lab:
    """An experiment of one trial on a cluster, and the head that leads it."""

    def __init__(self, there: Cluster, base: Path) -> None:
        self.base = base
        self.head: subprocess.Popen[bytes] | None = None
        self.seen = base / "seen"
        shared = base / "shared"
        for folder in (base / "code", shared):
            folder.mkdir()
        (base / "code/trial.py").write_text(TRIAL)
        service = {
            "platform": "adaptdl",
            "kubeconfig": str(there.api.kubeconfig(base)),
            "image": "our/own:1",
            "python": sys.executable,
            "volumes": [{"hostPath": str(shared), "at": str(shared)}],
            "workFolder": str(shared / "work"),
            "headAddress": "127.0.0.1",
            "probe": False,
            "minReplicas": 1,
        }
        experiment = {
            "tuner": {"name": "Random"},
            "searchSpace": {"x": {"_type": "choice", "_value": [1]}},
            "trialCommand": f"{sys.executable} trial.py",
            "trialCodeDirectory": str(base / "code"),
            "trialEnvironment": {"SEEN": str(self.seen)},
            "trialNodes": 2,
            "trialConcurrency": 1,
            "maxTrialNumber": 1,
            "trialRetries": 0,
            "trialStopGrace": "2s",
            "headGrace": "60s",
            "weightsRoot": str(shared),
            "experimentWorkingDirectory": str(base / "experiments"),
            "trainingService": service,
        }
        (base / "lab.yml").write_text(json.dumps(experiment))

    def lead(self, *words: str) -> None:
        with (self.base / "said").open("ab") as said:
            self.head = subprocess.Popen(
                [sys.executable, "-m", "dispatcher.cli", *words],
                cwd=self.base,
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )

    def kill(self) -> None:
        if self.head is not None and self.head.poll() is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(self.head.pid, signal.SIGKILL)
            self.head.wait()

    def groups(self) -> list[str]:
        return self.seen.read_text().splitlines() if self.seen.exists() else []

    @property
    def journal(self) -> Path:
        (path,) = (self.base / "experiments").glob("*/journal.sqlite")
        return path

    def events(self) -> list[Any]:
        with contextlib.suppress(sqlite3.Error, ValueError):
            return [row.event for row in read_store(self.journal)]
        return []

    def waits(self) -> list[str]:
        return [x.reason for x in self.events() if isinstance(x, e.WorkerWaits)]

    def text(self) -> str:
        return (self.base / "said").read_text(errors="replace")[-4000:]


def test_a_trial_goes_on_in_each_group(tmp_path: Path) -> None:
    """It is tried again from its checkpoint, its job is the same to the end, and nobody is blamed.
    Mutations: a rescale is an end, so that another job is asked for; the agent leaves with success,
    for which AdaptDL calls the job done; a head that comes while there are no pods deletes it."""
    (tmp_path / "cluster").mkdir()
    adaptdl = AdaptdlController(judge_of_jobs())
    with cluster(tmp_path / "cluster", operators=[adaptdl]) as there:
        lab = Lab(there, tmp_path)
        lab.lead("run", "lab.yml")
        try:
            wait_until(lambda: lab.groups() == ["0 1"], "the first group runs")
            (job,) = there.api.objects.all("adaptdljobs")
            name = job["metadata"]["name"]
            adaptdl.replicas[name] = 2
            wait_until(lambda: lab.groups() == ["0 1", "1 2"], "the second group has two pods")
            lab.kill()
            adaptdl.replicas[name] = 0
            wait_until(lambda: there.containers == 0, "AdaptDL has taken all of them away")
            lab.lead("resume", "--folder", str(tmp_path / "experiments"))
            wait_until(lambda: NO_ROOM in lab.waits(), "the next head waits for the next group")
            adaptdl.replicas[name] = 1
            assert lab.head is not None
            assert lab.head.wait(120) == 0, lab.text()
            assert lab.groups() == ["0 1", "1 2", "2 1"]
        finally:
            lab.kill()
        assert there.api.count("POST /apis/adaptdl.petuum.com") == 1, "one job for all"
        wait_until(lambda: there.containers == 0, "no container is left")
        for kind in ("adaptdljobs", "pods", "secrets"):
            wait_until(lambda k=kind: there.api.objects.all(k) == [], f"no {kind} are left")  # type: ignore[misc]
    assert check_store(lab.journal, over=True) == []
    events = lab.events()
    ends = [x.reason for x in events if isinstance(x, e.AttemptEnded)]
    assert ends[-1] == EndReason.FINISHED
    assert set(ends[:-1]) <= {EndReason.PREEMPTED}
    losses = [x for x in events if isinstance(x, e.WorkerLost)]
    assert losses
    assert all(x.planned and "its place was taken back" in x.reason for x in losses), losses
