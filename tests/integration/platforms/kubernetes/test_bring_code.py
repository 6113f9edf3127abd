"""A whole experiment in pods whose image has neither bequeath nor the code."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy
import pytest

from dispatcher.remote_python.probed import Probe, probe
from dispatcher.wheelhouse import WheelCache, WheelsMissing, plan
from tests.support.checker import check_store
from tests.support.kubernetes.cluster import Cluster, cluster
from tests.support.processes import wait_until
from tests.support.remote_python import python_here

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

TRIAL = """\
import os
import beside
import trial_runtime as bq

def main():
    x = bq.get_parameters()["x"]
    with open(os.path.join(os.environ["NOTED"], str(x)), "w") as file:
        file.write("\\n".join([beside.__file__, bq.__file__, os.getcwd()]))
    bq.report_final(x)
"""


class Lab:
    """An experiment file for a cluster, and the commands that take it."""

    def __init__(self, there: Cluster, base: Path) -> None:
        self.there = there
        self.base = base
        self.code, self.noted, self.work = base / "code", base / "noted", base / "work"
        for folder in (self.code, self.noted, base / "weights", base / "other"):
            folder.mkdir()
        (self.code / "train.py").write_text(TRIAL)
        (self.code / "beside.py").write_text("")

    def bequeath(self, *words: str, **keys: Any) -> subprocess.CompletedProcess[str]:
        service = {
            "platform": "kubernetes",
            "kubeconfig": str(self.there.api.kubeconfig(self.base)),
            "image": "our/own:1",
            "headAddress": "127.0.0.1",
            "python": sys.executable,
            "workFolder": str(self.work),
            "allocations": 2,
            "bringCode": True,
        }
        experiment = {
            "searchSpace": {"x": {"_type": "choice", "_value": [1, 2, 3]}},
            "tuner": {"name": "GridSearch"},
            "trialFunction": "train:main",
            "trialCodeDirectory": str(self.code),
            "trialConcurrency": 2,
            "maxTrialNumber": 3,
            "experimentWorkingDirectory": str(self.base / "experiments"),
            "weightsRoot": str(self.base / "weights"),
            "trialEnvironment": {"NOTED": str(self.noted)},
            "trainingService": {**service, **keys},
        }
        (self.base / "lab.yml").write_text(json.dumps(experiment))
        return subprocess.run(
            [sys.executable, "-m", "dispatcher.cli", *words, str(self.base / "lab.yml")],
            capture_output=True,
            text=True,
            stdin=subprocess.DEVNULL,
            timeout=200,
            cwd=self.base,
        )

    def nothing_is_left(self) -> None:
        wait_until(lambda: self.there.containers == 0, "no container is left")
        for kind in ("jobs", "pods", "secrets", "configmaps"):
            wait_until(lambda k=kind: self.there.api.objects.all(k) == [], f"no {kind} are left")  # type: ignore[misc]


def with_numpy_alone(base: Path) -> Path | None:
    """A Python that has numpy and nothing else, as many images have; None where no wheels for it
    can be had."""
    folder = base / "python"
    ours = str(Path(sys.base_prefix) / "bin" / "python3")
    subprocess.run([ours, "-m", "venv", "--without-pip", str(folder)], check=True, timeout=120)
    (packages,) = folder.glob("lib/python3*/site-packages")
    for each in Path(numpy.__file__).parents[1].glob("numpy*"):
        (packages / each.name).symlink_to(each)
    found = probe(python_here(python=str(folder / "bin" / "python")), Probe(str(base / "seen")))
    wheels = plan(found.host, found.missing, found.versions).wheels
    assert {"msgspec", "zmq", "blake3"} <= set(wheels)
    assert "numpy" not in wheels
    try:
        WheelCache().get(wheels.values(), found.host)
    except WheelsMissing:
        return None
    return folder / "bin" / "python"


@pytest.mark.parametrize("version", ["1.20", "1.36"])
def test_trials_run_what_was_brought(version: str, tmp_path: Path) -> None:
    """Once a place was looked over. Mutation: the code that lies here is taken for that there."""
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", version, places=2) as there:
        lab = Lab(there, tmp_path)
        python = with_numpy_alone(tmp_path) if version == "1.36" else None
        ran = lab.bequeath("run", python=str(python or sys.executable))
        assert ran.returncode == 0, ran.stdout + ran.stderr
        lab.nothing_is_left()
    (journal,) = (tmp_path / "experiments").glob("*/journal.sqlite")
    assert check_store(journal, over=True) == []
    assert len(list(journal.parent.glob("agents/*.probed"))) == 1
    assert not list((tmp_path / "weights").glob(".bequeath-seen-*"))
    modules = lab.work.glob("brought/modules/*/*/msgspec/__init__.py")
    assert len(list(modules)) == (python is not None)
    notes = sorted(lab.noted.iterdir())
    assert [each.name for each in notes] == ["1", "2", "3"]
    for note in notes:
        beside, runtime, folder = note.read_text().splitlines()
        assert beside.startswith(f"{lab.work}/brought/code/")
        assert runtime.startswith(f"{lab.work}/brought/runtime/")
        assert not folder.startswith(str(lab.work / "brought")), "the code is everybody's"


def test_what_is_wrong_there_is_said_before_any_trial(tmp_path: Path) -> None:
    """By `validate --connect`, and at the start, which ends. Mutations: only one of them asks; a
    Job stays that has not said yet that its pod has ended."""
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", places=2) as there:
        there.lag_s = 600.0
        lab = Lab(there, tmp_path)
        said = lab.bequeath("validate", "--connect", weightsRoot=str(tmp_path / "other"))
        lab.nothing_is_left()
        text = f"{tmp_path}/other is another folder"
        assert said.returncode == 1, said.stdout + said.stderr
        assert text in said.stdout
        assert "reaches the head" in said.stdout
        column = (tmp_path / "lab.yml").read_text().index(f'"{tmp_path}/other"') + 1
        assert f"lab.yml:1:{column}: kubernetes: problem: weights: {text}" in said.stdout
        assert list((tmp_path / "experiments").iterdir()) == []
        ran = lab.bequeath("run", weightsRoot=str(tmp_path / "other"))
        lab.nothing_is_left()
    assert ran.returncode != 0
    assert text in ran.stdout + ran.stderr
    assert not list(lab.noted.iterdir())
