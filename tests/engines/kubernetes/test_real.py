"""Trials in Jobs of a real API server with real controllers; containers are processes."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.conformance.rig import Rig, new_experiment
from dispatcher.core import actions as a
from dispatcher.core import events as e
from dispatcher.core.model import EndReason
from dispatcher.errors import PassingBackendError, PermanentBackendError
from dispatcher.findings import Severity
from dispatcher.platforms.kubernetes import KUBERNETES
from dispatcher.platforms.kubernetes.allocator import KubernetesAllocator
from dispatcher.platforms.kubernetes.api.kubeconfig import find_access
from dispatcher.platforms.kubernetes.api.server import ApiServer
from dispatcher.platforms.kubernetes.jobs import JOB
from dispatcher.platforms.kubernetes.rights import role_of
from tests.support.digits import TRIALS, digits
from tests.support.kubernetes.head import NAME, HeadInPod
from tests.support.kubernetes.real import RealCluster, real_cluster, why_not
from tests.support.processes import wait_until
from tests.unit.platforms.kubernetes.test_bodies import order, section

pytestmark = [
    pytest.mark.needs("kubernetes"),
    pytest.mark.slow,
    pytest.mark.timeout(900),
    pytest.mark.skipif(bool(why_not()), reason=why_not() or "all is there"),
]

ROOT = Path(__file__).parents[3]
SUITE = ROOT / "tests/support/kubernetes/conformance_real.py"

#: What the suite leaves out where a platform itself shows no files of attempts, and the head asks
#: agents for them: files of several attempts by one way.
NO_FILES = 1

NODES = ("n1", "n2", "n3")


def test_the_conformance_suite(tmp_path: Path) -> None:
    plugin = ["-p", "dispatcher.conformance.plugin", "-p", "no:cacheprovider"]
    words = ["-q", "-x", "-rs", *plugin, f"--rootdir={tmp_path}", "-c", os.devnull, str(SUITE)]
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", *words, f"--basetemp={tmp_path / 'tmp'}"],
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=800,
        check=False,
    )
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert f"{NO_FILES} skipped" in ran.stdout, ran.stdout


@pytest.fixture(scope="module")
def of_all() -> Iterator[RealCluster]:
    """A cluster with three nodes, on a file system that is not the root of its pods."""
    with (
        tempfile.TemporaryDirectory(dir="/dev/shm") as folder,
        real_cluster(Path(folder, "cluster"), nodes=NODES, cpus=4) as made,
    ):
        yield made


@pytest.fixture
def there(of_all: RealCluster) -> RealCluster:
    """The cluster, without what a test before has left that failed."""
    try:
        left = of_all.all("jobs") or of_all.all("pods")
    except OSError:
        of_all.rig("start", "apiserver")
        left = of_all.all("jobs") or of_all.all("pods")
    if left:
        of_all.delete_all()
    return of_all


@pytest.fixture
def weights() -> Iterator[Path]:
    """A folder that pods and this machine see."""
    with tempfile.TemporaryDirectory(dir="/dev/shm") as folder:
        yield Path(folder)


def service(there: RealCluster, weights: Path, **keys: Any) -> dict[str, Any]:
    return {
        "platform": "kubernetes",
        "kubeconfig": there.kubeconfig(),
        "image": "python:3",
        "python": sys.executable,
        "volumes": [{"hostPath": str(weights), "at": str(weights)}],
        "headAddress": "127.0.0.1",
        "probe": False,
        **keys,
    }


def free_port() -> int:
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port: int = one.getsockname()[1]
        return port


def ours(there: RealCluster, kind: str) -> list[dict[str, Any]]:
    """The metadata of what has a label of ours."""
    found: list[dict[str, Any]] = [each["metadata"] for each in there.all(kind)]
    return [each for each in found if "bequeath/service" in each.get("labels", {})]


def nothing_is_left(there: RealCluster) -> None:
    for kind in ("jobs", "pods"):
        wait_until(lambda k=kind: there.all(k) == [], f"no {kind} are left")  # type: ignore[misc]
    # They are collected behind their Jobs, by the controller.
    wait_until(lambda: ours(there, "secrets") == [], "Secrets have gone with their Jobs")
    assert there.containers() == []


def test_sixty_trials_outlive_all_that_a_cluster_does(
    there: RealCluster, weights: Path, tmp_path: Path
) -> None:
    """A drain, a node that dies, an API server that is away for 30 s, a version that is forgotten,
    and a head that is killed. No result is lost or there twice, and nothing is left."""
    given = service(there, weights, requests={"cpu": "2"}, allocations=2)
    given |= {"probe": True, "bringCode": True, "workFolder": "/work"}
    with digits(tmp_path / "lab", given, weights) as lab:
        lab.allow(4)
        wait_until(lambda: lab.done() >= 4, "trials have results")
        there.drain(there.running()[0]["metadata"]["name"])
        wait_until(lambda: len(lab.losses()) >= 1, "a place was taken back")
        assert lab.losses()[0].planned, lab.losses()
        wait_until(lambda: len(there.running()) == 2, "another one is had")
        lab.allow(12)
        wait_until(lambda: lab.done() >= 12, "trials go on")

        there.rig("kill", "apiserver")
        away_until = time.monotonic() + 30
        lab.allow(20)
        wait_until(lambda: lab.done() >= 20, "trials go on without the server")
        there.rig("compact")
        wait_until(lambda: time.monotonic() > away_until, "it was away for long enough")
        there.rig("start", "apiserver")
        lab.allow(28)
        wait_until(lambda: lab.done() >= 28, "and with it")
        assert len(lab.losses()) == 1, "nobody was lost for that"

        lab.kill()
        running = {each["metadata"]["uid"] for each in there.running()}
        lab.resume()
        lab.allow(36)
        wait_until(lambda: lab.done() >= 36, "the next head leads")
        assert running <= {each["metadata"]["uid"] for each in there.running()}, "none began anew"

        node = there.running()[0]["spec"]["nodeName"]
        before = len(lab.losses())
        there.kubelet("crash", node)
        wait_until(lambda: len(lab.losses()) > before, "its agents are lost")
        lab.allow(TRIALS)
        lab.ends_well(400)
    nothing_is_left(there)


@pytest.fixture
def rig_of(tmp_path: Path, weights: Path) -> Iterator[Any]:
    rigs: list[Rig] = []

    def make(given: dict[str, Any], **keys: Any) -> Rig:
        rigs.append(Rig(new_experiment(given, tmp_path, weightsRoot=str(weights), **keys)))
        rigs[-1].relaunching = False
        return rigs[-1]

    yield make
    for each in rigs:
        each.close(leave_running=False)


def lost(rig: Rig, what: str) -> e.WorkerLost:
    seen = rig.wait(lambda: [x for x in rig.events if isinstance(x, e.WorkerLost)], what)
    return seen[0]


def waits(rig: Rig, text: str) -> e.WorkerWaits:
    def look() -> e.WorkerWaits | None:
        seen = [x for x in rig.events if isinstance(x, e.WorkerWaits) and text in x.reason]
        return seen[-1] if seen else None

    return rig.wait(look, f"it waits: {text}")


def test_a_trial_of_two_pods_ends_with_the_first_that_dies(
    there: RealCluster, weights: Path, rig_of: Any
) -> None:
    """By claims: this server numbers no pods. Mutation: each pod is a worker."""
    given = service(there, weights, requests={"cpu": "3"}, workFolder=f"{weights}/work")
    rig = rig_of(given, trialNodes=2)
    rig.launch()
    (worker,) = rig.workers
    rig.start(worker, 1, "finish")
    assert rig.end(1).reason is EndReason.FINISHED
    assert rig.final(1)["default"] == 1.5
    rig.start(worker, 2, "wait")
    rig.first_number(2)
    nodes = {each["spec"]["nodeName"] for each in there.running()}
    assert len(nodes) == 2
    there.kubelet("crash", min(nodes))
    lost(rig, "its pods are lost")
    for end in rig.events_of(2, e.AttemptEnded):
        assert end.reason in (EndReason.LOST, EndReason.PREEMPTED), end
    rig.wait(lambda: not there.containers(), "the other one has ended")
    rig.close(leave_running=False)
    nothing_is_left(there)


def test_an_agent_that_runs_out_of_memory(there: RealCluster, weights: Path, rig_of: Any) -> None:
    """The limit is less than a Python needs."""
    rig = rig_of(service(there, weights, limits={"memory": "12Mi"}))
    rig.perform(a.LaunchWorker(rig.workers[0]))
    loss = lost(rig, "it has not enough memory")
    assert "ran out of memory" in loss.reason
    assert "OOMKilled" in loss.reason


def test_an_image_that_cannot_be_had(there: RealCluster, weights: Path, rig_of: Any) -> None:
    given = service(there, weights, allocations={"min": 1, "max": 1, "limit": "8s"})
    rig = rig_of({**given, "image": "registry.local/missing:1"})
    rig.perform(a.LaunchWorker(rig.workers[0]))
    waits(rig, "missing:1")
    loss = lost(rig, "it has waited for long enough")
    assert loss.hopeless
    assert "missing:1" in loss.reason


@pytest.mark.parametrize("what", ["count/jobs.batch", "pods"])
def test_a_quota_of_nought_is_a_wait(
    what: str, there: RealCluster, weights: Path, rig_of: Any
) -> None:
    """It shows at the order, or in events about its Job only."""
    body = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": "none"}}
    there.create("resourcequotas", {**body, "spec": {"hard": {what: "0"}}})
    try:
        wait_until(
            lambda: any(x.get("status", {}).get("hard") for x in there.all("resourcequotas")),
            "the quota is counted",
        )
        rig = rig_of(service(there, weights))
        rig.perform(a.LaunchWorker(rig.workers[0]))
        waits(rig, "exceeded quota")
        assert not [x for x in rig.events if isinstance(x, e.WorkerLost)]
    finally:
        there.remove("resourcequotas", "none")
    rig.joined(rig.workers[0])


def test_rights_that_are_given_and_taken_away(
    there: RealCluster, weights: Path, tmp_path: Path, rig_of: Any
) -> None:
    """The Role that we print is enough, and no less is. Mutation: a right is missing from it."""
    given = service(there, weights, kubeconfig=there.kubeconfig("alice"))
    part = section(**{key: value for key, value in given.items() if key != "platform"})
    missing = [x for x in KUBERNETES.inspect(part) if x.severity is Severity.PROBLEM]
    assert [x.topic for x in missing] == ["rights", "job"]
    for body in role_of("default", "alice", [JOB]):
        there.create(f"{body['kind'].lower()}s", body)
    wait_until(
        lambda: not [x for x in KUBERNETES.inspect(part) if x.severity is not Severity.OK],
        "all is allowed",
    )
    # Who may not look there hears of a loss by silence alone: less of it than the rig has patience.
    rig = rig_of(given, leases={"suspect": "15s", "lost": "45s"})
    (worker,) = rig.workers
    rig.launch()
    there.remove("rolebindings", "bequeath")
    there.rig("kill", "apiserver")  # its watches end, too
    there.rig("start", "apiserver")
    rig.start(worker, 1, "finish")
    rig.end(1)  # what runs goes on
    there.kubelet("crash", there.running()[0]["spec"]["nodeName"])
    loss = lost(rig, "no other one can be had")
    rig.perform(a.LaunchWorker(worker))
    waits_or_loss = rig.wait(
        lambda: [x for x in _reasons(rig) if "cannot" in x and "alice" in x], "it says what for"
    )
    assert waits_or_loss, loss
    binding = [x for x in role_of("default", "alice", [JOB]) if x["kind"] == "RoleBinding"]
    there.create("rolebindings", binding[0])


def test_a_head_in_the_cluster(there: RealCluster, weights: Path) -> None:
    """The server takes all objects that we print. Agents find the head by its Service's name; one
    that is killed goes on where it was, and one that is over waits."""
    given = {key: value for key, value in service(there, weights).items() if key in _OF_PODS}
    lab = HeadInPod(there, weights, free_port(), {**given, "allocations": 2})
    objects = lab.objects()
    for body in objects:
        there.apply(body, dry_run=True)
    there.apply(lab.volume())
    there.apply({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": f"{NAME}-secrets"},
                 "stringData": {"TOKEN": "s3cret"}})  # fmt: skip
    try:
        for body in objects:
            there.apply(body)
        lab.wait_for(lambda: len(lab.agents()) == 2, "both agents run")
        lab.allow(3)
        lab.wait_for(lambda: lab.done() >= 3, "trials have results")
        (pod,) = lab.pods("head")
        (line,) = [x for x in there.containers() if f"/{pod['metadata']['name']} " in x]
        os.kill(int(line.split()[2]), signal.SIGKILL)
        lab.allow(8)
        lab.wait_for(lambda: lab.done() >= 8, "it goes on")
        lab.wait_for(lambda: not there.all("jobs"), "its Jobs have gone")
        (after,) = lab.pods("head")
        assert after["metadata"]["uid"] == pod["metadata"]["uid"]
        assert after["status"]["containerStatuses"][0]["restartCount"] == 1
        assert not [x for x in lab.events() if isinstance(x, e.WorkerLost)], "none began anew"
        assert lab.complaints() == []
    finally:
        for body in reversed(objects):
            there.unapply(body)
        wait_until(lambda: not lab.pods("head"), "the head has gone")
        there.remove("secrets", f"{NAME}-secrets")
    nothing_is_left(there)


#: The keys of a service whose head is in the cluster itself.
_OF_PODS = ("platform", "image", "python")


def _reasons(rig: Rig) -> list[str]:
    return [x.reason for x in rig.events if isinstance(x, e.WorkerLost | e.WorkerWaits)]


def test_a_head_that_dies_between_its_two_objects(
    there: RealCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the Job and its Secret: the next one finds the Job, and nothing is there twice."""
    label = "abc123-0a0b0c"

    def allocator() -> KubernetesAllocator:
        server = ApiServer(find_access(Path(there.kubeconfig())))
        part = section(python="/bin/sleep", image="i")
        return KubernetesAllocator(server, part, label, token=lambda: "T")

    first = allocator()
    with monkeypatch.context() as patch:
        patch.setattr(ApiServer, "apply", _dies)
        with pytest.raises(KeyboardInterrupt):
            first.submit(order())
    first.close()
    assert [x["metadata"]["name"] for x in there.all("jobs")] == [order().name]
    second = allocator()
    try:
        second.submit(order())
        assert len(there.all("jobs")) == 1
        (seen,) = second.look()
        assert seen.name == order().name
        wait_until(lambda: second.look()[0].place, "its pod has a node, and its Secret")
        second.cancel([order().name], 1.0)
        wait_until(lambda: second.look()[0].state == "ended", "it has gone")
    finally:
        second.close()
    nothing_is_left(there)


def _dies(*_: object) -> None:
    raise KeyboardInterrupt


def test_what_is_refused_is_a_sentence(there: RealCluster) -> None:
    """Of the server itself, with its name."""
    server = ApiServer(find_access(Path(there.kubeconfig())), "nowhere")
    made = KubernetesAllocator(server, section(), "s", token=lambda: "T")
    with pytest.raises(PermanentBackendError, match='namespaces "nowhere" not found'):
        made.submit(order())
    there.rig("kill", "apiserver")
    try:
        with pytest.raises(PassingBackendError, match="no answer"):
            made.submit(order())
    finally:
        there.rig("start", "apiserver")
        made.close()
