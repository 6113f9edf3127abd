"""The commands of a user whose trials run in jobs of a service over HTTP: what is wrong there has
the place of its key before anything is ordered, what waits says why in the service's own words,
and what was killed leaves no job."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import end_processes_of, wait_until
from tests.support.services.openpai import OPENPAI, OpenPai
from tests.support.services.played import whole_section

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PULL = "Failed: Error: ImagePullBackOff: our/own:1 was not found"

TRIAL = "import signal, trial_runtime as t; t.report_intermediate(1.0); signal.pause()"


class Lab:
    """An experiment file on a service, and the shell of its user.

    Args:
        folder: for everything.
        there: the service.
    """

    def __init__(self, folder: Path, there: OpenPai) -> None:
        self.folder = folder
        self.there = there
        self.file = folder / "lab.yml"
        self.kept = folder / "kept"
        (folder / "shared/weights").mkdir(parents=True)
        (folder / "code").mkdir()
        (folder / "code/train.py").write_text(TRIAL)

    def write(self, **keys: Any) -> list[str]:
        """Write the file with further keys of the service; returns its lines."""
        section = whole_section(
            OPENPAI, self.there, self.folder, bringCode=True, channel="folder", **keys
        )
        del section["headAddress"]
        self.file.write_text(
            json.dumps(
                {
                    "experimentName": "lab",
                    "experimentWorkingDirectory": str(self.kept),
                    "searchSpace": {"x": {"_type": "choice", "_value": [1, 2, 3]}},
                    "tuner": {"name": "Random"},
                    "trialCommand": f"{sys.executable} train.py",
                    "trialCodeDirectory": str(self.folder / "code"),
                    "trialConcurrency": 2,
                    "maxTrialNumber": 3,
                    "trialStopGrace": "1s",
                    "weightsRoot": str(self.folder / "shared/weights"),
                    "trainingService": section,
                },
                indent=2,
            )
        )
        return self.file.read_text().splitlines()

    def at(self, lines: list[str], value: str) -> str:
        """``FILE:LINE:COLUMN`` of a text of the file that begins so."""
        number = next(n for n, line in enumerate(lines) if f'"{value}' in line)
        column = lines[number].index(f'"{value}')
        return f"{self.file}:{number + 1}:{column + 1}"

    def words(self, *words: str) -> dict[str, Any]:
        """What starts a command in this shell."""
        environment = {
            "BEQUEATH_HOME": str(self.kept),
            "XDG_STATE_HOME": str(self.folder / "state"),
        }
        return {
            "args": [sys.executable, "-m", "dispatcher.cli", *words],
            "cwd": self.folder,
            "env": {**os.environ, **environment},
            "text": True,
        }

    def __call__(self, *words: str, code: int = 0) -> str:
        """Run a command to its end; returns what it has written, to both."""
        ran = subprocess.run(**self.words(*words), capture_output=True, timeout=250, check=False)
        both: str = ran.stdout + ran.stderr
        assert ran.returncode == code, f"{words}: {ran.returncode}\n{both}"
        return both

    @contextlib.contextmanager
    def running(self) -> Iterator[None]:
        """``bequeath run``, for a while."""
        with (self.folder / "printed").open("w") as out:
            head = subprocess.Popen(
                **self.words("run", str(self.file)),
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=out,
            )
        try:
            yield
        finally:
            with contextlib.suppress(ProcessLookupError):
                head.kill()
            head.wait()


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    """A service with places, and a user's folder."""
    with OPENPAI.serving(tmp_path, 2) as there:
        one = Lab(tmp_path, there)
        try:
            yield one
        finally:
            if one.kept.is_dir():
                end_processes_of(one.kept)


def test_what_is_wrong_there_is_known_before_anything_is_ordered(lab: Lab) -> None:
    """Mutations: a command that does not ask the service; a finding without the place of its key;
    a job that is ordered though something is wrong; a probe that stays."""
    lines = lab.write(virtualCluster="vision", storages=[{"name": "nas"}], probe=True)
    answers = lab("validate", "--connect", str(lab.file), code=1).splitlines()
    where, storage = lab.at(lines, "vision"), lab.at(lines, "nas")
    for at, text in (
        (where, "cluster: there is no virtual cluster 'vision' (there are default, research)"),
        (storage, "volumes: there is no storage 'nas' ('alice' may use home, scratch)"),
    ):
        assert f"{at}: openpai: problem: {text}" in answers, answers
    found = " ".join(lab("hosts", "check", str(lab.file), code=1).split())
    assert "there is no virtual cluster 'vision'" in found
    assert "there is no storage 'nas'" in found

    lab.write(probe=True)
    lab.there.tokens = {"another-t0ken"}
    answer = json.loads(lab("doctor", str(lab.file), "--json", code=1))
    mine = [each for each in answer["findings"] if each["topic"] == "openpai"]
    assert [each["level"] for each in mine] == ["problem"], mine
    assert "the token is not valid, or has expired" in mine[0]["text"]
    assert "t0ken" not in str(mine)
    assert lab.there.count("POST") == 0, "nothing was ordered"

    lab.there.renew("another-t0ken")
    answer = lab("validate", "--connect", str(lab.file))
    assert "openpai: ok: cluster: OpenPAI v1.8.0 at 127.0.0.1:" in answer
    assert lab.there.count("POST") == 1, "one job has looked"
    wait_until(lambda: lab.there.alive() == [], "that one is gone")


def test_one_that_waits_says_why_and_one_that_is_killed_leaves_nothing(lab: Lab) -> None:
    """Mutations: `why` has words of ours alone; `kill` leaves what waits, what runs, or the files
    with keys."""
    there = lab.there
    there.machines.places = 0
    lab.write()
    with lab.running():
        wait_until(lambda: len(there.alive()) == 2, "both jobs wait in the queue")
        (folder,) = lab.kept.glob("lab-*")
        _waits_and_is_killed(lab, folder)
    keys = [path for path in (lab.folder / "shared/bequeath").rglob("*") if path.is_file()]
    assert [path for path in keys if path.stat().st_mode & 0o077] == []
    assert "is not running" in lab("stop", folder.name, code=4)


def _waits_and_is_killed(lab: Lab, folder: Path) -> None:
    there = lab.there
    there.warnings |= dict.fromkeys(there.alive(), PULL)
    wait_until(lambda: PULL.partition(": ")[2] in lab("why", folder.name), "the reason is shown")
    there.machines.places = 1
    wait_until(lambda: "running" in lab("trial", "ls", folder.name), "a trial runs in one of them")
    assert len(there.machines.running()) == 1
    assert there.count("POST /api/v2/jobs") == 2, "nothing was asked for twice"
    lab("kill", folder.name, "--yes")
    wait_until(lambda: there.alive() == [], "no job is left")
