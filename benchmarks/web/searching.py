"""A real search at a pace: head, tuner host and worker are processes of their own, as always."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

import psutil

from dispatcher.control.client import RunFile
from dispatcher.queries import ExperimentReader
from tests.support.processes import end_processes_of

TRIALS = Path(__file__).parents[1] / "trials"
_PATIENCE_S = 120.0


class PacedSearch:
    """One that runs.

    Args:
        home: the folder of experiments.
        rate: trials a second.
    """

    def __init__(self, home: Path, rate: float) -> None:
        self.home = home
        self._environment = {**os.environ, "BEQUEATH_HOME": str(home)}
        file = home.parent / "experiment.yml"
        file.write_text(json.dumps(_file(rate)))
        self._command("create", str(file))
        (self.folder,) = home.iterdir()
        deadline = time.monotonic() + _PATIENCE_S
        while self.over() == 0:
            if time.monotonic() > deadline:
                raise TimeoutError(f"no trial of {self.folder} has ended")
            time.sleep(0.05)
        run = RunFile.read(self.folder)
        assert run is not None, "its head leads"
        self.head = psutil.Process(run.pid)

    @property
    def name(self) -> str:
        """Its id."""
        return self.folder.name

    def over(self) -> int:
        """Trials that have ended."""
        try:
            with closing(ExperimentReader.open(self.folder)) as reader:
                (row,) = reader.rows("SELECT count(*) AS many FROM trials WHERE ended_at > 0", ())
        except Exception:  # noqa: BLE001 - no store yet
            return 0
        return int(row["many"])

    def head_cpu_s(self) -> float:
        """Processor seconds of the head, all its threads, those that have ended included."""
        return time.clock_gettime((~self.head.pid << 3) | 2)  # as clock_getcpuclockid(3) has it

    def _command(self, *words: str) -> None:
        subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", *words], env=self._environment, check=True,
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, timeout=_PATIENCE_S,
        )  # fmt: skip

    def end(self) -> None:
        """Kill it."""
        self._command("kill", "--yes", self.name)


@contextmanager
def paced_search(folder: Path, rate: float) -> Iterator[PacedSearch]:
    """A search below a folder, until the block is left."""
    home = folder / "home"
    home.mkdir()
    try:
        search = PacedSearch(home, rate)
        try:
            yield search
        finally:
            search.end()
    finally:
        end_processes_of(home)  # one that did not come up in time may still do so


def _file(rate: float) -> dict[str, object]:
    return {
        "experimentName": "paced",
        "tuner": {
            "className": "tuners_for_benchmarks:Paced",
            "codeDirectory": str(TRIALS),
            "classArgs": {"rate": rate},
        },
        "trialFunction": "empty:train",
        "trialCodeDirectory": str(TRIALS),
        "trialConcurrency": 2,
        "maxTrialNumber": 10_000_000,
        "trainingService": {"platform": "local", "reuseMode": "inProcess"},
    }
