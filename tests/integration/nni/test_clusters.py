"""A file of NNI's for a cluster runs as it is: two roles of a trial, of which one speaks."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.checker import check_store
from tests.support.kubernetes.cluster import cluster
from tests.support.kubernetes.training_operator import training_operators
from tests.support.processes import wait_until
from tests.unit.cli.conftest import Shell

ROOT = Path(__file__).parents[3]

FILE = """\
authorName: somebody
experimentName: old
trialConcurrency: 1
maxExecDuration: 1h
maxTrialNum: 1
nniManagerIp: 127.0.0.1
trainingServicePlatform: kubeflow
searchSpacePath: space.json
logDir: kept
useAnnotation: false
tuner:
  builtinTunerName: Random
trial:
  codeDir: code
  worker:
    replicas: 1
    command: {python} train.py
    gpuNum: 0
    cpuNum: 1
    memoryMB: 512
    image: our/own:1
  ps:
    replicas: 1
    command: {python} serve.py
    gpuNum: 0
    cpuNum: 1
    memoryMB: 256
    image: our/own:1
kubeflowConfig:
  operator: tf-operator
  apiVersion: v1
  storage: nfs
  nfs: {{server: 10.10.10.10, path: /exports/nni}}
  namespace: trials
  # Pods are processes of this machine here.
  python: {python}
  volumes: [{{hostPath: {shared}, at: {shared}}}]
  workFolder: {shared}/work
  codeFolder: {code}
  probe: false
channel: {{transport: tcp}}
trialStopGrace: 1s
"""
SPACE = '{"x": {"_type": "choice", "_value": [0.7]}}'
TRAIN = """\
import json, os, nni
parameters = nni.get_next_parameter()
task = json.loads(os.environ["TF_CONFIG"])["task"]
assert task == {"type": "worker", "index": 0}, task
nni.report_intermediate_result(0.1)
nni.report_final_result(parameters["x"])
"""
SERVE = """\
import os, signal, nni
assert nni.get_next_parameter() == {"x": 0.7}
assert os.environ["NNI_SYS_DIR"].endswith("/rank1"), os.environ["NNI_SYS_DIR"]
nni.report_final_result(99)
signal.pause()
"""


@pytest.mark.slow
@pytest.mark.timeout(120)
def test_a_worker_and_a_parameter_server(tmp_path: Path) -> None:
    """Mutations: what the server reports counts; it is waited for; both write NNI's files to one
    folder."""
    code, shared = tmp_path / "code", tmp_path / "shared"
    for folder in (code, shared, tmp_path / "kept", tmp_path / "cluster"):
        folder.mkdir()
    (code / "train.py").write_text(TRAIN)
    (code / "serve.py").write_text(SERVE)
    (tmp_path / "space.json").write_text(SPACE)
    file = tmp_path / "old.yml"
    file.write_text(FILE.format(python=sys.executable, shared=shared, code=code))
    with cluster(tmp_path / "cluster", operators=training_operators()) as there:
        config = there.api.kubeconfig(tmp_path)
        ran = subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", "run", "old.yml"],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": str(ROOT), "KUBECONFIG": str(config)},
            capture_output=True,
            text=True,
            timeout=90,
            check=False,
        )
        assert ran.returncode == 0, ran.stdout + ran.stderr
        wait_until(lambda: there.api.objects.all("tfjobs") == [], "nothing is left")
    (made,) = (tmp_path / "kept").glob("old-*")
    assert check_store(made / "journal.sqlite", over=True) == [], ran.stdout + ran.stderr
    (row,) = Shell()("nni", "trial", "ls", made).json()
    assert row["status"] == "SUCCEEDED", ran.stdout + ran.stderr
    assert [json.loads(json.loads(each["data"])) for each in row["finalMetricData"]] == [0.7]
