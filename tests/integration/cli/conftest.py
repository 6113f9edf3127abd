"""The command line as a user has it: processes of their own, in a folder of the user's."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher import queries
from dispatcher.errors import ExperimentNotFound, StoreError
from tests.support.processes import end_processes_of, wait_until

#: A bound on a hang, not a measure of speed.
PATIENCE_S = 200.0

REPOSITORY = Path(__file__).parents[3]

EXPERIMENT = """\
experimentName: chain
tuner: {className: "search:Chain", codeDirectory: .}
trialFunction: train:main
trialConcurrency: 2
maxTrialNumber: 6
trialStopGrace: 1s
trialRetries: 0
headGrace: 5s
experimentWorkingDirectory: kept
trainingService: {platform: local, reuseMode: none}
"""

TUNER = """\
from tuners import Tuner


class Chain(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        parameters = {"n": parameter_id}
        if parameter_id >= 2:
            self.wait_for(parameter_id - 2)
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""

#: Trials wait for the file ``go``, so that a test decides when they end.
TRIAL = """\
import os
from tests.support import hold

import trial_runtime


def main(parameters):
    print("\\x1b[2Jtrial", parameters["n"], flush=True)
    trial_runtime.report_intermediate(0.5)
    hold.until("go")
    return float(parameters["n"])
"""


class Place:
    """A user's folder with an experiment in it, and a shell there."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept = folder / "kept"
        for name, text in (
            ("experiment.yml", EXPERIMENT),
            ("search.py", TUNER),
            ("train.py", TRIAL),
        ):
            (folder / name).write_text(text)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "BEQUEATH_HOME": str(self.kept),
            "XDG_STATE_HOME": str(folder / "state"),
        }
        self._started: list[subprocess.Popen[str]] = []

    def go(self) -> None:
        """Let all trials end."""
        (self.folder / "go").touch()

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command that goes on."""
        process = subprocess.Popen(
            [sys.executable, "-m", "dispatcher.cli", *words],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def forget(self, process: subprocess.Popen[str]) -> None:
        """Expect no more of a command: the test has had it killed."""
        self._started.remove(process)

    def end(self, process: subprocess.Popen[str], code: int) -> None:
        """End a command by SIGTERM, and have it exit with a code."""
        process.terminate()
        out, err = process.communicate(timeout=PATIENCE_S)
        self._started.remove(process)
        assert process.returncode == code, f"{process.returncode}\n{out}\n{err}"

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command to its end and return what it answered."""
        out, err = self.both(*words, code=code)
        return out if code == 0 else err

    def both(self, *words: str, code: int = 0) -> tuple[str, str]:
        """Run a command to its end and return what it wrote to stdout and to stderr."""
        process = self.start(*words)
        out, err = process.communicate(timeout=PATIENCE_S)
        self._started.remove(process)
        assert process.returncode == code, f"{words} → {process.returncode}\n{out}\n{err}"
        return out, err

    def json(self, *words: str) -> Any:
        """The same, with ``--json``."""
        return json.loads(self(*words, "--json"))

    @property
    def experiment(self) -> Path:
        """The folder of the only experiment."""
        (folder,) = self.kept.iterdir()
        return folder

    def trials(self) -> list[queries.TrialSummary]:
        """As its store has them; none before there is one."""
        try:
            with queries.ExperimentReader.open(self.experiment) as reader:
                return queries.list_trials(reader)
        except (FileNotFoundError, ValueError, ExperimentNotFound, StoreError):
            return []  # the experiment is being laid down

    def wait_until_running(self, many: int = 2) -> None:
        """Until so many trials have reported a metric."""
        self.wait_until(lambda: self._reported() >= many, f"{many} trials run")

    def _reported(self) -> int:
        running = [one.id for one in self.trials() if one.state == "running"]
        if not running:
            return 0
        with queries.ExperimentReader.open(self.experiment) as reader:
            return sum(bool(queries.metrics(reader, trial)) for trial in running)

    def wait_until(self, condition: Callable[[], object], what: str) -> None:
        """Look until it holds; a bound on a hang, not a measure of speed."""

        def look() -> object:
            for process in self._started:
                assert process.poll() in (None, 0), f"ended before {what}: {process.communicate()}"
            return condition()

        wait_until(look, what, PATIENCE_S)

    def close(self) -> None:
        """Nothing may be left, whatever the test did."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        if self.kept.is_dir():
            end_processes_of(self.kept)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    """A user's folder."""
    one = Place(tmp_path)
    try:
        yield one
    finally:
        one.close()
