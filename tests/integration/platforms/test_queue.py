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
from dispatcher.core.model import EndReason
from tests.support.checker import check_store, read_store
from tests.support.packages import lay_down
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
  wallTime: 20s
  allocations: {{min: 0, max: 2}}
"""
#: One whose places end when the test says so, however long its commands take.
LONG = EXPERIMENT.replace("wallTime: 20s", "wallTime: 1h")
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
    points = "[bequeath.backends]\nqueue = bequeath_queue.platform:QUEUE\n"
    lay_down(there, "bequeath-queue", points)
    shutil.copytree(ROOT / "examples/backend_queue/bequeath_queue", there / "bequeath_queue")
    paths = os.pathsep.join((str(ROOT), str(there)))
    return {**os.environ, "PYTHONPATH": paths, "SEEN": str(tmp_path / "seen")}


def test_places_are_waited_for_and_taken_back_and_each_trial_ends_well(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """There is one place for two workers, and it ends after some seconds; trials end when that was
    seen. Mutations: a wait is a loss; a worker that loses its place is given up; what runs there is
    not asked to go on elsewhere; the queue is not left empty."""
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
            lambda: any("ended" in path.read_text() for path in states("*.state")),
            "a place ends too soon for another trial, and is given back",
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
    assert lost, "places were given back"
    ends = [x for x in events if isinstance(x, e.AttemptEnded)]
    assert any(x.reason is EndReason.PREEMPTED for x in ends), "by hand-over, as agents report it"
    assert all(each.planned for each in lost), lost
    assert list((tmp_path / "queue").glob("*.job")) == []
    assert list((tmp_path / "queue").glob("*.config")) == [], "they hold keys"


def test_each_trial_may_have_an_allocation_of_its_own(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """Its agent leaves when the trial is over, so that the scheduler's books say *finished*.
    Mutations: one has two trials; it is cancelled; the next one waits as after a short life."""
    (tmp_path / "trial.py").write_text(TRIAL)
    (tmp_path / "seen").touch()
    text = LONG.format(base=tmp_path).replace("max: 2}", "max: 2, trials: 1}")
    text = text.replace("seats: 1", "seats: 2")
    (tmp_path / "lab.yml").write_text(text)
    ran = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", "run", "lab.yml"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    states = [json.loads(path.read_text()) for path in (tmp_path / "queue").glob("*.state")]
    gone = [each["gone"] for each in states]
    # The last two may be asked to end with the experiment before they have left by themselves.
    assert gone.count("finished") >= 6 - 2, gone
    assert len(gone) <= 6 + 2, "six trials, and two for which none was left"
    (folder,) = (tmp_path / "experiments").glob("lab-*")
    assert check_store(folder / "journal.sqlite", over=True) == []
    text = "its place has had all trials that it is for"
    events = [row.event for row in read_store(folder / "journal.sqlite")]
    assert sum(isinstance(x, e.WorkerLost) and x.reason == text for x in events) >= 4


@pytest.mark.parametrize("verb", [("kill",), ("experiment", "delete"), ("stop",)])
def test_nothing_is_left_in_the_queue_of_a_dead_head(
    tmp_path: Path, environment: dict[str, str], verb: tuple[str, ...]
) -> None:
    """One has a place, one waits. Mutations: they are not asked for; what is damaged by a dead head
    cannot be deleted."""
    (tmp_path / "trial.py").write_text(TRIAL)
    (tmp_path / "lab.yml").write_text(LONG.format(base=tmp_path))
    command = [sys.executable, "-m", "dispatcher.cli"]
    seen_by_us = open(tmp_path / "seen", "w")  # noqa: SIM115 - trials wait to the end
    fcntl.flock(seen_by_us, fcntl.LOCK_EX)
    head = subprocess.Popen(
        [*command, "run", "lab.yml"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        queue = tmp_path / "queue"
        wait_until(lambda: len(list(queue.glob("*.state"))) == 2, "both are known to the queue")
        if verb != ("kill",):
            head.kill()
            head.wait()
        (folder,) = (tmp_path / "experiments").glob("lab-*")

        def ask(*arguments: str) -> subprocess.CompletedProcess[str]:
            return subprocess.run(
                [*command, *arguments, "--folder", str(folder.parent)],
                env=environment,
                capture_output=True,
                text=True,
                check=False,
            )

        if verb == ("stop",):
            looked = ask("doctor").stdout
            assert "may have left at its scheduler: " in looked
            assert looked.count("-queue-") == 2
        ran = ask(*verb, folder.name, *(() if verb == ("stop",) else ("--yes",)))
        assert ran.returncode == 0, ran.stderr
        assert ran.stderr.count("-queue-") == 2, ran.stderr
        if verb == ("stop",):
            again = ask("stop", folder.name)
            assert again.returncode == 4, "nothing is left that could be stopped"
            assert "is not running" in again.stderr
            assert "may have left" not in ask("doctor").stdout
        wait_until(lambda: not list(queue.glob("*.job")), "the queue is empty")
    finally:
        seen_by_us.close()
        if head.poll() is None:
            head.kill()
            head.wait()
    assert folder.exists() == (verb != ("experiment", "delete"))


def test_allocations_of_a_deleted_experiment_can_be_looked_for_by_hand(
    tmp_path: Path, environment: dict[str, str]
) -> None:
    """The engine is away while its experiment is deleted. Mutation: nobody knows any more what to
    look for."""
    (tmp_path / "trial.py").write_text(TRIAL)
    (tmp_path / "lab.yml").write_text(LONG.format(base=tmp_path))
    command = [sys.executable, "-m", "dispatcher.cli"]
    seen_by_us = open(tmp_path / "seen", "w")  # noqa: SIM115 - trials wait to the end
    fcntl.flock(seen_by_us, fcntl.LOCK_EX)
    head = subprocess.Popen(
        [*command, "run", "lab.yml"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    queue = tmp_path / "queue"
    try:
        wait_until(lambda: len(list(queue.glob("*.state"))) == 2, "both are known to the queue")
        jobs = {each.stem for each in queue.glob("*.job")}
    finally:
        head.kill()
        head.wait()
    allocator = tmp_path / "installed/bequeath_queue/platform.py"
    text, look = allocator.read_text(), '        states = self._queue.glob(f"{self._label}'
    assert look in text
    away = "        raise bq.PassingBackendError('the queue is away')\n"
    allocator.write_text(text.replace(look, away + look))
    (folder,) = (tmp_path / "experiments").glob("lab-*")
    ran = subprocess.run(
        [*command, "experiment", "delete", folder.name, "--yes", "--folder", str(folder.parent)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    for name in jobs:
        (queue / f"{name}.cancel").touch()
    seen_by_us.close()
    wait_until(lambda: not list(queue.glob("*.job")), "the queue is empty")
    assert ran.returncode == 0, ran.stderr
    assert "look yourself whether allocations are left: queue: the queue is away" in ran.stderr
    assert "their names begin with" in ran.stderr
    assert jobs
    assert all(name in ran.stderr for name in jobs), (jobs, ran.stderr)
