"""What a file gets to hear before anything is ordered, and what a cluster is asked."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from dispatcher.cli.main import app
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.kubeflow import KUBEFLOW
from dispatcher.platforms.kubeflow.kinds import KINDS
from dispatcher.platforms.kubernetes.allocator import KubernetesAllocator
from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from dispatcher.platforms.kubernetes.rights import rights_of, role_of
from dispatcher.platforms.kubernetes.translation import order_there
from tests.support.kubernetes import api_server
from tests.support.kubernetes.crds import Crd
from tests.support.processes import wait_until
from tests.unit.platforms.kubeflow.test_bodies import CRDS, section
from tests.unit.platforms.kubernetes.test_bodies import order
from tests.unit.platforms.kubernetes.test_platform import OPEN, VOLUME, kubeconfig, problems

Served = api_server.ApiServer


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


@pytest.fixture
def there(version: str) -> Iterator[Served]:
    with api_server.serving(version, crds=list(CRDS.values())) as server:
        yield server


@pytest.fixture(params=["1.20", "1.36"])
def version(request: pytest.FixtureRequest) -> str:
    return str(request.param)


# -- the file --------------------------------------------------------------------------------------


def wrong(folder: Path, nodes: int, **keys: Any) -> dict[str, str]:
    given = {
        "platform": "kubeflow",
        "kubeconfig": kubeconfig(folder),
        "volumes": [VOLUME],
        "workFolder": "/weights/b",
        **keys,
    }
    return problems(folder, given, channel=OPEN, trialNodes=nodes)


@pytest.mark.parametrize("nodes", [1, 4])
def test_one_that_is_in_order(nodes: int, tmp_path: Path) -> None:
    assert wrong(tmp_path, nodes) == {}
    assert wrong(tmp_path, nodes, roles=[{"name": "master", "requests": {"cpu": 1}}]) == {}


def test_roles_are_those_of_a_trial(tmp_path: Path) -> None:
    one = wrong(tmp_path, 1, roles=[{"name": "worker"}])
    assert "names 'worker', and a trial has one pod" in one.pop("roles")
    assert one == {}
    several = wrong(tmp_path, 3, roles=[{"name": "worker", "replicas": 5}])
    assert "name 6 pods, and a trial has 3 ('trialNodes')" in several.pop("roles[0]")
    assert several == {}


def test_pods_of_one_trial_need_a_folder_to_meet_in(tmp_path: Path) -> None:
    """As Jobs do. Mutation: the checks of pods are left out."""
    assert "workFolder" in wrong(tmp_path, 2, volumes=[])


def test_an_old_version_is_refused_at_its_place(tmp_path: Path) -> None:
    found = wrong(tmp_path, 1, apiVersion="kubeflow.org/v1alpha2")
    assert "no operator serves any more" in found.pop("apiVersion")
    assert found == {}


def test_an_agent_leaves_the_variables_of_the_operator_alone() -> None:
    there = order_there(order(), section(), token="T").config
    assert (there.launched, there.rank_variable) == (True, "BEQUEATH_RANK")


# -- the cluster -----------------------------------------------------------------------------------


def findings(there: Served, folder: Path, **keys: Any) -> list[Finding]:
    return list(KUBEFLOW.inspect(section(kubeconfig=str(there.kubeconfig(folder)), **keys)))


@pytest.mark.parametrize("kind", list(KINDS))
def test_a_cluster_that_is_in_order(kind: str, there: Served, tmp_path: Path) -> None:
    seen = findings(there, tmp_path, kind=kind)
    assert {each.severity for each in seen} == {Severity.OK}
    texts = [each.text for each in seen]
    assert f"it has {kind}s of kubeflow.org/v1" in texts
    assert f"it takes a {kind} with the image 'img:1'" in texts
    assert there.objects.all(CRDS[kind].plural) == []


def test_a_cluster_without_the_operator(tmp_path: Path) -> None:
    with api_server.serving() as there:
        seen = findings(there, tmp_path)
    assert [each.severity for each in seen] == [Severity.OK, Severity.PROBLEM]
    assert seen[1].text == "it has no PyTorchJobs of kubeflow.org/v1"
    assert "install the Kubeflow Training Operator" in seen[1].hint


def test_a_cluster_with_an_operator_of_before(tmp_path: Path) -> None:
    old = {**CRDS["PyTorchJob"].document}
    spec = dict(old["spec"])
    spec["versions"] = [{**spec["versions"][0], "name": "v1beta2"}]
    with api_server.serving(crds=[Crd({**old, "spec": spec})]) as there:
        seen = findings(there, tmp_path)
    assert seen[1].text == (
        "it has no PyTorchJobs of kubeflow.org/v1; of that group there is kubeflow.org/v1beta2"
    )
    assert (seen[1].severity, len(seen)) == (Severity.PROBLEM, 2)


@pytest.mark.parametrize("version", ["1.36"])
def test_a_field_that_nobody_knows(there: Served, tmp_path: Path) -> None:
    (finding,) = (x for x in findings(there, tmp_path, runPolicy={"schedulngPolicy": {}})
                  if x.topic == "job")  # fmt: skip
    assert finding.severity is Severity.NOTE
    assert 'unknown field "spec.runPolicy.schedulngPolicy"' in finding.text


@pytest.mark.parametrize("version", ["1.36"])
def test_rights_that_are_missing(there: Served, tmp_path: Path) -> None:
    there.denied |= {("delete", "pytorchjobs"), ("create", "jobs")}
    (finding,) = (x for x in findings(there, tmp_path) if x.topic == "rights")
    assert finding.text == "you may not delete pytorchjobs"


def test_the_role_is_for_both_kinds() -> None:
    (role, _) = role_of("trials", "alice", list(KINDS.values()))
    given = {
        (verb, x) for rule in role["rules"] for x in rule["resources"] for verb in rule["verbs"]
    }
    assert given == {(x.verb, x.kind.plural) for x in rights_of(*KINDS.values())}
    assert {("create", "pytorchjobs"), ("create", "tfjobs"), ("patch", "secrets")} <= given
    assert ("create", "jobs") not in given


@pytest.mark.parametrize(
    "platform, text",
    [("kubeflow", "- tfjobs"), ("slurm", "run in no pods"), ("mesos", "is not installed")],
)
def test_the_role_is_printed(platform: str, text: str) -> None:
    ran = CliRunner().invoke(app, ["kubernetes", "rights", "alice", "--platform", platform])
    assert text in " ".join(ran.output.replace("│", " ").split())
    assert (ran.exit_code == 0) is (platform == "kubeflow")


# -- orders ----------------------------------------------------------------------------------------


def test_an_order_is_an_object_that_owns_its_secret(there: Served, tmp_path: Path) -> None:
    """Asked for twice it is one; it is stopped by its end, and what it owns goes with it."""
    label, name = "abc123-0a0b0c", order().name
    client = ApiServer(read_access([there.kubeconfig(tmp_path)]))
    allocator = KubernetesAllocator(client, section(kind="TFJob"), label, token=lambda: "T")
    allocator.submit(order())
    allocator.submit(order())
    (job,) = there.objects.all("tfjobs")
    (secret,) = there.objects.all("secrets")
    (owner,) = secret["metadata"]["ownerReferences"]
    assert (owner["apiVersion"], owner["kind"]) == ("kubeflow.org/v1", "TFJob")
    assert (owner["name"], owner["uid"]) == (name, job["metadata"]["uid"])
    assert "S3CRET" not in str(job)
    wait_until(lambda: [each.name for each in allocator.look()] == [name], "it is seen")
    allocator.cancel([name], 5.0)
    assert "deletionTimestamp" in there.objects.get("tfjobs", "trials", name)["metadata"]
    there.objects.remove("tfjobs", "trials", name)
    wait_until(lambda: allocator.look()[0].state is AllocationState.ENDED, "it has gone")
    assert allocator.look()[0].gone is Gone.CANCELLED
    assert there.objects.all("secrets") == []
    allocator.close()
