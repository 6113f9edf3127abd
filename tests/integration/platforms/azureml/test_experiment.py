"""An experiment in jobs that mount a datastore: code, weights, keys and messages go through it, by
a path that only the job knows, and agents are reached through its folder alone."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.support.processes import wait_until
from tests.support.services.azureml import AZUREML
from tests.support.services.played import whole_section

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PLANTED = "pl4nted-s3cret"
TRIAL = "import os, trial_runtime as t; t.report_final(len(os.environ['PLANTED']))"


def test_trials_end_well_and_nothing_is_left_there(tmp_path: Path) -> None:
    """Mutations: a mount that is linked nowhere; a path of this machine in a job; keys that others
    can read; a job, or a file with keys, that stays."""
    with AZUREML.serving(tmp_path, 3) as there:
        here = there.store("workspacefilestore") / "nas"
        for each in ("weights", "bequeath"):
            (here / each).mkdir(parents=True)
        mount: dict[str, Any] = {"name": "workspacefilestore", "folder": "nas", "here": str(here)}
        section = whole_section(
            AZUREML,
            there,
            tmp_path,
            probe=True,
            bringCode=True,
            channel="folder",
            mounts={},
            sharedFolder=str(here / "bequeath"),
            datastores=[{**mount, "at": str(tmp_path / "mnt/nas")}],
        )
        del section["headAddress"]
        code = tmp_path / "code"
        code.mkdir()
        (code / "train.py").write_text(TRIAL)
        file = tmp_path / "lab.yml"
        file.write_text(json.dumps({
            "experimentName": "lab",
            "experimentWorkingDirectory": str(tmp_path / "experiments"),
            "searchSpace": {"x": {"_type": "choice", "_value": [1, 2, 3, 4]}},
            "tuner": {"name": "Random"},
            "trialCommand": f"{sys.executable} train.py",
            "trialCodeDirectory": str(code),
            "trialEnvironment": {"PLANTED": "env:PLANTED_HERE"},
            "trialConcurrency": 2,
            "maxTrialNumber": 4,
            "weightsRoot": str(here / "weights"),
            "trainingService": section,
        }))  # fmt: skip
        ran = subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", "run", str(file)],
            cwd=tmp_path,
            env={**os.environ, "PLANTED_HERE": PLANTED},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-5000:]
        assert (tmp_path / "mnt/nas").readlink() == here, "as the job has linked it"
        wait_until(lambda: there.alive() == [], "no job is left")
    assert f"{len(PLANTED)}" in ran.stdout
    for path in tmp_path.glob("**/*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            assert PLANTED.encode() not in content, path
            assert b"t0ken-of-tests" not in content or path.name == "token", path
