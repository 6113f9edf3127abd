"""A TrainingInput with hyperparameters, as gcloud took it, is run as it is: our file adds where its
trials run and what they share, and the program reports by hypertune's own file."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processes import wait_until
from tests.support.services.google import AI_PLATFORM, PlayedAiPlatform
from tests.support.services.played import whole_section

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

PROGRAM = """\
import argparse, json, os
parser = argparse.ArgumentParser()
for name in ("lr", "units", "epochs", "job-dir"):
    parser.add_argument(f"--{name}", required=True)
given = parser.parse_args()
assert 0.001 <= float(given.lr) <= 0.1 and given.epochs == "3" and given.job_dir
line = {"timestamp": 1.0, "trial": "1", "global_step": "3", "loss": 1 / int(given.units)}
with open(os.environ["CLOUD_ML_HP_METRIC_FILE"], "a") as file:
    file.write(json.dumps(line) + "\\n")
"""

PARAMETERS = [
    {
        "parameterName": "lr",
        "type": "DOUBLE",
        "minValue": 0.001,
        "maxValue": 0.1,
        "scaleType": "UNIT_LOG_SCALE",
    },
    {"parameterName": "units", "type": "INTEGER", "minValue": 16, "maxValue": 64},
]


def test_it_runs_in_jobs_of_the_service_for_which_it_was_written(tmp_path: Path) -> None:
    """Mutations: a file of others takes no platform; its trials run on this machine in silence;
    arguments, ``--job-dir`` or the metric's file are lost on the way into a job."""
    with AI_PLATFORM.serving(tmp_path, 3) as there:
        assert isinstance(there, PlayedAiPlatform)
        code, weights = tmp_path / "shared/code", tmp_path / "shared/weights"
        for each in (code / "trainer", weights):
            each.mkdir(parents=True)
        (code / "trainer/__init__.py").touch()
        (code / "trainer/task.py").write_text(PROGRAM)
        section = whole_section(AI_PLATFORM, there, tmp_path, codeFolder=str(code))
        file = tmp_path / "job.json"
        file.write_text(json.dumps({
            "jobId": "digits_1",
            "trainingInput": {
                "scaleTier": "BASIC",
                "region": "us-central1",
                "pythonModule": "trainer.task",
                "args": ["--epochs", "3"],
                "jobDir": "gs://outputs/digits",
                "hyperparameters": {
                    "goal": "MINIMIZE",
                    "hyperparameterMetricTag": "loss",
                    "maxTrials": 4,
                    "maxParallelTrials": 2,
                    "enableTrialEarlyStopping": True,
                    "algorithm": "RANDOM_SEARCH",
                    "params": PARAMETERS,
                },
            },
            "experimentWorkingDirectory": str(tmp_path / "kept"),
            "trialCodeDirectory": str(code),
            "weightsRoot": str(weights),
            "trainingService": section,
        }))  # fmt: skip
        ran = subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", "run", str(file)],
            cwd=tmp_path,
            env={**os.environ, "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}"},
            capture_output=True,
            text=True,
            timeout=250,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-5000:]
        assert "4 trials: 4 succeeded" in ran.stdout
        ordered = there.count(f"POST {there.lists()[0]}")
        assert ordered == 2, "two workers, in jobs of the service"
        wait_until(lambda: there.alive() == [], "no job is left")
