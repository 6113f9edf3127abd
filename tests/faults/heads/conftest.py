"""One experiment whose trials run until a test lets them go, and its heads."""

from __future__ import annotations

import json
import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dispatcher.control.client import HeadClient, RunFile
from dispatcher.core import events as e
from dispatcher.errors import DispatcherError
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments.creating import create
from dispatcher.queries.reader import ExperimentReader
from dispatcher.queries.trials import metrics
from tests.support import processes
from tests.support.checker import check_store
from tests.support.processes import end_processes_of, find_process, left_of, processes_of
from trial_runtime import failpoints

ROOT = Path(__file__).parents[3]
CODE = Path(__file__).parent / "code"

#: A bound on a hang, for machines on which everything else runs as well (seconds).
PATIENCE_S = 180.0


def wait_until(condition: Callable[[], object], what: str) -> None:
    """Look until it holds."""
    processes.wait_until(condition, what, PATIENCE_S)


class Steady:
    """An experiment of ``trials`` trials, two at a time, that end after ``steps``, or when they
    are released."""

    def __init__(
        self,
        base: Path,
        *,
        trials: int = 4,
        steps: int | None = None,
        helper: bool = False,
        reuse: str = "inProcess",
        **keys: Any,
    ) -> None:
        self.base = base
        self.trials = trials
        self.releases = base / "releases"
        self.releases.mkdir(parents=True)
        self.heads: list[subprocess.Popen[bytes]] = []
        self.folder = create(
            build_experiment(
                {
                    "experimentName": "steady",
                    "experimentWorkingDirectory": str(base),
                    "tuner": {
                        "className": "steady:Steady",
                        "codeDirectory": str(CODE),
                        "classArgs": {
                            "folder": str(self.releases),
                            "steps": steps,
                            "helper": helper,
                        },
                    },
                    "trialFunction": "steady:count",
                    "trialCodeDirectory": str(CODE),
                    "trialConcurrency": 2,
                    "maxTrialNumber": trials,
                    "trialRetries": 0,
                    "retryBackoff": 0,
                    "debug": True,
                    "trainingService": {
                        "platform": "local",
                        "reuseMode": reuse,
                        "preload": ["numpy"],
                    },
                    **keys,
                }
            )
        )

    # -- heads -----------------------------------------------------------------------------

    def lead(
        self, *, take_over: bool = False, by: str = "dispatcher.background", plan: str = ""
    ) -> subprocess.Popen[bytes]:
        """A head in a process of its own; does not wait for anything."""
        words = {
            "dispatcher.background": [str(self.folder)],
            "dispatcher.cli": ["resume", str(self.folder)],
        }[by]
        with (self.base / f"stderr{len(self.heads)}").open("wb") as stderr:
            head = subprocess.Popen(
                [sys.executable, "-P", "-m", by, *words, *["--take-over"] * take_over],
                env={**os.environ, "PYTHONPATH": str(ROOT), failpoints.VARIABLE: plan},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=stderr,
                start_new_session=True,
            )
        self.heads.append(head)
        return head

    def lead_and_run(self, **how: Any) -> subprocess.Popen[bytes]:
        """A head, waited for until both slots are in use and it has metrics of both."""
        head = self.lead(**how)
        wait_until(lambda: self.leads(head), "the head answers")
        wait_until(lambda: len(self.counting()) == 2, "two trials count")
        return head

    def leads(self, head: subprocess.Popen[bytes]) -> bool:
        """Whether this one answers."""
        assert head.poll() is None, self.said(head)
        run = RunFile.read(self.folder)
        return run is not None and run.pid == head.pid and self.snapshot() is not None

    def said(self, head: subprocess.Popen[bytes]) -> str:
        """Its last words."""
        path = self.base / f"stderr{self.heads.index(head)}"
        return path.read_text() if path.exists() else ""

    def snapshot(self) -> dict[str, Any] | None:
        """How things stand, by the head that leads; None if it does not answer."""
        try:
            with HeadClient(self.folder, timeout_s=2.0) as head:
                return head.ask("snapshot")  # type: ignore[no-any-return]
        except DispatcherError:
            return None

    def counting(self) -> dict[int, int]:
        """Running trials and how far the head has heard them count."""
        running = (self.snapshot() or {"running": []})["running"]
        return {one["trial"]: json.loads(one["last"]) for one in running if one["last"]}

    def stop(self, process: subprocess.Popen[bytes] | psutil.Process) -> None:
        """SIGSTOP, and until it stands still."""
        os.kill(process.pid, signal.SIGSTOP)
        wait_until(
            lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED, "it is stopped"
        )

    def stop_between_commits(self, head: subprocess.Popen[bytes]) -> None:
        """SIGSTOP for a head at a moment at which it does not hold the store's lock."""
        while True:
            self.stop(head)
            store = sqlite3.connect(
                self.folder / "journal.sqlite", isolation_level=None, timeout=0.1
            )
            try:
                store.execute("BEGIN IMMEDIATE")
                store.execute("ROLLBACK")
                return
            except sqlite3.OperationalError:
                self.go_on(head)
            finally:
                store.close()

    def go_on(self, process: subprocess.Popen[bytes] | psutil.Process) -> None:
        """SIGCONT."""
        os.kill(process.pid, signal.SIGCONT)

    def kill(self, head: subprocess.Popen[bytes]) -> None:
        """SIGKILL, and until it is gone."""
        head.kill()
        head.wait()

    # -- trials ----------------------------------------------------------------------------

    def release(self, *trials: int, code: int | None = None) -> None:
        """Let these trials end; all of them, if none is named."""
        for trial in trials or range(self.trials):
            (self.releases / str(trial)).write_text("" if code is None else str(code))

    def processes(self, module: str) -> list[psutil.Process]:
        """The tuner hosts, or the agents, of this experiment."""
        found = []
        for process in processes_of(self.folder):
            try:
                if module in process.cmdline() and process.status() != psutil.STATUS_ZOMBIE:
                    found.append(process)
            except psutil.Error:
                continue
        return found

    @property
    def agent(self) -> psutil.Process:
        """The only one."""
        return find_process(self.folder, "trial_runtime.agent")

    # -- judgement -------------------------------------------------------------------------

    def events(self) -> list[e.Event]:
        """The journal."""
        from dispatcher.store import SqliteJournal

        journal = SqliteJournal.open(self.folder / "journal.sqlite")
        try:
            return [row.event for row in journal.rows()]
        finally:
            journal.close()

    def ends(self) -> dict[tuple[int, int], e.AttemptEnded]:
        """How attempts ended."""
        found = [x for x in self.events() if isinstance(x, e.AttemptEnded)]
        assert len({(x.trial, x.attempt) for x in found}) == len(found)
        return {(x.trial, x.attempt): x for x in found}

    def assert_nothing_happened(self) -> None:
        """All trials ended in their first attempt, no worker was lost, no metric is missing,
        and no process is left."""
        assert check_store(self.folder / "journal.sqlite") == []
        assert not [x for x in self.events() if isinstance(x, e.WorkerLost)]
        assert set(self.ends()) == {(trial, 1) for trial in range(self.trials)}
        for trial in range(self.trials):
            self.assert_complete(trial)
        assert left_of(self.folder, PATIENCE_S) == []

    def assert_complete(self, trial: int) -> None:
        """It counted from 0 without a gap, and its result is the number of its words."""
        with ExperimentReader.open(self.folder) as reader:
            told = metrics(reader, trial)
        values = [one.value for one in told if not one.final]
        assert values == list(range(len(values))), f"trial {trial}"
        assert [one.value for one in told if one.final] == [len(values)], f"trial {trial}"

    def close(self) -> None:
        """Nothing is left, whatever the test did."""
        for head in self.heads:
            if head.poll() is None:
                head.kill()
            head.wait()
        end_processes_of(self.folder)


@pytest.fixture
def steady(tmp_path: Path) -> Iterator[Callable[..., Steady]]:
    """Makes experiments, each below a folder of its own."""
    made: list[Steady] = []

    def one(**keys: Any) -> Steady:
        made.append(Steady(tmp_path / str(len(made)), **keys))
        return made[-1]

    try:
        yield one
    finally:
        for each in made:
            each.close()
