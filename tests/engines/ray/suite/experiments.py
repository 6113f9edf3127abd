"""Whole experiments on a real cluster, judged by the checker that reads only the journal."""

from __future__ import annotations

import contextlib
import gzip
import importlib.util
import os
import re
import shutil
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import psutil
import pytest

from dispatcher.core import events as e
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from tests.engines.ray.suite.conftest import SINGLE, section
from tests.support.checker import check_store, read_store
from tests.support.processes import end_processes_of, wait_until
from tests.support.ray_cluster import PYTHON, RayCluster

ROOT = Path(__file__).parents[4]
MACHINES = ROOT / "tests/integration/machines/code"
TRIALS, FOUNDERS = 60, 6

#: For anything: a machine under load takes its time.
PATIENCE_S = 400.0


class Lab:
    """A cluster, experiments on it, and their heads, which are processes of their own."""

    def __init__(self, cluster: RayCluster, base: Path) -> None:
        self.cluster = cluster
        self.base = base
        self.heads: list[subprocess.Popen[bytes]] = []
        self.folders: list[Path] = []

    def create(self, service: Any, **keys: Any) -> Path:
        """An experiment."""
        values = {
            "experimentName": "lab",
            "experimentWorkingDirectory": str(self.base / "experiments"),
            "trialRetries": 0,
            "seed": 1,
            "trainingService": service,
            **keys,
        }
        self.folders.append(create(build_experiment(values)))
        return self.folders[-1]

    def lead(self, folder: Path) -> subprocess.Popen[bytes]:
        """A head."""
        with (folder / "logs" / "head.stderr").open("ab") as errors:
            head = subprocess.Popen(
                [sys.executable, "-P", "-m", "dispatcher.background", str(folder)],
                env={**os.environ, "PYTHONPATH": str(ROOT)},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                start_new_session=True,
            )
        self.heads.append(head)
        return head

    def finish(self, folder: Path, head: subprocess.Popen[bytes]) -> None:
        """Wait for the end: the checker is content, nothing is left in the cluster, nor a key."""
        assert head.wait(PATIENCE_S) == 0, self.report(folder)
        assert check_store(folder / "journal.sqlite", over=True) == []
        wait_until(lambda: not self.cluster.actors(), "no actor is left")
        assert not list(folder.glob("agents/*/*.config")), "nor any keys"

    def events(self, folder: Path, kind: type[Any]) -> list[Any]:
        """Events of a kind in the journal so far."""
        rows = read_store(folder / "journal.sqlite")
        return [row.event for row in rows if isinstance(row.event, kind)]

    def ask(self, folder: Path, question: str) -> list[Any]:
        """Rows of its store."""
        with sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True) as store:
            return store.execute(question).fetchall()

    def report(self, folder: Path) -> str:
        """What to look at when a test fails."""
        files = [*sorted(folder.glob("logs/*")), *sorted(folder.glob("agents/*/logs/*"))]
        texts = [f"{path}: {path.read_text(errors='replace')[-3000:]}" for path in files]
        return "\n".join([*texts, str(self.cluster.actors())])

    def close(self) -> None:
        """End what a test left."""
        for head in self.heads:
            if head.poll() is None:
                head.kill()
            head.wait(PATIENCE_S)
        for folder in self.folders:
            end_processes_of(folder)


@pytest.fixture
def lab(cluster: RayCluster, tmp_path: Path) -> Iterator[Lab]:
    one = Lab(cluster, tmp_path)
    try:
        yield one
    finally:
        one.close()


def digits_in(folder: Path) -> dict[str, Any]:
    """The part of a file about sixty classifiers of digits that evolve."""
    folder.mkdir()
    for path in (ROOT / "tests/system/nfs/digits").glob("*.py"):
        shutil.copy(path, folder)
    shutil.copy(MACHINES / "plain_digits.py", folder)
    sklearn = importlib.util.find_spec("sklearn")
    assert sklearn is not None
    assert sklearn.origin is not None
    with gzip.open(Path(sklearn.origin).parent / "datasets/data/digits.csv.gz") as file:
        table = np.loadtxt(file, delimiter=",", dtype=np.uint8)
    np.savez(folder / "digits.npz", pixels=table[:, :-1], digits=table[:, -1])
    return {
        "tuner": {
            "className": "digits_tuner:Evolution",
            "codeDirectory": str(folder),
            "classArgs": {"founders": FOUNDERS},
        },
        "trialFunction": "plain_digits:main",
        "trialCodeDirectory": str(folder),
        "trialEnvironment": {
            "DIGITS": str(folder / "digits.npz"),
            "HOSTS": "-",
            "GO": str(folder / "go"),
        },
        "trialConcurrency": FOUNDERS,
        "maxTrialNumber": TRIALS,
    }


def lineage(trials: int, **arguments: Any) -> dict[str, Any]:
    """The part of a file about trials that inherit a counter of generations."""
    return {
        "tuner": {
            "className": "lineage_tuner:Lineage",
            "codeDirectory": str(MACHINES),
            "classArgs": arguments,
        },
        "trialFunction": "lineage_trial:main",
        "trialCodeDirectory": str(MACHINES),
        "trialConcurrency": 2,
        "maxTrialNumber": trials,
    }


def test_sixty_digits_in_three_actors(lab: Lab) -> None:
    """Children inherit on other nodes than their parents'. Mutation: an actor for each trial."""
    warm = {"slots": 2, "reuseMode": "inProcess", "preload": ["numpy"]}
    service = section(lab.cluster, "few", allocations=len(SINGLE), **warm)
    folder = lab.create(service, **digits_in(lab.base / "digits"))
    head = lab.lead(folder)
    wait_until(lambda: set(lab.cluster.actors().values()) == set(SINGLE), "an actor on each node")
    joined = lambda: len(lab.events(folder, e.WorkerJoined))  # noqa: E731
    wait_until(lambda: joined() == len(SINGLE), "all have joined")
    (lab.base / "digits" / "go").touch()
    lab.finish(folder, head)
    rows = lab.ask(folder, "SELECT id, parent, number FROM trials")
    results = {trial: value for trial, _, value in rows}
    assert len(results) == TRIALS
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    assert max(results.values()) >= max(results[trial] for trial in range(FOUNDERS))
    assert max(results.values()) > 0.85
    ran = dict(lab.ask(folder, "SELECT trial, worker FROM attempts"))
    assert len(set(ran.values())) == len(SINGLE)
    inherited = [(child, parent) for child, parent, _ in rows if parent is not None]
    assert len(inherited) == TRIALS - FOUNDERS
    assert any(ran[child] != ran[parent] for child, parent in inherited)
    assert joined() == len(SINGLE), "as many actors as there are workers"


def test_a_head_that_is_killed_finds_its_trials_running(lab: Lab) -> None:
    """The actor goes on without it, and is the same one afterwards."""
    service = section(lab.cluster, "few", allocations=1, slots=2)
    folder = lab.create(service, headGrace="120s", **lineage(6, wait_s=3.0))
    first = lab.lead(folder)
    wait_until(lambda: lab.events(folder, e.AttemptStarted), "a trial runs")
    first.send_signal(signal.SIGKILL)
    first.wait()
    (before,) = lab.cluster.actors()
    second = lab.lead(folder)
    wait_until(lambda: len(lab.events(folder, e.WorkerJoined)) == 2, "its agent is heard again")
    assert list(lab.cluster.actors()) == [before]
    lab.finish(folder, second)
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    started = {(each.trial, each.pid) for each in lab.events(folder, e.AttemptStarted)}
    assert len(started) == 6, "nothing was started again"


def test_actors_of_a_head_that_does_not_come_back_end_by_themselves(lab: Lab) -> None:
    """Their agents' leases are over. Mutation: an actor holds its place for ever."""
    service = section(lab.cluster, "few", allocations=2)
    folder = lab.create(service, headGrace="3s", **lineage(4, wait_s=600.0))
    head = lab.lead(folder)
    wait_until(lambda: len(lab.events(folder, e.WorkerJoined)) == 2, "two actors run")
    head.kill()
    head.wait()
    wait_until(lambda: not lab.cluster.actors(), "no actor is left")
    assert not list(folder.glob("agents/*/*.config")), "nor any keys"


def test_a_node_that_is_to_go_hands_over_before_it_has_gone(lab: Lab) -> None:
    """A spot market says so. Mutation: its trials run until they are killed with it."""
    few = section(lab.cluster, "few", allocations=1)
    folder = lab.create(few, trialStopGrace="1s", **lineage(1, wait_s=20.0))
    head = lab.lead(folder)
    wait_until(lambda: lab.events(folder, e.AttemptStarted), "a trial runs")
    (node,) = lab.cluster.actors().values()
    lab.cluster.drain(node, 15.0)
    try:
        wait_until(lambda: len(lab.events(folder, e.WorkerJoined)) == 2, "the next actor runs")
        assert node not in lab.cluster.actors().values(), "on another node"
        (ended,) = lab.events(folder, e.AttemptEnded)
        assert ended.reason.value == "preempted"
        lab.finish(folder, head)
        assert [x.reason.value for x in lab.events(folder, e.AttemptEnded)][1:] == ["finished"]
    finally:
        lab.cluster.crash(node)
        lab.cluster.start(node)
        lab.cluster.wait_for_nodes()


def rays_below(files: Path) -> list[psutil.Process]:
    """Processes of clusters whose files lie there, and their actors."""
    found = []
    for process in psutil.process_iter():
        with contextlib.suppress(psutil.Error):
            environment, line = process.environ(), " ".join(process.cmdline())
            if environment.get("TMPDIR") == str(files) and ("ray" in line or "LEASE_S" in line):
                found.append(process)
    return found


def test_a_cluster_that_is_started_for_an_experiment_ends_after_it(
    lab: Lab, short: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The next head finds it with what runs there; behind a head that does not come back it ends by
    itself. It listens to this machine alone."""
    own = {"actorResources": {}, "address": "start", "slots": 2, "allocations": 1}
    service = section(lab.cluster, "few", **own)
    monkeypatch.setenv("TMPDIR", str(short))
    folder = lab.create(service, headGrace="10s", **lineage(2, wait_s=600.0))
    first = lab.lead(folder)
    wait_until(lambda: lab.events(folder, e.AttemptStarted), "a trial runs")
    before = rays_below(short)
    numbers = {each.pid for each in before}
    held = [c for c in psutil.net_connections("tcp") if c.pid in numbers]
    heard = {c.laddr.ip for c in held if c.status == psutil.CONN_LISTEN}
    assert heard <= {"127.0.0.1", "::ffff:127.0.0.1", "::1"}
    assert heard
    first.kill()
    first.wait()
    second = lab.lead(folder)
    wait_until(lambda: len(lab.events(folder, e.WorkerJoined)) == 2, "it is heard again")
    second.kill()
    second.wait()
    pids = {each.pid for each in lab.events(folder, e.AttemptStarted)}
    assert len(pids) == 2, "nothing was started again"
    wait_until(lambda: not rays_below(short), "no process is left")
    assert not any(psutil.pid_exists(pid) for pid in pids)
    wait_until(lambda: not list(short.glob("bq-ray-*")), "nor a file of Ray's")


def test_nodes_that_see_a_shared_folder_alone(lab: Lab) -> None:
    """Logs and working directories lie there; code and runtime are brought, once an actor has
    looked over its node. Mutation: the experiment's own folder is written to by nodes."""
    shared = lab.base / "shared"
    shared.mkdir()
    brings = {"sharedFolder": str(shared), "bringCode": True, "probe": True}
    service = section(lab.cluster, "few", slots=2, **brings)
    folder = lab.create(service, weightsRoot=str(shared / "weights"), **lineage(8))
    lab.finish(folder, lab.lead(folder))
    assert {end.reason.value for end in lab.events(folder, e.AttemptEnded)} == {"finished"}
    assert trial(folder, "log", "0", "--raw").startswith("ran on ")
    assert "finished" in trial(folder, "show", "0")
    trial(folder, "fetch", "0", "--to", str(lab.base / "fetched"))
    assert (lab.base / "fetched/stdout").read_text().startswith("ran on ")
    assert list(shared.glob("bequeath/*/ray/logs/agent.log"))
    assert not list(shared.glob("bequeath/*/*/*.config")), "keys went with their actors"
    assert len(list(shared.glob("bequeath/.brought/code/*/lineage_trial.py"))) == 1
    assert len(list(folder.glob("agents/*.probed"))) == 1
    assert not list(folder.glob("agents/*/logs")), "nothing of agents lies here"


def trial(folder: Path, *words: str) -> str:
    """What ``bequeath trial …`` prints."""
    of = ["--experiment", folder.name, "--folder", str(folder.parent)]
    ran = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", "trial", *words[:2], *of, *words[2:]],
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    return ran.stdout


@pytest.fixture
def short() -> Iterator[Path]:
    """A folder whose path is short, since it will hold sockets."""
    with TemporaryDirectory(prefix="t-") as files:
        yield Path(files)


def test_the_first_trials_of_the_page_run_as_written(
    short: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """But for the Pythons, which are two here. The cluster that is started for them ends."""
    page = (ROOT / "docs/ray.md").read_text()
    found = re.search(r"\$ cat hello.yml\n(.*?)\$ bequeath", page, re.S)
    assert found is not None
    pythons = f"python: {PYTHON}, trialPython: {sys.executable}"
    text = found[1].replace("platform: ray,", f"platform: ray, {pythons},")
    (tmp_path / "hello.yml").write_text(text)
    monkeypatch.setenv("BEQUEATH_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("TMPDIR", str(short))
    monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}")
    ran = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", "run", "hello.yml"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=PATIENCE_S,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "10 trials: 10 succeeded" in ran.stdout + ran.stderr, ran.stdout + ran.stderr
    assert not rays_below(short), "no process is left"
    assert not list(short.glob("bq-ray-*"))
