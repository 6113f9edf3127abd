"""Experiments whose trials run on hosts with a real sshd each."""

from __future__ import annotations

import contextlib
import os
import shutil
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dispatcher.core import events as e
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.ports import JournalRow
from tests.support.checker import check_store, read_store
from tests.support.processes import end_processes_of, wait_until, words_of
from tests.support.ssh_hosts import Host, SshHosts, our_python, ssh_hosts

ROOT = Path(__file__).parents[3]
CODE = Path(__file__).parent / "code"

#: Where hosts have what is ``share`` here.
POINT = "/mnt/weights"

#: For anything: a machine under load takes its time.
PATIENCE_S = 240.0


def processes_on(host: Host) -> list[psutil.Process]:
    """All that run on a host, but for its first one."""
    if host.process is None:
        return []
    try:
        below: list[psutil.Process] = psutil.Process(host.first_pid).children(recursive=True)
    except psutil.NoSuchProcess:
        return []
    return below


def ours_on(host: Host) -> list[psutil.Process]:
    """The agent of a host, and what it runs."""
    return [p for p in processes_on(host) if any("trial_runtime" in word for word in words_of(p))]


def _end_ours_on(host: Host) -> bool:
    for process in ours_on(host):
        with contextlib.suppress(psutil.NoSuchProcess):
            process.kill()
    return not ours_on(host)


class Lab:
    """Hosts with two slots each, a share between them, and experiments on both."""

    def __init__(self, hosts: SshHosts, share: Path, base: Path) -> None:
        self.hosts = hosts
        self.share = share
        self.base = base
        self.folders: list[Path] = []
        self.heads: list[subprocess.Popen[bytes]] = []

    def machine(self, host_name: str, **keys: Any) -> dict[str, Any]:
        """The section of a host."""
        host = self.hosts[host_name]
        return {
            "host": host.address,
            "name": host_name,
            "user": "root",
            "keyFile": str(host.key),
            "knownHosts": str(host.known_hosts),
            "slots": 2,
            "python": sys.executable,
            "weightsRoot": f"{POINT}/{self.base.name}",
            **keys,
        }

    def service(self, *names: str, **keys: Any) -> dict[str, Any]:
        """The section of these hosts."""
        return {"platform": "ssh", "machineList": [self.machine(each) for each in names], **keys}

    def create(self, service: Any, **keys: Any) -> Path:
        """An experiment in which children inherit a counter of generations."""
        arguments = keys.pop("args", {})
        values = {
            "experimentName": "lab",
            "experimentWorkingDirectory": str(self.base / "experiments"),
            "tuner": {
                "className": "lineage_tuner:Lineage",
                "codeDirectory": str(CODE),
                "classArgs": arguments,
            },
            "trialFunction": "lineage_trial:main",
            "trialCodeDirectory": str(CODE),
            "trialConcurrency": 6,
            "maxTrialNumber": 18,
            "weightsRoot": str(self.share / self.base.name),
            "trialRetries": 0,
            "debug": True,
            "seed": 1,
            "fetch": "never",  # no logins but those that a test is about
            "trainingService": service,
            **keys,
        }
        folder = create(build_experiment(values))
        self.folders.append(folder)
        return folder

    def lead(self, folder: Path, *words: str) -> subprocess.Popen[bytes]:
        """A head that can reach the hosts, in a process of its own."""
        with (folder / "logs" / "head.stderr").open("ab") as errors:
            head = self.hosts.inside(
                [sys.executable, "-P", "-m", "dispatcher.background", str(folder), *words],
                env=environment(),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
            )
        self.heads.append(head)
        return head

    def rows(self, folder: Path) -> list[JournalRow]:
        """The journal so far."""
        return read_store(folder / "journal.sqlite")

    def events(self, folder: Path, kind: type[Any]) -> list[Any]:
        """Its events of a kind."""
        return [row.event for row in self.rows(folder) if isinstance(row.event, kind)]

    def ended_on(self, folder: Path) -> dict[int, str]:
        """Trial → worker of its last attempt."""
        with sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True) as store:
            return dict(store.execute("SELECT trial, worker FROM attempts ORDER BY attempt"))

    def attempts(self, folder: Path) -> list[tuple[int, int, str, str]]:
        """Trial, attempt, worker and reason of the end of all that have ended."""
        with sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True) as store:
            return store.execute(
                "SELECT trial, attempt, worker, end_reason FROM attempts"
                " WHERE end_reason IS NOT NULL ORDER BY trial, attempt"
            ).fetchall()

    def counted_metrics(self, folder: Path) -> dict[tuple[int, int], list[tuple[float, int]]]:
        """Trial and attempt → what was reported, in order: the number, and whether it was the
        final one. An attempt that was lost may have said something before."""
        found: dict[tuple[int, int], list[tuple[float, int]]] = {}
        with sqlite3.connect(f"file:{folder / 'journal.sqlite'}?mode=ro", uri=True) as store:
            for trial, attempt, number, final in store.execute(
                "SELECT trial, attempt, number, final FROM metrics WHERE counted"
                " ORDER BY trial, attempt, seq"
            ):
                found.setdefault((trial, attempt), []).append((number, final))
        return found

    def said(self, folder: Path) -> str:
        """What to look at when a test fails."""
        texts = [p.read_text(errors="replace")[-3000:] for p in sorted(folder.glob("logs/*"))]
        for host in self.hosts:
            for log in host.disk.glob("root/.bequeath/experiments/*/*/logs/agent.log"):
                texts.append(f"{host.name}: {log.read_text(errors='replace')[-2000:]}")
        return "\n".join(texts)

    def finish(self, folder: Path, head: subprocess.Popen[bytes]) -> None:
        """Wait for the end; the checker must be content, and hosts be left clean."""
        assert head.wait(PATIENCE_S) == 0, self.said(folder)
        assert check_store(folder / "journal.sqlite", over=True) == []
        for host in self.hosts:
            wait_until(lambda host=host: not ours_on(host), f"{host.name} is left clean")

    def until(self, condition: Any, what: str, folder: Path) -> None:
        """Wait for something; on failure, such as of the head, with all logs."""

        def look() -> Any:
            assert (self.heads[-1].poll() or 0) <= 0, "the head has failed"
            return condition()

        try:
            wait_until(look, what, PATIENCE_S)
        except AssertionError as error:
            raise AssertionError(f"{error}\n{self.said(folder)}") from error

    def close(self) -> None:
        """End what a test left, and take it away: the next one finds hosts as this one did."""
        for head in self.heads:
            if head.poll() is None:
                head.kill()
            head.wait(PATIENCE_S)
        for folder in self.folders:
            end_processes_of(folder)
        for host in self.hosts:
            if host.process is None:
                self.hosts.start(host.name)
            wait_until(lambda host=host: _end_ours_on(host), f"{host.name} is clean again")
            for made in host.disk.glob("root/.bequeath/experiments/*"):
                shutil.rmtree(made)


@pytest.fixture(scope="module")
def three_hosts(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[SshHosts, Path]]:
    folder = tmp_path_factory.mktemp("rig")
    share = folder / "share"
    share.mkdir()
    with ssh_hosts(folder / "hosts", 3, binds=our_python(), shares={POINT: share}) as hosts:
        yield hosts, share


@pytest.fixture
def lab(three_hosts: tuple[SshHosts, Path], tmp_path: Path) -> Iterator[Lab]:
    hosts, share = three_hosts
    one = Lab(hosts, share, tmp_path)
    try:
        yield one
    finally:
        one.close()


def environment() -> dict[str, str]:
    """Ours, with this checkout."""
    return {**os.environ, "PYTHONPATH": str(ROOT)}


def joined(lab: Lab, folder: Path) -> list[str]:
    """Workers that have joined so far, in order."""
    return [event.worker for event in lab.events(folder, e.WorkerJoined)]
