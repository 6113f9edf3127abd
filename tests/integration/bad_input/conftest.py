"""A user who gets things wrong: a folder with a tuner, a trial and an experiment file, and the
command line to run it with. All processes are real."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from dispatcher.control.client import HeadClient
from dispatcher.core import events as e
from dispatcher.errors import DispatcherError
from dispatcher.store.journal import SqliteJournal
from tests.support.checker import check_store
from tests.support.processes import end_processes_of, left_of, wait_until

REPOSITORY = Path(__file__).parents[3]

#: A tuner that proposes and listens, and notes what it hears in ``heard.txt``.
TUNER = """\
from tuners import Tuner


class Plain(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        return {"n": parameter_id}

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        note("result", parameter_id, value)

    def trial_end(self, parameter_id, success, **kwargs):
        note("end", parameter_id, success)


def note(*words):
    with open("heard.txt", "a") as file:
        print(*words, file=file)
"""

TRIAL = """\
def main(parameters):
    return float(parameters["n"])
"""


class Answer(NamedTuple):
    """How a command ended."""

    code: int
    out: str
    err: str

    @property
    def said(self) -> str:
        """All that the user saw."""
        return self.err + self.out


class User:
    """Writes files, types commands, looks at what is left."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.kept = folder / "kept"
        self.write("tuner.py", TUNER)
        self.write("trial.py", TRIAL)
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(REPOSITORY),
            "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
            "NO_COLOR": "1",
            "COLUMNS": "200",
            "XDG_STATE_HOME": str(folder / "state"),
            "HERE": str(folder),
        }
        self._started: list[subprocess.Popen[str]] = []

    def write(self, name: str, text: str) -> Path:
        """A file in the user's folder."""
        path = self.folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        return path

    def experiment(self, **keys: Any) -> str:
        """Write ``experiment.yml``: the tuner and trial of this folder, changed by ``keys``.
        ``reuse`` is the reuse mode; a key of None is left out."""
        reuse = keys.pop("reuse", "inProcess")
        values = {
            "experimentName": "bad",
            "experimentWorkingDirectory": "kept",
            "tuner": {"className": "tuner:Plain", "codeDirectory": "."},
            "trialFunction": "trial:main",
            "trialConcurrency": 2,
            "maxTrialNumber": 3,
            "trialRetries": 0,
            "retryBackoff": 0,
            "trialStopGrace": "1s",
            "headGrace": "5s",
            "debug": True,
            "seed": 1,
            "trainingService": {"platform": "local", "reuseMode": reuse},
            **keys,
        }
        values = {key: value for key, value in values.items() if value is not None}
        # One key a line, so that places in the file mean something; JSON is YAML.
        lines = [f"{key}: {json.dumps(value)}" for key, value in values.items()]
        self.write("experiment.yml", "\n".join(lines) + "\n")
        return "experiment.yml"

    def start(self, *words: str) -> subprocess.Popen[str]:
        """Start a command that goes on; ``python`` as the first word starts a script."""
        # As the installed command does it: without the user's own folder on its path.
        ours = ("-P", "-m", "dispatcher.cli", *words)
        module = words[1:] if words[0] == "python" else ours
        process = subprocess.Popen(
            [sys.executable, *module],
            cwd=self.folder,
            env=self.environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        self._started.append(process)
        return process

    def finish(self, process: subprocess.Popen[str], timeout_s: float = 240.0) -> Answer:
        """Wait for its end; it may not show a traceback of ours."""
        out, err = process.communicate(timeout=timeout_s)
        self._started.remove(process)
        assert "fault of bequeath" not in err, err
        return Answer(process.returncode, out, err)

    def run(self, **keys: Any) -> Answer:
        """Write the file and run it to its end. Nothing is left, and the journal is intact."""
        answer = self.type("run", self.experiment(**keys))
        if self.kept.exists() and any(self.kept.iterdir()):
            self.assert_intact()
        return answer

    def type(self, *words: str) -> Answer:
        """Run a command to its end."""
        return self.finish(self.start(*words))

    @property
    def lab(self) -> Path:
        """The folder of the newest experiment."""
        return max(self.kept.iterdir(), key=lambda path: path.stat().st_mtime)

    def assert_intact(self) -> None:
        """No process is left, no socket, and the journal keeps its promises."""
        assert left_of(self.lab) == []
        assert not (self.lab / "run.json").exists()
        assert check_store(self.lab / "journal.sqlite") == []

    def rows(self) -> list[Any]:
        """The events of the journal."""
        journal = SqliteJournal.open(self.lab / "journal.sqlite")
        try:
            return [row.event for row in journal.rows()]
        finally:
            journal.close()

    def ended(self) -> dict[int, e.AttemptEnded]:
        """How the newest attempt of each trial ended."""
        return {row.trial: row for row in self.rows() if isinstance(row, e.AttemptEnded)}

    def heard(self) -> list[str]:
        """What the tuner noted."""
        try:
            return (self.folder / "heard.txt").read_text().splitlines()
        except FileNotFoundError:
            return []

    def snapshot(self) -> dict[str, Any]:
        """What the running head says of itself; empty before it answers."""
        try:
            with HeadClient(self.lab) as head:
                return dict(head.ask("snapshot"))
        except (DispatcherError, FileNotFoundError, ValueError):
            return {}

    def wait_until_running(self, many: int = 1) -> None:
        """Until so many trials run."""
        wait_until(lambda: len(self.snapshot().get("running", ())) >= many, f"{many} running")

    def close(self) -> None:
        """Nothing may be left, whatever the test did."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
            process.communicate()
        end_processes_of(self.folder)


@pytest.fixture
def user(tmp_path: Path) -> Iterator[User]:
    """A user with a folder."""
    one = User(tmp_path)
    try:
        yield one
    finally:
        one.close()
