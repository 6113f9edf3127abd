"""Experiments whose trials run in jobs of a real cluster."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from tests.support.checker import check_store, read_store
from tests.support.processes import end_processes_of, wait_until
from tests.support.slurm_cluster import SlurmCluster

ROOT = Path(__file__).parents[3]

#: For anything: a machine under load takes its time.
PATIENCE_S = 300.0


class Lab:
    """A cluster, experiments on it, and their heads, which are processes of their own."""

    def __init__(self, cluster: SlurmCluster, base: Path) -> None:
        self.cluster = cluster
        self.base = base
        self.heads: list[subprocess.Popen[bytes]] = []
        self.folders: list[Path] = []

    def create(self, service: Mapping[str, Any], **keys: Any) -> Path:
        """An experiment on the cluster."""
        values = {
            "experimentName": "lab",
            "experimentWorkingDirectory": str(self.base / "experiments"),
            "trialRetries": 0,
            "seed": 1,
            "trainingService": {
                "platform": "slurm",
                "headAddress": "127.0.0.1",
                "probe": False,
                **service,
            },
            **keys,
        }
        self.folders.append(create(build_experiment(values)))
        return self.folders[-1]

    def lead(self, folder: Path, *, before: str = "") -> subprocess.Popen[bytes]:
        """A head; ``before``: a folder that comes first on its PATH."""
        path = f"{before}{os.pathsep}" if before else ""
        variables = {**os.environ, **self.cluster.environment, "PYTHONPATH": str(ROOT)}
        with (folder / "logs" / "head.stderr").open("ab") as errors:
            head = subprocess.Popen(
                [sys.executable, "-P", "-m", "dispatcher.background", str(folder)],
                env={**variables, "PATH": path + os.environ["PATH"]},
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
        wait_until(lambda: not self.cluster.run("squeue", "--noheader"), "no job is left")
        left = [path.name for path in folder.glob("agents/*/*") if "." in path.name]
        assert not [name for name in left if name.endswith((".config", ".variables"))], left

    def events(self, folder: Path, kind: type[Any]) -> list[Any]:
        """Events of a kind in the journal so far."""
        rows = read_store(folder / "journal.sqlite")
        return [row.event for row in rows if isinstance(row.event, kind)]

    def ask(self, folder: Path, question: str) -> list[Any]:
        """Rows of its store."""
        with sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True) as store:
            return store.execute(question).fetchall()

    def jobs(self, folder: Path) -> list[tuple[str, ...]]:
        """Number, name and state of all jobs of an experiment, ended ones included."""
        listed = self.cluster.run(
            "squeue", "--noheader", "--array", "--states=all", "--format=%i|%j|%T"
        )
        rows = [tuple(line.split("|")) for line in listed.splitlines()]
        return [row for row in rows if row[1].startswith(folder.name)]

    def report(self, folder: Path) -> str:
        """What to look at when a test fails."""
        files = [*sorted(folder.glob("logs/*")), *sorted(folder.glob("agents/*/logs/*"))]
        texts = [f"{path}: {path.read_text(errors='replace')[-3000:]}" for path in files]
        return "\n".join([*texts, str(self.jobs(folder))])

    def close(self) -> None:
        """End what a test left."""
        for head in self.heads:
            if head.poll() is None:
                head.kill()
            head.wait(PATIENCE_S)
        self.cluster.run("scancel", f"--user={os.geteuid()}", check=False)
        for folder in self.folders:
            end_processes_of(folder)


@pytest.fixture(scope="module")
def cluster() -> Iterator[SlurmCluster]:
    """A cluster of three nodes, which do not see the folder ``hidden`` of this machine."""
    with TemporaryDirectory(prefix="slurm-") as folder:
        hidden = Path(folder, "hidden")
        hidden.mkdir()
        with SlurmCluster(Path(folder, "c"), hidden=hidden) as one:
            yield one


@pytest.fixture
def lab(cluster: SlurmCluster, tmp_path: Path) -> Iterator[Lab]:
    one = Lab(cluster, tmp_path)
    try:
        yield one
    finally:
        one.close()


def wrapper_of(program: str, script: str, folder: Path) -> str:
    """A folder with a program that stands before a real one, which it gets as ``$REAL``."""
    real = shutil.which(program)
    folder.mkdir()
    path = folder / program
    path.write_text(f"#!/bin/sh\nREAL={real}\n{script}\n")
    path.chmod(0o755)
    return str(folder)


def joins(lab: Lab, folder: Path) -> int:
    """How often a worker has joined so far."""
    return len(lab.events(folder, e.WorkerJoined))
