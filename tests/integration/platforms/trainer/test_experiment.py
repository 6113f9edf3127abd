"""Experiments below a real head in TrainJobs: of several nodes, and of one that begins anew."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from tests.support.checker import check_store, read_store
from tests.support.kubernetes.cluster import Cluster, cluster
from tests.support.kubernetes.trainer_controller import TrainController, trainer
from tests.support.processes import wait_until

ROOT = Path(__file__).parents[4]

pytestmark = [pytest.mark.slow, pytest.mark.timeout(300)]

#: Each rank shows what it knows; the first attempt waits for its end, if it is to.
TRIAL = """\
import json
import os
import signal
import trial_runtime as bq

def main(parameters):
    shown = ("RANK", "WORLD_SIZE", "PET_")
    print(json.dumps({k: v for k, v in os.environ.items() if k.startswith(shown)}), flush=True)
    began = os.path.join(parameters["waits"], "began")
    if parameters["waits"] and not os.path.exists(began):
        open(began, "x").close()
        signal.pause()
    bq.report_final(1.0)
"""


@pytest.fixture
def played(tmp_path: Path) -> Iterator[tuple[Cluster, TrainController]]:
    controller, *keepers = trainer()
    (tmp_path / "cluster").mkdir()
    with cluster(tmp_path / "cluster", operators=[controller, *keepers]) as made:
        yield made, controller


@contextlib.contextmanager
def running(there: Cluster, folder: Path, *, nodes: int, waits: str) -> Iterator[Path]:
    """Run one trial; its experiments' folder. It has ended well in the end."""
    (folder / "code").mkdir()
    (folder / "code/trial.py").write_text(TRIAL)
    shared = folder / "shared"
    shared.mkdir()
    (folder / "lab.yml").write_text(json.dumps({
        "tuner": {"name": "Random"},
        "searchSpace": {"waits": {"_type": "choice", "_value": [waits]}},
        "trialFunction": "trial:main",
        "trialCodeDirectory": str(folder / "code"),
        "trialNodes": nodes,
        "trialConcurrency": 1,
        "maxTrialNumber": 1,
        "trialRetries": 0,
        "trialStopGrace": "2s",
        "weightsRoot": str(shared),
        "experimentWorkingDirectory": str(folder / "experiments"),
        "trainingService": {
            "platform": "trainer",
            "runtimeRef": "of-agents",
            "kubeconfig": str(there.api.kubeconfig(folder)),
            "image": "our/own:1",
            "python": sys.executable,
            "volumes": [{"hostPath": str(shared), "at": str(shared)}],
            "workFolder": str(shared / "work"),
            "headAddress": "127.0.0.1",
            "probe": False,
        },
    }))  # fmt: skip
    with (folder / "output").open("wb") as output:
        head = subprocess.Popen(
            [sys.executable, "-m", "dispatcher.cli", "run", "lab.yml"],
            cwd=folder,
            env={**os.environ, "PYTHONPATH": str(ROOT)},
            stdout=output,
            stderr=output,
        )
    try:
        yield folder / "experiments"
        assert head.wait(200) == 0, (folder / "output").read_text()
    finally:
        head.kill()
        head.wait()
    for kind in ("trainjobs", "pods", "secrets"):
        wait_until(lambda k=kind: there.api.objects.all(k) == [], f"no {kind} are left")
    wait_until(lambda: there.containers == 0, "no container is left")


def events_of(experiments: Path) -> list[Any]:
    (made,) = experiments.glob("lab-*")
    assert check_store(made / "journal.sqlite", over=True) == []
    return [row.event for row in read_store(made / "journal.sqlite")]


def test_nodes_find_what_the_trainer_says(
    played: tuple[Cluster, TrainController], tmp_path: Path
) -> None:
    """One TrainJob of two nodes, and one agent in each. Mutations: a variable of the trainer is
    overwritten; ranks are taken as nodes come."""
    there, _ = played
    with running(there, tmp_path, nodes=2, waits="") as experiments:
        pass
    (end,) = (x for x in events_of(experiments) if isinstance(x, e.AttemptEnded))
    assert end.reason == EndReason.FINISHED
    work = tmp_path / "shared/work"
    shown = [json.loads(next(work.rglob(x)).read_text()) for x in ("stdout", "stdout.rank1")]
    for rank, variables in enumerate(shown):
        assert (variables["RANK"], variables["WORLD_SIZE"]) == (str(rank), "2")
        assert (variables["PET_NODE_RANK"], variables["PET_NNODES"]) == (str(rank), "2")
        assert variables["PET_MASTER_PORT"] == "29500"
        first, _, network = variables["PET_MASTER_ADDR"].partition(".")
        assert first == f"{network}-node-0-0", "by the names that JobSets give"


def test_one_that_begins_anew_is_tried_again_and_nobody_is_blamed(
    played: tuple[Cluster, TrainController], tmp_path: Path
) -> None:
    """Somebody removes its JobSet: the agents of the next one are refused, and that TrainJob goes.
    Mutations: the second agent is believed; the trial has failed, and has no retry."""
    there, controller = played
    with running(there, tmp_path, nodes=1, waits=str(tmp_path)) as experiments:
        wait_until(lambda: (tmp_path / "began").exists(), "the trial waits")
        (job,) = there.api.objects.all("trainjobs")
        name = job["metadata"]["name"]
        controller.remove_job_set(name)
        wait_until(
            lambda: {x["metadata"]["name"] for x in there.api.objects.all("trainjobs")} - {name},
            "another one is ordered",
        )
    events = events_of(experiments)
    ends = [x.reason for x in events if isinstance(x, e.AttemptEnded)]
    assert ends == [EndReason.PREEMPTED, EndReason.FINISHED]
    (lost,) = (x for x in events if isinstance(x, e.WorkerLost))
    assert lost.planned
