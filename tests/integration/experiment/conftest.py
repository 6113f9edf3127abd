"""Whole experiments with real processes: head, tuner host, agent, trials."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest

from dispatcher.background import start_in_background
from dispatcher.core.model import Phase
from dispatcher.experiment.loader import build_experiment
from dispatcher.head import Head, create
from dispatcher.notices import Notice
from dispatcher.store.journal import SqliteJournal

CODE = Path(__file__).parent / "code"


def processes_of(folder: Path) -> list[psutil.Process]:
    """Everything that belongs to an experiment: its processes, and the trials below them."""
    found = []
    for process in psutil.process_iter():
        try:
            line = process.cmdline()
            environment = process.environ().get("BEQUEATH_SESSION", "")
        except psutil.Error:
            continue
        if any(str(folder) in word for word in line) or str(folder) in environment:
            found.append(process)
    return found


def wait_until(condition: Callable[[], object], what: str, timeout_s: float = 60.0) -> None:
    """Look until it holds; a bound on a hang, not a measure of speed."""
    deadline = time.monotonic() + timeout_s
    while not condition():
        assert time.monotonic() < deadline, f"never: {what}"
        time.sleep(0.02)


class Lab:
    """Makes and runs experiments below one folder."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folders: list[Path] = []

    def create(self, tuner: str = "Inheriting", function: str = "train", **keys: Any) -> Path:
        """An experiment with the tuner and trial of ``code/evolving.py``."""
        arguments = keys.pop("args", {})
        reuse = keys.pop("reuse", "inProcess")
        values = {
            "experimentName": "lab",
            "experimentWorkingDirectory": str(self.base),
            "tuner": {
                "className": f"evolving:{tuner}",
                "codeDirectory": str(CODE),
                "classArgs": arguments,
            },
            "trialFunction": f"evolving:{function}",
            "trialCodeDirectory": str(CODE),
            "trialConcurrency": 2,
            "retryBackoff": 0,
            "trialRetries": 0,
            "debug": True,
            "seed": 1,
            "trainingService": {"platform": "local", "reuseMode": reuse, "preload": ["numpy"]},
            **keys,
        }
        folder = create(build_experiment(values))
        self.folders.append(folder)
        return folder

    def run(self, folder: Path) -> tuple[Phase, list[Notice]]:
        """Lead it in this thread to its end."""
        notices: list[Notice] = []
        phase = Head(folder, on_notice=notices.append).run()
        return phase, notices

    def start(self, folder: Path) -> int:
        """Lead it in a process of its own; the process's id."""
        return start_in_background(folder)

    def rows(self, folder: Path) -> list[Any]:
        """The events of the journal."""
        journal = SqliteJournal.open(folder / "journal.sqlite")
        try:
            return [row.event for row in journal.rows()]
        finally:
            journal.close()

    def close(self) -> None:
        """Nothing may be left, whatever the test did."""
        for folder in self.folders:
            for process in processes_of(folder):
                try:
                    os.kill(process.pid, signal.SIGKILL)
                except ProcessLookupError:
                    pass


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A place for whole experiments."""
    one = Lab(tmp_path)
    try:
        yield one
    finally:
        one.close()
