"""Trials of several pods with roles, below a real head: one speaks, and the others are watched."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from tests.support.checker import check_store, read_store
from tests.support.kubernetes.cluster import Cluster, cluster
from tests.support.kubernetes.training_operator import training_operators
from tests.support.processes import wait_until

ROOT = Path(__file__).parents[4]

#: Each rank shows what it knows. A parameter server waits for ever, and a worker may die.
TRIAL = """\
import json
import os
import pathlib
import signal
import sys
import trial_runtime as bq

def main(parameters):
    names = ("BEQUEATH_ROLE", "RANK", "NODE_RANK", "MASTER_ADDR", "WORLD_SIZE", "TF_CONFIG")
    print(json.dumps({name: os.environ.get(name) for name in names}), flush=True)
    role, shown = os.environ["BEQUEATH_ROLE"], pathlib.Path(__file__).parent
    (shown / f"shown.{os.environ['NODE_RANK']}").touch()
    if role == parameters["dies"]:
        while len(list(shown.glob("shown.*"))) < 4:
            os.sched_yield()
        sys.exit("no such layer")
    if role in ("ps", parameters["waits"]):
        signal.pause()
    bq.report_final(1.0)
"""


def run_on(there: Cluster, folder: Path, space: dict[str, str], **service: Any) -> Path:
    """Run one trial of four pods, and return the experiment's folder."""
    (folder / "code").mkdir()
    (folder / "code/trial.py").write_text(TRIAL)
    shared = folder / "shared"
    shared.mkdir()
    (folder / "lab.yml").write_text(json.dumps({
        "tuner": {"name": "Random"},
        "searchSpace": {k: {"_type": "choice", "_value": [v]} for k, v in space.items()},
        "trialFunction": "trial:main",
        "trialCodeDirectory": str(folder / "code"),
        "trialNodes": 4,
        "trialConcurrency": 1,
        "maxTrialNumber": 1,
        "trialRetries": 0,
        "trialStopGrace": "2s",
        "weightsRoot": str(shared),
        "experimentWorkingDirectory": str(folder / "experiments"),
        "trainingService": {
            "platform": "kubeflow",
            "kubeconfig": str(there.api.kubeconfig(folder)),
            "image": "our/own:1",
            "python": sys.executable,
            "volumes": [{"hostPath": str(shared), "at": str(shared)}],
            "workFolder": str(shared / "work"),
            "headAddress": "127.0.0.1",
            "probe": False,
            **service,
        },
    }))  # fmt: skip
    ran = subprocess.run(
        [sys.executable, "-m", "dispatcher.cli", "run", "lab.yml"],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    (made,) = (folder / "experiments").glob("lab-*")
    assert check_store(made / "journal.sqlite", over=True) == [], ran.stdout + ran.stderr
    return made


def end_of(folder: Path) -> e.AttemptEnded:
    events = [row.event for row in read_store(folder / "journal.sqlite")]
    assert not [x for x in events if isinstance(x, e.WorkerLost) and not x.planned]
    (end,) = (x for x in events if isinstance(x, e.AttemptEnded))
    return end


def shown_in(folder: Path) -> list[dict[str, Any]]:
    """What each rank has shown, in their order."""
    names = ["stdout", *(f"stdout.rank{rank}" for rank in range(1, 4))]
    files = [next((folder / "shared/work").rglob(name)) for name in names]
    return [json.loads(path.read_text()) for path in files]


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_chief_speaks_and_parameter_servers_are_stopped(tmp_path: Path) -> None:
    """Mutations: the first worker is rank 0; who never ends makes the trial fail; a variable of the
    operator is lost on the way to the trial."""
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", operators=training_operators()) as there:
        keys = {"kind": "TFJob", "roles": [{"name": "chief"}, {"name": "ps"}]}
        space = {"dies": "nobody", "waits": "worker"}
        made = run_on(there, tmp_path, space, **keys)
        assert end_of(made).reason == EndReason.FINISHED
        shown = shown_in(tmp_path)
        wait_until(lambda: there.containers == 0, "no container is left")
        for kind in ("tfjobs", "pods", "secrets"):
            wait_until(lambda k=kind: there.api.objects.all(k) == [], f"no {kind} are left")
    assert [x["BEQUEATH_ROLE"] for x in shown] == ["chief", "worker", "worker", "ps"]
    assert [x["RANK"] for x in shown] == ["0", "1", "2", "3"], "ours, as the operator has none"
    tasks = [json.loads(x["TF_CONFIG"])["task"] for x in shown]
    assert [(x["type"], x["index"]) for x in tasks] == [
        ("chief", 0), ("worker", 0), ("worker", 1), ("ps", 0),
    ]  # fmt: skip


@pytest.mark.slow
@pytest.mark.timeout(300)
def test_a_worker_that_fails_ends_the_attempt(tmp_path: Path) -> None:
    """With its last words, and the operator's variables in all of them."""
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", operators=training_operators()) as there:
        made = run_on(there, tmp_path, {"dies": "worker", "waits": "master"})
        shown = shown_in(tmp_path)
        wait_until(lambda: there.api.objects.all("pytorchjobs") == [], "nothing is left")
    end = end_of(made)
    assert end.reason == EndReason.FAILED
    assert end.text.splitlines()[-1] == "no such layer"
    assert [x["BEQUEATH_ROLE"] for x in shown] == ["master", *["worker"] * 3]
    for rank, variables in enumerate(shown):
        assert variables["MASTER_ADDR"].endswith("-1-master-0")
        assert (variables["RANK"], variables["WORLD_SIZE"]) == (str(rank), "4")
