"""An experiment in jobs of two nodes each: keys lie in a folder that is mounted at another path
there, signatures are checked, and nothing secret is left anywhere."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tests.support.services.dlc import DLC
from tests.support.services.played import whole_section

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PLANTED = "pl4nted-s3cret"
TRIAL = (
    "import os, trial_runtime as t; "
    "os.environ['RANK'] == '0' and t.report_final(len(os.environ['PLANTED']))"
)


def test_trials_end_well_and_nothing_is_left_there(tmp_path: Path) -> None:
    """Mutations: a key in a variable or a command of a job; ranks that are all 0; a request without
    a signature; jobs that outlive the experiment."""
    with DLC.serving(tmp_path, 3) as there:
        section = whole_section(DLC, there, tmp_path, probe=True)
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
        workers = [x for x in there.ordered if "-probe-" not in x["DisplayName"]]
        counts = [[spec["PodCount"] for spec in each["JobSpecs"]] for each in workers]
        assert counts == [[1, 1]]
        assert len(there.ordered) > len(workers), "one has looked"
        wait_until(lambda: there.alive() == [], "no job is left")
        (secret,) = there.tokens
        assert PLANTED not in str(there.ordered)
    assert f"{len(PLANTED)}" in ran.stdout
    for path in tmp_path.glob("**/*"):
        if path.is_file() and not path.is_symlink():
            content = path.read_bytes()
            assert PLANTED.encode() not in content, path
            assert secret.encode() not in content or path.name == "token", path
