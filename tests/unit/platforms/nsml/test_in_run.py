"""The program that stands between a run and its agent, as a process."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.platforms.nsml import in_run
from tests.support.processes import wait_until

Begin = Callable[[str], "subprocess.Popen[bytes]"]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    running: list[subprocess.Popen[bytes]] = []

    def start(program: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, in_run.__file__, str(tmp_path / "run"), "0.1"]
        running.append(subprocess.Popen([*command, sys.executable, "-c", program]))
        return running[-1]

    yield start
    for process in running:
        process.kill()
        process.wait()


def state(folder: Path) -> dict[str, Any]:
    try:
        known: dict[str, Any] = json.loads((folder / "run").read_text())
    except (OSError, ValueError):
        return {}
    return known


def test_one_that_does_not_end_when_it_is_asked_to_is_ended(begin: Begin, tmp_path: Path) -> None:
    """Mutation: a trial that hangs keeps its machine, for which somebody pays."""
    deaf = "import signal; signal.signal(15, signal.SIG_IGN); open('deaf', 'w'); signal.pause()"
    process = begin(deaf.replace("'deaf'", repr(str(tmp_path / "deaf"))))
    wait_until((tmp_path / "deaf").exists, "it hears nothing")
    (tmp_path / "run.stop").write_text("0.3")
    wait_until(lambda: process.poll() is not None, "it has been ended")
    ended = state(tmp_path)
    assert (ended["word"], ended["code"]) == ("stopped", -9)


def test_it_says_again_and_again_that_it_runs(begin: Begin, tmp_path: Path) -> None:
    process = begin("import signal; signal.pause()")
    wait_until(lambda: state(tmp_path).get("seconds", 0.0) > 0.1, "it has said so twice")
    assert state(tmp_path)["word"] == "runs"
    process.terminate()
    wait_until(lambda: process.poll() is not None, "it has passed that on")
    assert state(tmp_path)["word"] == "taken"


def test_a_second_start_does_nothing(begin: Begin, tmp_path: Path) -> None:
    """Mutation: a service that starts a run again has two agents of one ticket."""
    marks = "open({!r}, 'a').write('x')".format(str(tmp_path / "marks"))
    for _ in range(2):
        assert begin(marks).wait(60) == 0
    assert (tmp_path / "marks").read_text() == "x"
    assert (state(tmp_path)["word"], state(tmp_path)["code"]) == ("ended", 0)
