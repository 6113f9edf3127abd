"""Whole experiments with real processes: head, tuner host, agent, trials."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.control.client import HeadClient
from dispatcher.core.model import Phase
from dispatcher.errors import DispatcherError
from dispatcher.experiment.loader import build_experiment
from dispatcher.experiments import processes
from dispatcher.experiments.creating import create
from dispatcher.head.head import Head
from dispatcher.notices import Notice
from dispatcher.store.journal import SqliteJournal
from tests.support.processes import end_processes_of

CODE = Path(__file__).parent / "code"


class Lab:
    """Makes and runs experiments below one folder."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.folders: list[Path] = []

    def create(
        self, tuner: str | dict[str, Any] = "Inheriting", function: str = "train", **keys: Any
    ) -> Path:
        """An experiment with the trial of ``code/evolving.py``, and a tuner of it or by section."""
        arguments = keys.pop("args", {})
        reuse = keys.pop("reuse", "inProcess")
        own = {
            "className": f"evolving:{tuner}",
            "codeDirectory": str(CODE),
            "classArgs": arguments,
        }
        values = {
            "experimentName": "lab",
            "experimentWorkingDirectory": str(self.base),
            "tuner": tuner if isinstance(tuner, dict) else own,
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
        return processes.start_in_background(folder)

    def snapshot(self, folder: Path) -> dict[str, Any]:
        """How things stand, by the head that leads; ``ended`` is -1 if none answers."""
        try:
            with HeadClient(folder) as head:
                return dict(head.ask("snapshot"))
        except DispatcherError:
            return {"ended": -1, "running": []}

    def hold(self, first: int) -> dict[str, str]:
        """A ``trialEnvironment`` in which trials from this one on wait for :meth:`let_go`."""
        return {"GATE": str(self.base / "gate"), "HELD": str(first)}

    def let_go(self) -> None:
        """What was held may end."""
        (self.base / "gate").touch()

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
            end_processes_of(folder)


@pytest.fixture
def lab(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Lab]:
    """A place for whole experiments. A head that is started may take as long as it likes to
    answer, and a tuner to be built."""
    monkeypatch.setattr(processes, "START_S", 240.0)
    monkeypatch.setattr(processes, "TUNER_S", 240.0)
    one = Lab(tmp_path)
    try:
        yield one
    finally:
        one.close()
