"""An experiment in places that a scheduler gives and takes back, led by a real head."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.core import events as e
from tests.support.checker import check_store, read_store
from tests.support.processes import wait_until

ROOT = Path(__file__).parents[3]

EXPERIMENT = """\
tuner: {{name: Random}}
searchSpace: {{x: {{_type: choice, _value: [1]}}}}
trialFunction: trial:main
trialConcurrency: 2
maxTrialNumber: 6
lostRetries: 1000
trialStopGrace: 1s
experimentWorkingDirectory: {base}/experiments
trainingService:
  platform: queue
  queue: {base}/queue
  seats: 1
  slots: 1
  wallTime: 8s
  allocations: {{min: 0, max: 2}}
"""
TRIAL = """\
import fcntl
import os
import trial_runtime as bq

def main(parameters=None):
    with open(os.environ["SEEN"]) as seen:
        fcntl.flock(seen, fcntl.LOCK_SH)  # held by the test until it has seen what it is about
    bq.report_final(1.0)
"""


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """That of a machine where the example is installed, as ``pip install --target`` does it."""
    there = tmp_path / "installed"
    info = there / "bequeath_queue-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: bequeath-queue\nVersion: 1.0\n")
    points = "[bequeath.backends]\nqueue = bequeath_queue.platform:QUEUE\n"
    (info / "entry_points.txt").write_text(points)
    shutil.copytree(ROOT / "examples/backend_queue/bequeath_queue", there / "bequeath_queue")
    paths = os.pathsep.join((str(ROOT), str(there)))
    return {**os.environ, "PYTHONPATH": paths, "SEEN": str(tmp_path / "seen")}


def test_places_are_waited_for_and_taken_back_and_each_trial_ends_well(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """There is one place for two workers, and it is taken back every few seconds; trials end when
    that was seen. Mutations: a wait is a loss; a worker that loses its place is given up; the queue
    is not left empty."""
    (tmp_path / "trial.py").write_text(TRIAL)
    file = tmp_path / "lab.yml"
    file.write_text(EXPERIMENT.format(base=tmp_path))
    folders = tmp_path / "experiments"
    command = [sys.executable, "-m", "dispatcher.cli"]

    def status() -> dict[str, object]:
        ran = subprocess.run(
            [*command, "status", "--json", "--folder", str(folders)],
            env=environment,
            capture_output=True,
            text=True,
            check=False,
        )
        return (json.loads(ran.stdout).get("head") if ran.returncode == 0 else None) or {}

    seen_by_us = open(tmp_path / "seen", "w")  # noqa: SIM115 - closed when it was seen
    fcntl.flock(seen_by_us, fcntl.LOCK_EX)
    with open(tmp_path / "out", "wb") as out:
        head = subprocess.Popen(
            [*command, "run", str(file)], cwd=tmp_path, env=environment, stdout=out, stderr=out
        )
    try:

        def seen() -> bool:
            assert head.poll() is None, (tmp_path / "out").read_text()
            workers = status().get("workers") or []
            assert isinstance(workers, list)
            waits = any(each["waiting"] == "Resources" and each["waits_s"] for each in workers)
            return waits and any(each["ends_in_s"] for each in workers)

        wait_until(seen, "one waits for a place while another has one until its wall time")
        states = (tmp_path / "queue").glob
        wait_until(
            lambda: any("wall time" in path.read_text() for path in states("*.state")),
            "a place is taken back",
        )
        seen_by_us.close()  # trials may end now
        assert head.wait(240) == 0, (tmp_path / "out").read_text()
    finally:
        if head.poll() is None:
            head.kill()
            head.wait()
    (folder,) = folders.glob("lab-*")
    assert check_store(folder / "journal.sqlite", over=True) == []
    events = [row.event for row in read_store(folder / "journal.sqlite")]
    finished = {x.trial for x in events if isinstance(x, e.FinalReported)}
    assert len(finished) == 6
    lost = [x for x in events if isinstance(x, e.WorkerLost)]
    assert lost, "places were taken back"
    assert all(each.planned for each in lost), lost
    assert list((tmp_path / "queue").glob("*.job")) == []
    assert list((tmp_path / "queue").glob("*.config")) == [], "they hold keys"
