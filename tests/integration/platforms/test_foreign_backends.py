"""An experiment on backends of other packages, good ones and bad ones, led by a real head."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from dispatcher.core import events as e
from tests.support.checker import check_store, read_store
from tests.support.packages import lay_down

ROOT = Path(__file__).parents[3]

#: ``runner`` runs attempts itself, without our agent; the others are no good, each in its way.
PACKAGE = """\
import os
from typing import Literal
from dispatcher.tuner_tools.scripted import ScriptedBackend, Script
from dispatcher.core.events import StopKind, StopRequested
from dispatcher.platforms.protocol import (
    AgentPlatform, BackendPlatform, ServiceConfig, TrialId, AttemptEnded, EndReason, WorkerId)

class Running(ServiceConfig):
    platform: Literal["runner"]

class Leaking(ServiceConfig):
    platform: Literal["leaky"]

class Rotting(ServiceConfig):
    platform: Literal["rotten"]

class Lying(ServiceConfig):
    platform: Literal["liar"]

class Grumbling(ServiceConfig):
    platform: Literal["grump"]

class Ticking(ScriptedBackend):
    def check(self):
        if len(os.listdir(os.environ["SEEN"])) == 2:  # or it had run all before agents are there
            self.tick()
        return super().check()

class Runner(BackendPlatform):
    protocol = 1
    section = Running

    def backend(self, given):
        script = Script(ticks=2, metrics=("0.5",), final="7.0")
        return Ticking(lambda order: script, WorkerId(given.worker), slots=1)

class Leaky(AgentPlatform):
    protocol = 1
    section = Leaking

    def visit(self, given):
        return 1 // 0

class Rotten(BackendPlatform):
    protocol = 1
    section = Rotting

    def backend(self, given):
        raise RuntimeError("this one is rotten")

class Liar(BackendPlatform):
    protocol = 1
    section = Lying

    def backend(self, given):
        one = Ticking(worker=WorkerId(given.worker), slots=1)
        one.say(AttemptEnded(TrialId(0), 1, EndReason.FINISHED))  # and holds it, as it will say
        return one

class Grump(BackendPlatform):
    protocol = 1
    section = Grumbling

    def backend(self, given):
        one = Ticking(worker=WorkerId(given.worker), slots=1)
        one.say(StopRequested(StopKind.NOW, "enough"))
        return one
"""
EXPERIMENT = """\
tuner: {name: Random}
searchSpace: {x: {_type: choice, _value: [1]}}
trialFunction: trial:main
trialConcurrency: 4
maxTrialNumber: 16
trainingService:
- {platform: local, slots: 1}
- platform: prefix
  slots: 1
  places: [nice -n 1]
- {platform: runner}
- {platform: leaky}
- {platform: rotten}
- {platform: liar}
- {platform: grump}
"""
TRIAL = """\
import os
import time
import trial_runtime as bq

def main(parameters=None):
    print("nice by", os.nice(0))
    open(os.path.join(os.environ["SEEN"], str(os.nice(0))), "w").close()
    time.sleep(0.2)
    bq.report_final(1.0)
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A folder as ``pip install --target`` makes it, with the example and a bad company."""
    there = tmp_path / "installed"
    words = {
        "foreign": "".join(
            f"{w} = foreign:{w.title()}\n" for w in ["runner", "leaky", "rotten", "liar", "grump"]
        ),
        "bequeath_prefix": "prefix = bequeath_prefix:PREFIX\n",
    }
    for name, points in words.items():
        lay_down(there, name, f"[bequeath.backends]\n{points}")
    (there / "foreign.py").write_text(PACKAGE)
    example = ROOT / "examples/backend_prefix/bequeath_prefix"
    shutil.copytree(example, there / "bequeath_prefix")
    return there


def test_good_ones_take_trials_and_bad_ones_harm_themselves_only(
    installed: Path, tmp_path: Path
) -> None:
    """Mutations: a factory's error ends the head; what a backend may not say is applied."""
    (tmp_path / "trial.py").write_text(TRIAL)
    file = tmp_path / "lab.yml"
    file.write_text(f"{EXPERIMENT}experimentWorkingDirectory: {tmp_path / 'experiments'}\n")
    (tmp_path / "seen").mkdir()
    environment = {
        **os.environ,
        "SEEN": str(tmp_path / "seen"),
        "PYTHONPATH": os.pathsep.join((str(ROOT), str(installed))),
        "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    }

    def bequeath(*words: str) -> str:
        ran = subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", *words],
            cwd=tmp_path,
            env=environment,
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        logs = [p.read_text()[-3000:] for p in tmp_path.glob("experiments/*/logs/*.log")]
        assert ran.returncode == 0, "\n".join((ran.stdout, ran.stderr, *logs))
        return ran.stdout

    bequeath("run", str(file))
    (folder,) = (tmp_path / "experiments").glob("lab-*")
    assert check_store(folder / "journal.sqlite", over=True) == []
    with sqlite3.connect(folder / "journal.sqlite") as store:
        ran_on = dict(store.execute("SELECT trial, worker FROM attempts"))
        finals = dict(store.execute("SELECT trial, number FROM metrics WHERE final"))
    assert (
        {"local", "nice", "runner"} <= set(ran_on.values()) <= {"local", "nice", "runner", "liar"}
    )
    assert len(finals) == 16, "also of the one that another one says has ended without"
    assert {finals[t] for t, worker in ran_on.items() if worker == "runner"} == {7.0}
    events = [row.event for row in read_store(folder / "journal.sqlite")]
    lost = {x.worker: x.reason for x in events if isinstance(x, e.WorkerLost)}
    assert lost["rotten"] == "RuntimeError: this one is rotten"
    assert lost["grump"] == "it says StopRequested"
    nice = next(trial for trial, worker in ran_on.items() if worker == "nice")
    log = bequeath("trial", "log", str(nice), "--folder", str(folder.parent))
    assert f"nice by {min(os.nice(0) + 1, 19)}" in log, "one more than we are"
