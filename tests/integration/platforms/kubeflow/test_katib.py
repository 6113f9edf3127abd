"""An Experiment of Katib whose trials are PyTorchJobs is run as it is, in PyTorchJobs again: our
keys beside it say where, and with how many nodes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.kubernetes.cluster import cluster
from tests.support.kubernetes.training_operator import training_operators
from tests.support.processes import wait_until

ROOT = Path(__file__).parents[4]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

KATIB = """\
apiVersion: kubeflow.org/v1beta1
kind: Experiment
metadata: {name: digits}
spec:
  objective: {type: maximize, goal: 9.0, objectiveMetricName: accuracy}
  algorithm: {algorithmName: grid}
  parallelTrialCount: 1
  maxTrialCount: 2
  parameters:
    - {name: x, parameterType: int, feasibleSpace: {min: "1", max: "2"}}
  trialTemplate:
    primaryContainerName: pytorch
    trialParameters: [{name: number, reference: x}]
    trialSpec:
      apiVersion: kubeflow.org/v1
      kind: PyTorchJob
      spec:
        pytorchReplicaSpecs:
          Master:
            replicas: 1
            template:
              spec:
                containers:
                  - name: pytorch
                    image: our/own:1
                    command: [python3, train.py, "--x=${trialParameters.number}"]
"""

#: What each of the nodes prints; only the first one's counts.
PROGRAM = """\
import os, sys
rank, x = int(os.environ["RANK"]), int(sys.argv[1].removeprefix("--x="))
assert os.environ["WORLD_SIZE"] == "2" and os.environ["BEQUEATH_ROLE"] in ("master", "worker")
print(f"accuracy={x - 5 * rank}", flush=True)
"""


def test_its_trials_are_jobs_of_the_training_operator(tmp_path: Path) -> None:
    """Mutations: a file of others takes no platform; arguments are lost on the way into a pod; what
    a worker prints is taken for the result."""
    shared = tmp_path / "shared"
    (shared / "code").mkdir(parents=True)
    (shared / "code/train.py").write_text(PROGRAM)
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", operators=training_operators()) as there:
        ours = {
            "trialNodes": 2,
            "trialCodeDirectory": str(shared / "code"),
            "trialStopGrace": "2s",
            "weightsRoot": str(shared),
            "experimentWorkingDirectory": str(tmp_path / "experiments"),
            "trainingService": {
                "platform": "kubeflow",
                "kubeconfig": str(there.api.kubeconfig(tmp_path)),
                "image": "our/own:1",
                "python": sys.executable,
                "volumes": [{"hostPath": str(shared), "at": str(shared)}],
                "workFolder": str(shared / "work"),
                "headAddress": "127.0.0.1",
                "probe": False,
            },
        }
        lines = [f"{key}: {json.dumps(value)}\n" for key, value in ours.items()]
        (tmp_path / "katib.yaml").write_text(KATIB + "".join(lines))
        ran = subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", "run", "katib.yaml"],
            cwd=tmp_path,
            env={
                **os.environ,
                "PYTHONPATH": str(ROOT),
                "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            },
            capture_output=True,
            text=True,
            timeout=240,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout[-5000:] + ran.stderr[-5000:]
        assert "2 trials: 2 succeeded" in ran.stdout
        wait_until(lambda: there.api.objects.all("pytorchjobs") == [], "no job is left")
