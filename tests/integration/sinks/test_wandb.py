"""The real package of Weights & Biases, offline; its files are read by its own messages."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial
from pathlib import Path

import pytest

from tests.support.fed import FedLife, fill, journal_of, new_folder
from tests.support.processes import wait_until
from tests.support.trackers import python_of, read_by

pytestmark = pytest.mark.slow

_PROGRAM = """
import sys
sys.path.append(sys.argv.pop(1))
from dispatcher.cli.main import main
main()
"""

_CONFORMS = """
import sys
from pathlib import Path
sys.path.append(sys.argv[1])
from dispatcher.sinks.conformance import HeldRun, try_sink
from dispatcher.sinks.wandb.kind import WandbConfig, WandbKind
from tests.support.processes import wait_until
from tests.support.trackers import read_by
there = Path(sys.argv[2])

def held():
    return {
        int(run["name"][6:]): HeldRun(
            [row["_step"] for row in run["history"]], "exit" in run, run["config"].get("parent")
        )
        for run in read_by("wandb", str(there))
    }

section = WandbConfig(kind="wandb", project="x", folder=str(there))
try_sink(WandbKind(), section, there.parent, held)
"""


def site() -> str:
    """The packages of the environment with wandb, which this Python can import."""
    python = python_of("wandb")
    (found,) = python.parents[1].glob("lib/python*/site-packages")
    if found.parent.name != f"python{sys.version_info[0]}.{sys.version_info[1]}":
        pytest.skip(f"the environment with wandb is one of {found.parent.name}")
    return str(found)


def sink(folder: Path, out: Path, *options: str) -> subprocess.Popen[str]:
    """``bequeath sink`` where the package is installed."""
    command = [sys.executable, "-W", "ignore", "-c", _PROGRAM, site(), "sink", str(folder)]
    command += ["--kind", "wandb", "--set", "project=digits", "--folder", str(out), *options]
    environ = {**os.environ, "HOME": str(out.parent), "WANDB_ERROR_REPORTING": "false"}
    return subprocess.Popen(
        command, env=environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


def begun(out: Path) -> set[str]:
    """The folders of runs that there are."""
    return {path.name for path in (out / "fed-1" / "wandb").glob("offline-run-*")}


def goes_on(process: subprocess.Popen[str], out: Path, before: set[str]) -> bool:
    return process.poll() is not None or len(begun(out) - before) > 2


def finished(process: subprocess.Popen[str]) -> None:
    _, errors = process.communicate(timeout=200)
    assert process.returncode == 0, errors


def test_each_trial_is_one_whole_run_through_kills(tmp_path: Path) -> None:
    """Mutation: what a crash has left of a run is not removed."""
    folder, out = new_folder(tmp_path), tmp_path / "out"
    fill(folder, 12, 20)
    killed = 0
    while killed < 3:
        process = sink(folder, out)
        before = begun(out)
        wait_until(partial(goes_on, process, out, before), "some runs are written", 100)
        process.kill()
        process.communicate()
        assert process.returncode != 0, "it was faster: give it more to do"
        killed += 1
    finished(sink(folder, out))
    runs = {run["name"]: run for run in read_by("wandb", str(out))}
    assert len(list(out.rglob("*.wandb"))) == 12, "a crash leaves no second folder"
    assert sorted(runs) == [f"trial-{n:05d}" for n in range(1, 13)]
    for number in range(1, 13):
        run = runs[f"trial-{number:05d}"]
        assert (run["id"], run["group"], run["project"]) == (f"fed-1-{number}", "fed-1", "digits")
        attempt = 2 if number % 5 == 0 else 1
        assert [row["_step"] for row in run["history"]] == list(range(1, 4 if attempt == 2 else 21))
        times = [row["_timestamp"] for row in run["history"]]
        assert times == sorted(times)
        assert times[-1] < 10_000, "as reported, and not when the sink ran"
        assert run["config"]["lr"] == 1 / (number + 1)
        assert run["config"].get("parent") == (number - 3 if number > 3 else None)
        assert run["config"]["attempt"] == attempt
        assert run["summary"]["final"] == 1 / (number + 1)
        assert (run["tags"], run["exit"]) == (["succeeded"], 0)


def test_nothing_is_written_before_a_trial_has_ended(tmp_path: Path) -> None:
    folder, out = new_folder(tmp_path), tmp_path / "out"
    with journal_of(folder) as journal:
        life = FedLife(journal)
        steps = life.some([1], 20)
        for _ in range(3):
            next(steps)
        finished(sink(folder, out))
        assert not list(out.rglob("*.wandb"))
        for _ in steps:
            pass
    finished(sink(folder, out))
    (run,) = read_by("wandb", str(out))
    assert len(run["history"]) == 20


def test_the_sink_conforms(tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", _CONFORMS, site(), str(tmp_path / "there")],
        env={**os.environ, "HOME": str(tmp_path), "WANDB_ERROR_REPORTING": "false"},
        cwd=Path(__file__).parents[3],
        capture_output=True,
        text=True,
        timeout=240,
    )
    assert done.returncode == 0, done.stderr
