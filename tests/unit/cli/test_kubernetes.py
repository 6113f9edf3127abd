"""What a cluster's administrators get is a document that they can apply."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
from ruamel.yaml import YAML


@pytest.mark.parametrize("subject, kind", [("alice", "User"), ("lab:head", "ServiceAccount")])
def test_the_role_is_printed(subject: str, kind: str) -> None:
    command = [sys.executable, "-m", "dispatcher.cli", "kubernetes", "rights", subject, "-n", "x"]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    role, binding = YAML(typ="safe").load_all(ran.stdout)
    assert (role["kind"], role["metadata"]["namespace"]) == ("Role", "x")
    assert binding["subjects"][0]["kind"] == kind
    assert {"apiGroups": ["batch"], "resources": ["jobs"]}.items() <= role["rules"][0].items()


def test_the_manifest_is_printed_or_what_the_file_lacks(tmp_path: Path) -> None:
    """What is wrong stands with its place, in the order of the file, and nothing is printed."""
    (tmp_path / "space.json").write_text('{"x": {"_type": "choice", "_value": [1]}}')
    file = tmp_path / "lab.yml"
    file.write_text(FILE)
    command = [sys.executable, "-m", "dispatcher.cli", "kubernetes", "manifest", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120, check=True)
    objects = {each["kind"]: each for each in YAML(typ="safe").load_all(ran.stdout)}
    texts = {"lab.yml": FILE, "space.json": (tmp_path / "space.json").read_text()}
    assert objects["ConfigMap"]["data"] == texts, "as they are written"
    assert "create secret generic bequeath-lab-secrets --from-literal=TOKEN=" in ran.stderr
    file.write_text(FILE.replace("/app", ".").replace("bequeath-lab.", "other."))
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (ran.returncode, ran.stdout) == (3, "")
    first, second = (ran.stderr.find(f"{file}:{place}") for place in ("3:", "11:"))
    assert 0 <= first < second, ran.stderr
    assert "write 'headAddress: bequeath-lab.default:7070'" in ran.stderr


def test_a_manifest_of_json_with_tabs(tmp_path: Path) -> None:
    """The experiment is read so. Mutation: its text is read once more, as YAML."""
    (tmp_path / "space.json").write_text('{"x": {"_type": "choice", "_value": [1]}}')
    file = tmp_path / "lab.json"
    file.write_text(json.dumps(YAML(typ="safe").load(FILE), indent="\t"))
    command = [sys.executable, "-m", "dispatcher.cli", "kubernetes", "manifest", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert ran.returncode == 0, ran.stderr


FILE = """\
searchSpaceFile: space.json
trialCommand: python train.py   # a remark that stays
trialCodeDirectory: /app
trialConcurrency: 1
tuner: {name: Random}
trialEnvironment: {TOKEN: "env:TOKEN"}
weightsRoot: /weights
channel: {transport: tcp, host: 0.0.0.0, port: 7070, beyondThisMachine: true}
trainingService:
  platform: kubernetes
  headAddress: bequeath-lab.default
  image: i
  volumes: [{claim: w, at: /weights}]
"""
