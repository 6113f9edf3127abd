"""What a file gets to hear before anything is ordered, what a cluster is asked, and what becomes of
AdaptDLJobs whose pods come and go."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.findings import Finding, Severity
from dispatcher.platforms.adaptdl import ADAPTDL
from dispatcher.platforms.allocations.allocation import Allocation, Gone
from dispatcher.platforms.allocations.sweeping import sweep
from dispatcher.platforms.kubernetes.allocator import KubernetesAllocator
from dispatcher.platforms.kubernetes.api.kubeconfig import read_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from tests.support.kubernetes import api_server
from tests.support.processes import wait_until
from tests.unit.platforms.adaptdl.test_bodies import CRD, section
from tests.unit.platforms.kubernetes.test_bodies import order
from tests.unit.platforms.kubernetes.test_platform import OPEN, VOLUME, kubeconfig, problems

Served = api_server.ApiServer
LABEL, NAME = "abc123-0a0b0c", order().name


@pytest.fixture(autouse=True)
def _nothing_of_the_user(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.delenv("KUBECONFIG", raising=False)


@pytest.fixture
def there() -> Iterator[Served]:
    with api_server.serving(crds=[CRD]) as server:
        yield server


# -- the file --------------------------------------------------------------------------------------


def wrong(folder: Path, nodes: int, **keys: Any) -> dict[str, str]:
    given = {
        "platform": "adaptdl",
        "kubeconfig": kubeconfig(folder),
        "volumes": [VOLUME],
        "workFolder": "/weights/b",
        **keys,
    }
    return problems(folder, given, channel=OPEN, trialNodes=nodes)


def test_one_that_is_in_order(tmp_path: Path) -> None:
    assert wrong(tmp_path, 1) == {}
    assert wrong(tmp_path, 4, minReplicas=2, preemptible=False) == {}


def test_a_trial_has_pods_enough(tmp_path: Path) -> None:
    found = wrong(tmp_path, 1, minReplicas=2)
    assert "is 2, and a trial has 1 at most ('trialNodes')" in found.pop("minReplicas")
    assert found == {}


@pytest.mark.parametrize("key, value", [("queue", "q"), ("sharedMemory", "1Gi")])
def test_what_adaptdl_has_itself_is_refused_at_its_place(
    key: str, value: str, tmp_path: Path
) -> None:
    found = wrong(tmp_path, 1, **{key: value})
    assert "AdaptDL" in found.pop(key)
    assert found == {}


# -- the cluster -----------------------------------------------------------------------------------


def findings(there: Served, folder: Path, **keys: Any) -> list[Finding]:
    return list(ADAPTDL.inspect(section(kubeconfig=str(there.kubeconfig(folder)), **keys)))


def test_a_cluster_that_is_in_order(there: Served, tmp_path: Path) -> None:
    seen = findings(there, tmp_path)
    assert {each.severity for each in seen} == {Severity.OK}
    texts = [each.text for each in seen]
    assert "it has AdaptDLJobs of adaptdl.petuum.com/v1" in texts
    assert "it takes an AdaptDLJob with the image 'img:1'" in texts
    assert there.objects.all("adaptdljobs") == []


def test_a_cluster_without_adaptdl(tmp_path: Path) -> None:
    with api_server.serving() as there:
        seen = findings(there, tmp_path)
    assert [each.severity for each in seen] == [Severity.OK, Severity.PROBLEM]
    assert seen[1].text == "it has no AdaptDLJobs of adaptdl.petuum.com/v1"


def test_what_the_webhook_refuses_is_a_sentence(there: Served, tmp_path: Path) -> None:
    (finding,) = (
        x for x in findings(there, tmp_path, pod={"dnsPolcy": "None"}) if x.topic == "job"
    )
    assert finding.severity is Severity.PROBLEM
    assert "dnsPolcy" in finding.text


# -- orders ----------------------------------------------------------------------------------------


@pytest.fixture
def allocator(there: Served, tmp_path: Path) -> Iterator[KubernetesAllocator]:
    made = new(there, tmp_path)
    yield made
    made.close()


def new(there: Served, folder: Path) -> KubernetesAllocator:
    client = ApiServer(read_access([there.kubeconfig(folder)]))
    return KubernetesAllocator(client, section(), LABEL, token=lambda: "T")


def phase(there: Served, word: str, **more: Any) -> None:
    status = {"phase": word, **more}
    there.objects.change("adaptdljobs", "trials", NAME, lambda made: made.update(status=status))


def runs(there: Served, name: str, group: int) -> None:
    """A pod of a group, as AdaptDL and a kubelet make it."""
    uid = there.objects.get("adaptdljobs", "trials", NAME)["metadata"]["uid"]
    owner = {"apiVersion": CRD.api_version, "kind": CRD.word, "name": NAME, "uid": uid}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "name": name,
            "labels": {"adaptdl/job": NAME, "bequeath/service": LABEL},
            "annotations": {"adaptdl/group": str(group)},
            "ownerReferences": [owner],
        },
        "spec": {
            "nodeName": "n1",
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "agent", "image": "i"}],
        },
        "status": {"phase": "Running", "startTime": there.objects.timestamp()},
    }
    there.objects.create("pods", "trials", body)


def until(allocator: KubernetesAllocator, state: str) -> Allocation:
    found: list[Allocation] = []

    def looks() -> bool:
        found[:] = [x for x in allocator.look() if x.name == NAME and x.state == state]
        return bool(found)

    wait_until(looks, f"it is {state}")
    return found[0]


def stops(there: Served, name: str, code: int) -> None:
    """A pod is asked to go, and goes."""
    there.objects.delete("pods", "trials", name, {"gracePeriodSeconds": 30})
    ended = {"exitCode": code, "finishedAt": there.objects.timestamp(), "reason": "Error"}
    container = {
        "name": "agent", "image": "i", "imageID": "", "ready": False, "restartCount": 0,
        "state": {"terminated": ended},
    }  # fmt: skip
    status = {"phase": "Failed" if code else "Succeeded", "containerStatuses": [container]}
    there.objects.change("pods", "trials", name, lambda made: made["status"].update(status))
    there.objects.remove("pods", "trials", name)


def test_a_rescale_is_no_end(there: Served, allocator: KubernetesAllocator) -> None:
    """One allocation, whose pods are others; how those before went says nothing of its end.
    Mutations: another pod is a second start; a job that was ever moved has been evicted."""
    allocator.submit(order())
    assert until(allocator, "waiting").renewed
    phase(there, "Running", group=0)
    runs(there, "p0", 0)
    assert until(allocator, "running").renewed
    phase(there, "Stopping", group=0)
    stops(there, "p0", 143)
    waits = until(allocator, "waiting")
    assert (waits.reason, waits.waiting_s) == ("AdaptDL stops its pods, to start them anew", 0.0)
    phase(there, "Running", group=1)
    runs(there, "p1", 1)
    assert until(allocator, "running").gone is None
    there.objects.remove("pods", "trials", "p1")
    phase(there, "Succeeded", group=1)
    assert until(allocator, "ended").gone is Gone.FINISHED


def test_one_that_is_deleted_is_gone_before_its_pods(
    there: Served, allocator: KubernetesAllocator
) -> None:
    """AdaptDL makes new pods of a job that is there. Mutation: the pods go first, and others come
    in their place."""
    allocator.submit(order())
    phase(there, "Running", group=0)
    runs(there, "p0", 0)
    until(allocator, "running")
    allocator.cancel([NAME], 60.0)
    assert there.objects.all("adaptdljobs") == []
    assert there.objects.all("secrets") == []
    (pod,) = there.objects.all("pods")
    assert pod["metadata"]["deletionGracePeriodSeconds"] == 30
    wait_until(lambda: not until(allocator, "running").renewed, "nobody starts it again")
    there.objects.remove("pods", "trials", "p0")
    assert until(allocator, "ended").gone is Gone.CANCELLED


def test_one_that_somebody_else_has_deleted(there: Served, allocator: KubernetesAllocator) -> None:
    allocator.submit(order())
    phase(there, "Pending")
    until(allocator, "waiting")
    there.objects.remove("adaptdljobs", "trials", NAME)
    ended = until(allocator, "ended")
    assert (ended.gone, ended.reason) == (
        Gone.CANCELLED, "its AdaptDLJob was deleted in 'trials'",
    )  # fmt: skip


def test_what_a_dead_head_has_left_is_swept(there: Served, tmp_path: Path) -> None:
    """Also what has ended: AdaptDL keeps it for ever."""
    first = new(there, tmp_path)
    first.submit(order())
    phase(there, "Succeeded", group=0)
    first.close()
    assert len(there.objects.all("adaptdljobs")) == 1
    assert sweep(new(there, tmp_path), LABEL) == []
    assert there.objects.all("adaptdljobs") == []


def test_a_job_of_that_name_may_be_somebody_elses(
    there: Served, allocator: KubernetesAllocator
) -> None:
    allocator.submit(order())
    other = {"annotations": {"bequeath/ticket": "another"}}
    there.objects.change("adaptdljobs", "trials", NAME, lambda x: x["metadata"].update(other))
    with pytest.raises(PermanentBackendError, match="has not ordered"):
        allocator.submit(order())
