"""An experiment in jobs that have no folder in common with the head: keys come by Secret Manager,
the answer of the first job by Cloud Logging, and agents dial home."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tests.support.services.google import VERTEX, PlayedVertex
from tests.support.services.played import whole_section

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PLANTED = "pl4nted-s3cret"
TRIAL = "import os, trial_runtime as t; t.report_final(len(os.environ['PLANTED']))"


def test_trials_end_well_and_nothing_is_left_there(tmp_path: Path) -> None:
    """Mutations: keys in a file that no job sees; a probe whose answer nobody reads; a secret that
    stays, or that is shown."""
    with VERTEX.serving(tmp_path, 3) as there:
        assert isinstance(there, PlayedVertex)
        section = whole_section(
            VERTEX, there, tmp_path, probe=True, workFolder=str(tmp_path / "work")
        )
        del section["sharedFolder"]
        weights = tmp_path / "shared/weights"
        weights.mkdir()
        file = tmp_path / "lab.yml"
        file.write_text(json.dumps({
            "experimentName": "lab",
            "experimentWorkingDirectory": str(tmp_path / "experiments"),
            "searchSpace": {"x": {"_type": "choice", "_value": [1, 2, 3, 4]}},
            "tuner": {"name": "Random"},
            "trialCommand": f"{sys.executable} -c \"{TRIAL}\"",
            "trialCodeDirectory": str(tmp_path / "shared"),
            "trialEnvironment": {"PLANTED": "env:PLANTED_HERE"},
            "trialConcurrency": 2,
            "maxTrialNumber": 4,
            "weightsRoot": str(weights),
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
        assert there.count("POST /v2/entries:list") > 0, "by which the first job has answered"
        assert there.count(f"POST {there.lists()[0]}") >= 3, "two workers, and one that looked"
        wait_until(lambda: there.alive() == [], "no job is left")
        assert there.secrets == {}
    assert f"{len(PLANTED)}" in ran.stdout
    for path in tmp_path.glob("**/*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            assert PLANTED.encode() not in content, path
            assert b"t0ken-of-tests" not in content or path.name == "token", path
