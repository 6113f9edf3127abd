"""What others wrote never reaches a terminal as something that it would obey."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import PROGRAM, app
from tests.integration.cli.conftest import Place

#: A title to set, a screen to clear, a direction to turn, a letter that is none.
PAYLOADS = ("\x1b]0;owned", "\x1b[2J", "\u202e", "\u2066", "\x9b31m", "\x07", "\x08")

EXPERIMENT = """\
experimentName: a $x_{$ [red]name[/nothing]
tuner: {className: "search:Rude", codeDirectory: .}
trialFunction: train:main
trialConcurrency: 2
maxTrialNumber: 4
trialRetries: 0
onTunerError: continue
headGrace: 5s
experimentWorkingDirectory: kept
trainingService: {platform: local, reuseMode: none}
"""

TUNER = f"""\
from tuners import Tuner

RUDE = {"".join(PAYLOADS)!r} + "[/bold]$\\\\frac{{$"


class Rude(Tuner):
    def generate_parameters(self, parameter_id, **kwargs):
        print(RUDE, flush=True)
        parameters = {{"n": parameter_id, RUDE: RUDE, "save_path": f"t/{{parameter_id}}"}}
        if parameter_id == 3:
            raise ValueError(RUDE)
        if parameter_id:
            self.wait_for(0)
            parameters["restore_path"] = "t/0"
        return parameters

    def receive_trial_result(self, parameter_id, parameters, value, **kwargs):
        pass
"""

TRIAL = """\
import sys

import numpy as np
import trial_runtime
from search import RUDE


def main(parameters):
    print(RUDE, flush=True)
    print(RUDE, file=sys.stderr, flush=True)
    trial_runtime.report_intermediate({"default": 0.5, RUDE: RUDE})
    trial_runtime.save_weights({"w": np.zeros(2)})
    if parameters["n"] == 2:
        raise RuntimeError(RUDE)
    return {"default": float(parameters["n"]), RUDE: 1}
"""

#: On a terminal, where each is a process of its own.
ON_A_TERMINAL = (
    ("status",),
    ("top", "--once"),
    ("trial", "ls"),
    ("trial", "show", "2"),
    ("trial", "log", "0", "--follow"),
    ("lineage",),
    ("experiment", "export", "--format", "csv"),
)

#: Into a pipe.
COMMANDS = (
    *ON_A_TERMINAL[:-1],  # CSV in a pipe is data, and goes as it is
    ("why",),
    ("trial", "show", "0"),
    ("trial", "show", "3"),
    ("trial", "log", "0"),
    ("trial", "log", "2", "--stderr"),
    ("trial", "submit", '{"\\u001b[2J": "\\u202e"}'),
    ("trial", "submit", "\x1b]0;owned\u202e"),
    ("best",),
    ("experiment", "list"),
    ("experiment", "show"),
    ("experiment", "export"),
    ("weights", "du"),
    ("plot", "progress", "--out", "p.png"),
    ("plot", "parallel", "--out", "q.png"),
    ("lineage", "--png", "l.png"),
    ("status", "\x1b]0;owned\u202e"),
)


@pytest.fixture
def place(tmp_path: Path) -> Iterator[Place]:
    one = Place(tmp_path)
    (tmp_path / "experiment.yml").write_text(EXPERIMENT)
    (tmp_path / "search.py").write_text(TUNER)
    (tmp_path / "train.py").write_text(TRIAL)
    try:
        yield one
    finally:
        one.close()


def on_a_terminal(place: Place, *words: str) -> str:
    """What a command sends to a terminal."""
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "dispatcher.cli", *words],
        cwd=place.folder,
        env={**place.environment, "TERM": "xterm-256color", "COLUMNS": "300"},
        stdin=subprocess.DEVNULL,
        stdout=theirs,
        stderr=theirs,
    )
    os.close(theirs)
    said = b""
    try:
        while True:
            try:
                chunk = os.read(ours, 1 << 16)
            except OSError:  # its last process has left the terminal
                break
            if not chunk:
                break
            said += chunk
        process.wait(60)
    finally:
        os.close(ours)
        if process.poll() is None:
            process.kill()
            process.wait()
    return said.decode(errors="replace")


def obeyed(said: str) -> list[str]:
    return [payload for payload in PAYLOADS[:5] if payload in said]


def in_a_pipe(*words: str) -> str:
    """What it prints there, or fails with; in this process, which is quicker."""
    result = CliRunner().invoke(app, list(words), prog_name=PROGRAM)
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result.output


def test_nothing_that_others_wrote_is_obeyed(place: Place, monkeypatch: pytest.MonkeyPatch) -> None:
    wrong = {"run": obeyed(on_a_terminal(place, "run", "experiment.yml"))}
    assert sum(trial.state == "ended" for trial in place.trials()) >= 4
    for words in ON_A_TERMINAL:
        wrong[" ".join(words)] = obeyed(on_a_terminal(place, *words))
    monkeypatch.chdir(place.folder)
    for name, value in place.environment.items():
        monkeypatch.setenv(name, value)
    said = ""
    for words in COMMANDS:
        told = in_a_pipe(*words)
        wrong["| " + " ".join(words)] = obeyed(told)
        said += told
    assert not {words: found for words, found in wrong.items() if found}
    # What was there stays visible: the escape as its picture, the mark as what cannot be shown.
    assert "\N{SYMBOL FOR ESCAPE}]0;owned" in said
    for name in ("p.png", "q.png", "l.png"):
        assert (place.folder / name).stat().st_size > 1000
