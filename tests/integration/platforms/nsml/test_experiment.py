"""An experiment in runs of two nodes each, which nobody can stop there: each run ends by the word
that lies in the shared folder, and keys are in no request."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tests.support.services.nsml import NSML
from tests.support.services.played import whole_section

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PLANTED = "pl4nted-s3cret"
TRIAL = (
    "import os, trial_runtime as t; "
    "os.environ['RANK'] == '0' and t.report_final(len(os.environ['PLANTED']))"
)


def test_trials_of_two_nodes_end_well_and_nothing_is_left_there(tmp_path: Path) -> None:
    """Mutations: both nodes dial home; ranks that are all 0; a run that outlives the experiment; a
    secret in a run's command or variables."""
    with NSML.serving(tmp_path, 3) as there:
        section = whole_section(NSML, there, tmp_path, probe=False)
        weights = tmp_path / "shared/weights"
        weights.mkdir(parents=True, exist_ok=True)
        file = tmp_path / "lab.yml"
        file.write_text(json.dumps({
            "experimentName": "lab",
            "experimentWorkingDirectory": str(tmp_path / "experiments"),
            "searchSpace": {"x": {"_type": "choice", "_value": [1, 2, 3, 4]}},
            "tuner": {"name": "Random"},
            "trialCommand": f"{sys.executable} -c \"{TRIAL}\"",
            "trialCodeDirectory": str(tmp_path / "shared"),
            "trialEnvironment": {"PLANTED": "env:PLANTED_HERE"},
            "trialConcurrency": 1,
            "trialNodes": 2,
            "maxTrialNumber": 3,
            "weightsRoot": str(weights),
            "trainingService": {**section, "allocations": 1},
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
        assert "3 succeeded" in ran.stdout
        documents = [job.document for job in there.machines.jobs.values()]
        assert [each["nodeCount"] for each in documents] == [2]
        assert PLANTED not in str(documents)
        wait_until(lambda: there.alive() == [], "no run is left")
    for path in tmp_path.glob("experiments/**/*"):
        if path.is_file() and not path.is_symlink():
            assert PLANTED.encode() not in path.read_bytes(), path
