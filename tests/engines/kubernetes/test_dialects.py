"""Kinds of objects of other controllers on a real API server: it judges what is sent by their own
definitions, and collects what is left; the controllers are played, containers are processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import urllib.error
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.findings import Severity
from dispatcher.platforms.kubeflow import KUBEFLOW
from dispatcher.platforms.kubernetes.api.kubeconfig import find_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from dispatcher.platforms.kubernetes.bodies import object_of
from dispatcher.platforms.kubernetes.rights import role_of
from dispatcher.platforms.trainer import TRAINER
from dispatcher.platforms.trainer.kind import TRAIN_JOB
from tests.support.digits import digits
from tests.support.kubernetes.adaptdl import adaptdl_controllers
from tests.support.kubernetes.framework_controller import framework_controllers
from tests.support.kubernetes.real import RealCluster, real_cluster, why_not
from tests.support.kubernetes.real_operators import path_of, played
from tests.support.kubernetes.trainer_controller import trainer_operators
from tests.support.kubernetes.training_operator import training_operators
from tests.support.processes import wait_until
from tests.unit.platforms.adaptdl import test_bodies as adaptdl
from tests.unit.platforms.frameworkcontroller import test_bodies as frameworks
from tests.unit.platforms.kubeflow import test_bodies as kubeflow
from tests.unit.platforms.kubernetes.test_bodies import order
from tests.unit.platforms.trainer import test_bodies as trainer

pytestmark = [
    pytest.mark.needs("kubernetes"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "all is there"),
]


@pytest.fixture(scope="module")
def there() -> Iterator[RealCluster]:
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        real_cluster(Path(folder, "cluster"), nodes=("n1", "n2"), cpus=4) as made,
        played(
            made,
            [
                *training_operators(),
                *trainer_operators(),
                *framework_controllers(),
                *adaptdl_controllers(),
            ],
        ),
    ):
        yield made


@pytest.fixture
def weights() -> Iterator[Path]:
    """A folder that pods and this machine see."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("keys", [{}, {"kind": "TFJob"}, kubeflow.OF_TF])
def test_the_server_takes_what_is_sent(keys: Any, nodes: int, there: RealCluster) -> None:
    """And drops none of it, as it does with what is misspelt."""
    job = kubeflow.job_of(nodes, **keys)
    crd = kubeflow.CRDS[job["kind"]]
    made = there.admin("POST", f"{path_of(crd)}?dryRun=All", job)
    assert _without(made["spec"], job["spec"]) == []
    job["spec"]["runPolicy"]["backofLimit"] = job["spec"]["runPolicy"].pop("backoffLimit")
    made = there.admin("POST", f"{path_of(crd)}?dryRun=All", job)
    assert _without(made["spec"], job["spec"]) == ["runPolicy.backofLimit"]
    job["spec"]["runPolicy"]["ttlSecondsAfterFinished"] = "soon"
    with pytest.raises(urllib.error.HTTPError, match="422"):
        there.admin("POST", f"{path_of(crd)}?dryRun=All", job)


@pytest.mark.parametrize("nodes", [1, 5])
@pytest.mark.parametrize("keys", [{}, frameworks.ROLES], ids=["one", "roles"])
def test_the_server_takes_frameworks(keys: Any, nodes: int, there: RealCluster) -> None:
    """By the definition that was derived for them."""
    framework = frameworks.framework_of(nodes, **keys)
    path = f"{path_of(frameworks.CRD)}?dryRun=All"
    made = there.admin("POST", path, framework)
    assert _without(made["spec"], framework["spec"]) == []
    role = framework["spec"]["taskRoles"][0]
    role["taskNumbr"] = role.pop("taskNumber")
    made = there.admin("POST", path, framework)
    assert _without(made["spec"], framework["spec"]) == ["taskRoles[0].taskNumbr"]
    framework["metadata"]["name"] = "with-dashes"
    with pytest.raises(urllib.error.HTTPError, match="422"):
        there.admin("POST", path, framework)


@pytest.mark.parametrize("nodes", [1, 4])
def test_the_server_takes_adaptdl_jobs(nodes: int, there: RealCluster) -> None:
    job = adaptdl.job_of(nodes, minReplicas=1)
    path = f"{path_of(adaptdl.CRD)}?dryRun=All"
    made = there.admin("POST", path, job)
    assert _without(made["spec"], job["spec"]) == []
    job["spec"]["minReplica"] = job["spec"].pop("minReplicas")
    made = there.admin("POST", path, job)
    assert _without(made["spec"], job["spec"]) == ["minReplica"]
    job["spec"]["maxReplicas"] = 0
    with pytest.raises(urllib.error.HTTPError, match="422"):
        there.admin("POST", path, job)


@pytest.mark.parametrize("nodes", [1, 4])
@pytest.mark.parametrize("keys", [{}, trainer.MUCH], ids=["least", "much"])
def test_the_server_takes_train_jobs(keys: Any, nodes: int, there: RealCluster) -> None:
    """By its schema our fields are those that it has: none is dropped."""
    client = ApiServer(find_access(Path(there.kubeconfig()), ""))
    wait_until(lambda: "TrainJob" in client.schemas(TRAIN_JOB.resource.api), "it is published")
    section = trainer.section(**keys, wallTime="1h")
    kind = TRAIN_JOB.served_by(client, section)
    job = object_of(kind, order(nodes=nodes), section, "abc123-0a0b0c")
    made = client.create(kind.resource, job, dry_run=True).document
    assert _without(made["spec"], job["spec"]) == []
    job["spec"]["runtimePatch"] = job["spec"].pop("runtimePatches")
    made = client.create(kind.resource, job, dry_run=True).document
    assert _without(made["spec"], job["spec"]) == ["runtimePatch"]
    client.close()


def test_a_training_runtime_is_looked_for(there: RealCluster) -> None:
    keys = {"kubeconfig": there.kubeconfig(), "namespace": "default", "serviceAccount": "default"}
    seen = list(TRAINER.inspect(trainer.section(**keys)))
    assert {each.severity for each in seen} == {Severity.OK}, seen
    assert "there is the ClusterTrainingRuntime 'of-agents'" in [each.text for each in seen]
    seen = list(TRAINER.inspect(trainer.section(**keys, runtimeRef="lost")))
    (problem,) = (each for each in seen if each.severity is Severity.PROBLEM)
    assert problem.text == "there is no ClusterTrainingRuntime 'lost'"


def _without(made: Any, wanted: Any, at: str = "") -> list[str]:
    """The paths of what an object lacks."""
    if isinstance(wanted, dict):
        found = []
        for key, value in wanted.items():
            place = f"{at}.{key}".lstrip(".")
            found += [place] if key not in made else _without(made[key], value, place)
        return found
    if isinstance(wanted, list):
        pairs = enumerate(zip(made, wanted, strict=True))
        return [x for i, (a, b) in pairs for x in _without(a, b, f"{at}[{i}]")]
    return [] if made == wanted else [at]


def test_somebody_with_the_role_may_do_all_that_is_needed(there: RealCluster) -> None:
    keys = {"kubeconfig": there.kubeconfig("alice"), "namespace": "default"}
    seen = list(KUBEFLOW.inspect(kubeflow.section(**keys)))
    assert any(x.topic == "rights" and x.severity is Severity.PROBLEM for x in seen)
    bodies = list(role_of("default", "alice", KUBEFLOW.section.allocation_kinds()))
    try:
        for body in bodies:
            there.apply(body)
        wait_until(lambda: _is_allowed(keys), "the rights are known")
        texts = [each.text for each in KUBEFLOW.inspect(kubeflow.section(**keys))]
        assert "it has PyTorchJobs of kubeflow.org/v1" in texts
        assert "it takes a PyTorchJob with the image 'img:1'" in texts
    finally:
        for body in bodies:
            there.unapply(body)


def _is_allowed(keys: dict[str, str]) -> bool:
    seen = KUBEFLOW.inspect(kubeflow.section(**keys))
    return all(each.severity is not Severity.PROBLEM for each in seen)


def test_trials_run_in_pytorchjobs(there: RealCluster, weights: Path, tmp_path: Path) -> None:
    """A drain, and a head that is killed. No result is lost or there twice, and nothing is left:
    the server's own controllers collect Secrets and pods behind their jobs."""
    service = {
        "platform": "kubeflow",
        "kubeconfig": there.kubeconfig(),
        "image": "python:3",
        "python": sys.executable,
        "volumes": [{"hostPath": str(weights), "at": str(weights)}],
        "headAddress": "127.0.0.1",
        "requests": {"cpu": "2"},
        "allocations": 2,
        "bringCode": True,
        "workFolder": "/work",
    }
    with digits(tmp_path / "lab", service, weights) as lab:
        lab.allow(4)
        wait_until(lambda: lab.done() >= 4, "trials have results")
        there.drain(there.running()[0]["metadata"]["name"])
        wait_until(lambda: lab.losses(), "a place was taken back")
        wait_until(lambda: len(there.running()) == 2, "another one is had")
        lab.kill()
        lab.resume()
        lab.allow(60)
        lab.ends_well(300)
        losses = lab.losses()
        assert all(each.planned for each in losses), [each.reason for each in losses]
    jobs = path_of(kubeflow.CRDS["PyTorchJob"])
    wait_until(lambda: there.admin("GET", jobs)["items"] == [], "no jobs are left")
    wait_until(lambda: there.all("pods") == [], "no pods are left")
    labels = (each["metadata"].get("labels", {}) for each in there.all("secrets"))
    assert not [each for each in labels if "bequeath/service" in each]


SUITE = Path(__file__).parents[2] / "support/kubernetes/conformance_real.py"


@pytest.mark.extended
@pytest.mark.parametrize(
    "service, operators",
    [
        ({"platform": "kubeflow", "kind": "TFJob"}, "training_operator:training_operators"),
        ({"platform": "adaptdl"}, "adaptdl:adaptdl_controllers"),
    ],
    ids=["kubeflow", "adaptdl"],
)
def test_the_conformance_suite(service: dict[str, Any], operators: str, tmp_path: Path) -> None:
    """Of the usual kind, and of the one that differs most; the others run it on the server of our
    own (tests/integration/platforms), which takes a part of the time."""
    plugin = ["-p", "dispatcher.conformance.plugin", "-p", "no:cacheprovider"]
    words = ["-q", "-x", "-rs", *plugin, f"--rootdir={tmp_path}", "-c", os.devnull, str(SUITE)]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--basetemp={tmp_path / 'tmp'}"],
        cwd=tmp_path,
        env={
            **os.environ,
            "PYTHONPATH": str(Path(__file__).parents[3]),
            "PLAYED_SERVICE": json.dumps(service),
            "PLAYED_OPERATORS": f"tests.support.kubernetes.{operators}",
        },
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
