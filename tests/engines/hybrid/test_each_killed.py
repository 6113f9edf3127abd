"""One experiment on this machine, by SSH, in Slurm's jobs and in Kubernetes' pods, all at once;
each of them dies in turn."""

from __future__ import annotations

import json
import shutil
import sqlite3
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import psutil
import pytest

from tests.support import slurm_cluster, sshd
from tests.support.digits import TRIALS, Digits, digits
from tests.support.kubernetes import real
from tests.support.processes import wait_until, words_of
from tests.support.slurm_cluster import SlurmCluster

_MISSING = sshd.why_not() or slurm_cluster.why_not() or real.why_not()

pytestmark = [
    pytest.mark.needs("sshd"),
    pytest.mark.needs("slurm"),
    pytest.mark.needs("kubernetes"),
    pytest.mark.slow,
    pytest.mark.timeout(600),
    pytest.mark.skipif(bool(_MISSING), reason=_MISSING or "all is there"),
]


class Platforms(NamedTuple):
    """Two nodes of each cluster, and an sshd; ``shared`` is a folder that all of them see."""

    ssh: sshd.Sshd
    slurm: SlurmCluster
    kubernetes: real.RealCluster
    shared: Path

    def services(self) -> list[dict[str, Any]]:
        """The cheapest first: what stands below ``trainingService``."""
        machine = {
            "host": "127.0.0.1",
            "name": "desk",
            "port": self.ssh.port,
            "keyFile": str(self.ssh.folder / "client_key"),
            "knownHosts": str(self.ssh.folder / "known_hosts"),
            "workFolder": str(self.shared / "desk"),
            "python": sys.executable,
        }
        here = {"headAddress": "127.0.0.1", "probe": False}
        return [
            {"platform": "local"},
            {"platform": "ssh", "machineList": [machine], "cost": 1},
            {"platform": "slurm", "cpus": 1, "wallTime": "1h", "cost": 2, **here},
            {
                "platform": "kubernetes",
                "kubeconfig": self.kubernetes.kubeconfig(),
                "image": "python:3",
                "python": sys.executable,
                "volumes": [{"hostPath": str(self.shared), "at": str(self.shared)}],
                "cost": 3,
                **here,
            },
        ]

    def nothing_is_left(self) -> None:
        """Each scheduler knows nothing of ours any more."""
        wait_until(lambda: not self.slurm.run("squeue", "--noheader"), "no job of Slurm is left")
        there = self.kubernetes
        wait_until(lambda: there.all("jobs") + there.all("pods") == [], "no Job or pod is left")
        assert there.containers() == []


@pytest.fixture
def platforms() -> Iterator[Platforms]:
    with ExitStack() as stack:
        base = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        shared = Path(stack.enter_context(tempfile.TemporaryDirectory(dir="/dev/shm")))
        server = stack.enter_context(sshd.running(base / "sshd"))
        slurm = stack.enter_context(SlurmCluster(base / "slurm", nodes=2))
        nodes = ("n1", "n2")
        cluster = stack.enter_context(real.real_cluster(base / "k8s", nodes=nodes, cpus=4))
        yield Platforms(server, slurm, cluster, shared)


def kill_agent(pid: int) -> None:
    """SIGKILL for the agent above a trial's process."""
    above = [
        each for each in psutil.Process(pid).parents() if "trial_runtime.agent" in words_of(each)
    ]
    assert above, "no agent is above it"
    above[0].kill()


def crash_node_of_slurm(there: Platforms) -> None:
    (node,) = there.slurm.run("squeue", "--noheader", "--states=R", "--format=%N").split()
    there.slurm.crash(node)


def crash_node_of_kubernetes(there: Platforms) -> None:
    (pod,) = there.kubernetes.running()
    there.kubernetes.kubelet("crash", pod["spec"]["nodeName"])


def looks_into(lab: Digits, worker: str, trial: int) -> None:
    """Output, files and a shell beside a trial are what they are on one machine."""
    number = str(trial)
    printed = lambda: lab.ask("log", number, "--raw").stdout == "trained\n"  # noqa: E731
    wait_until(printed, f"its output is shown: {worker}")
    listed = lab.ask("files", number, "--json")
    assert [each["path"] for each in json.loads(listed.stdout)["files"]] == ["stdout"], worker
    there = lab.folder / worker
    assert lab.ask("fetch", number, "--to", str(there)).returncode == 0
    assert (there / "stdout").read_text() == "trained\n"
    ran = lab.ask("shell", number, "--", "sh", "-c", "echo $BEQUEATH_EXPERIMENT $ALLOWED; exit 7")
    if worker == "kubernetes" and shutil.which("kubectl") is None:
        assert "kubectl is not installed here" in ran.stderr
        return
    assert ran.returncode == 7, (worker, ran.stderr)
    assert ran.stdout.split() == [lab.journal.parent.name, str(lab.allowed)]


def lost(lab: Digits, worker: str) -> bool:
    return worker in [each.worker for each in lab.losses()]


def has_done(lab: Digits, trials: int) -> bool:
    return lab.done() >= trials


def all_run(lab: Digits) -> dict[str, tuple[int, int]]:
    """Wait until each platform has a trial; which, and its process there."""
    seen: dict[str, tuple[int, int]] = {}

    def look() -> bool:
        lab.done()  # fails where the head has ended
        seen.clear()
        with suppress(ValueError, sqlite3.Error):  # its journal is being made
            seen.update(lab.running())
        return set(seen) == {"local", "desk", "slurm", "kubernetes"}

    wait_until(look, f"all platforms run trials: {lab.text()}")
    return seen


def test_sixty_trials_outlive_each_of_four_platforms(platforms: Platforms, tmp_path: Path) -> None:
    """An agent here is killed, and that of an SSH host; a node of Slurm loses its power, and all
    that runs on one of Kubernetes. No result is lost or there twice, children inherit from one
    platform to another, and each platform runs trials again.

    Mutations: a worker that was lost is not launched again; the loss of one stops placement on the
    others; what a lost attempt saved is inherited."""
    deaths: dict[str, Callable[[int], None]] = {
        "kubernetes": lambda _: crash_node_of_kubernetes(platforms),
        "slurm": lambda _: crash_node_of_slurm(platforms),
        "desk": kill_agent,
        "local": kill_agent,
    }
    services, variables = platforms.services(), platforms.slurm.environment
    with digits(tmp_path / "lab", services, platforms.shared, variables) as lab:
        allowed = 0
        died: list[tuple[str, int]] = []
        running = all_run(lab)
        for worker in ("slurm", "kubernetes"):  # of the others tests of their own look into it
            looks_into(lab, worker, running[worker][0])
        for name, kill in deaths.items():
            trial, pid = all_run(lab)[name]
            kill(pid)
            died.append((name, trial))
            wait_until(partial(lost, lab, name), f"{name} is lost")
            allowed += 10
            lab.allow(allowed)
            wait_until(partial(has_done, lab, allowed), f"trials go on without {name}")
        all_run(lab)
        lab.allow(TRIALS)
        lab.ends_well(300)
        lost_ones = dict.fromkeys(each.worker for each in lab.losses())
        assert list(lost_ones) == list(deaths), "in this order"
        with closing(sqlite3.connect(lab.journal)) as store:
            ran = store.execute("SELECT trial, worker FROM attempts ORDER BY attempt").fetchall()
            parents = dict(store.execute("SELECT id, parent FROM trials WHERE parent IS NOT NULL"))
        for name, trial in died:
            where = [worker for each, worker in ran if each == trial]
            assert where[0] == name
            assert len(where) > 1, "what ran there ran again"
        shown = lab.ask("show", str(dict(died)["slurm"])).stdout
        assert "the node of its allocation is lost" in shown, shown
        last = dict(ran)
        came = {last[child] for child, parent in parents.items() if last[parent] != last[child]}
        assert came == set(deaths), "each has children of parents elsewhere"
    platforms.nothing_is_left()
