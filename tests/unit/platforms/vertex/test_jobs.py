"""Custom jobs as the contract has them, and what Vertex AI says of them; a misspelt one is
refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.errors import Invalid, NotAllowed, OverQuota
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.http_jobs import allocator as looking
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.vertex import jobs as module
from dispatcher.platforms.vertex.jobs import VertexJobs, body_of
from tests.support.processes import wait_until
from tests.support.services.faults import Clock
from tests.support.services.google import VERTEX, PlayedVertex
from tests.support.services.machines import OUT_OF_MEMORY, PREEMPTED, STOPPED, WALL_TIME
from tests.support.services.played import Orders, whole_section
from tests.support.services.server import Asked, Refusal, Reply
from tests.unit.platforms.google_cloud.on_google import ORDER, Make, complaints, reaches


@pytest.fixture
def served(tmp_path: Path) -> Iterator[PlayedVertex]:
    with VERTEX.serving(tmp_path, 4) as service:
        assert isinstance(service, PlayedVertex)
        yield service


@pytest.fixture
def make(served: PlayedVertex, tmp_path: Path) -> Make:
    return lambda **keys: Orders(whole_section(VERTEX, served, tmp_path, **keys), tmp_path)


@pytest.fixture
def orders(make: Make) -> Orders:
    return make()


@pytest.fixture
def allocator(orders: Orders) -> Iterator[HttpJobsAllocator]:
    made = orders.allocator()
    yield made
    made.close()


def test_a_job_as_the_contract_has_it(make: Make, served: PlayedVertex, tmp_path: Path) -> None:
    orders = make(
        machineType="a2-highgpu-2g",
        acceleratorType="NVIDIA_TESLA_A100",
        acceleratorCount=2,
        bootDiskType="pd-ssd",
        bootDiskSizeGb=200,
        serviceAccount="nas@lab.iam.gserviceaccount.com",
        network="projects/12345/global/networks/lab",
        nfsMounts=[
            {"server": "10.0.0.2", "path": "/share", "mountPoint": "lab", "here": str(tmp_path)}
        ],
        baseOutputDirectory="gs://outputs/nas",
        persistentResourceId="warm",
        strategy="spot",
        labels={"team": "nas"},
    )
    body = body_of(ORDER, ["sh", "-c", "exec true"], orders.service)
    assert complaints(served, body) == []
    assert body == {
        "displayName": "abc-worker-1",
        "labels": {
            "team": "nas",
            "bequeath-attempt": "abc-worker-1",
            "bequeath-service": "abc",
            "bequeath-experiment": "abc-7",
            "bequeath-mark": "f" * 32,
        },
        "jobSpec": {
            "workerPoolSpecs": [
                {
                    "machineSpec": {
                        "machineType": "a2-highgpu-2g",
                        "acceleratorType": "NVIDIA_TESLA_A100",
                        "acceleratorCount": 2,
                    },
                    "replicaCount": "1",
                    "containerSpec": {
                        "imageUri": "us-docker.pkg.dev/lab/nas:1",
                        "command": ["sh", "-c", "exec true"],
                    },
                    "diskSpec": {"bootDiskType": "pd-ssd", "bootDiskSizeGb": 200},
                    "nfsMounts": [{"server": "10.0.0.2", "path": "/share", "mountPoint": "lab"}],
                }
            ],
            "scheduling": {
                "restartJobOnWorkerRestart": False,
                "disableRetries": True,
                "strategy": "SPOT",
                "timeout": "7200s",
            },
            "serviceAccount": "nas@lab.iam.gserviceaccount.com",
            "network": "projects/12345/global/networks/lab",
            "persistentResourceId": "warm",
            "baseOutputDirectory": {"outputUriPrefix": "gs://outputs/nas"},
        },
    }
    assert orders.service.seen(tmp_path / "x") == "/mnt/nfs/lab/x"
    assert orders.service.gpus_asked == 2


MISSPELT: dict[str, Callable[[dict[str, Any]], object]] = {
    "of a job": lambda body: body.update(displayname="x"),
    "of its spec": lambda body: body["jobSpec"].update(workerPools=[]),
    "of a pool": lambda body: pool(body).update(container={}),
    "of a machine": lambda body: pool(body)["machineSpec"].update(machine_type="x"),
    "of a container": lambda body: pool(body)["containerSpec"].update(image="x"),
    "of the scheduling": lambda body: body["jobSpec"]["scheduling"].update(retries=False),
    "a count that is a number": lambda body: pool(body).update(replicaCount=1),
    "a duration without its unit": lambda body: scheduling(body).update(timeout="7200"),
    "a word that is none": lambda body: scheduling(body).update(strategy="CHEAP"),
    "a missing name": lambda body: body.pop("displayName"),
    "a missing image": lambda body: pool(body)["containerSpec"].pop("imageUri"),
    "two in the first pool": lambda body: pool(body).update(replicaCount="2"),
    "a label with capitals": lambda body: body["labels"].update(Team="x"),
    "a field that is the server's": lambda body: body.update(state="JOB_STATE_QUEUED"),
    "tries of the service": lambda body: scheduling(body).pop("disableRetries"),
}


def pool(body: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = body["jobSpec"]["workerPoolSpecs"][0]
    return made


def scheduling(body: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = body["jobSpec"]["scheduling"]
    return made


@pytest.mark.parametrize("what", MISSPELT)
def test_a_misspelt_job_is_refused(
    what: str, orders: Orders, served: PlayedVertex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the judge judges nothing, and neither do the tests that it presides."""
    body = copy.deepcopy(body_of(ORDER, ["sh", "-c", "exec true"], orders.service))
    MISSPELT[what](body)
    monkeypatch.setattr(module, "body_of", lambda *_: body)
    jobs = VertexJobs(orders.service, "abc")
    with pytest.raises(Invalid, match=r"Invalid JSON payload received\.; "):
        jobs.create(ORDER)
    assert served.misspelt
    served.misspelt.clear()
    assert served.machines.jobs == {}
    jobs.close()


def test_other_misspelt_requests_are_refused_as_well(orders: Orders, served: PlayedVertex) -> None:
    client, (path, _) = VertexJobs(orders.service, "abc").client, served.lists()
    asked: list[tuple[str, str, dict[str, str | int], Any]] = [
        ("GET", path, {"filters": "x"}, None),
        ("GET", path, {"pageSize": "many"}, None),
        ("GET", f"{path}s", {}, None),
        ("POST", f"{path}/1:cancel", {}, {"force": True}),
        ("POST", "/v2/entries:list", {}, {"filter": "x"}),
        ("POST", "/v1/projects/lab-project-7/secrets", {}, {}),
    ]
    for method, where, query, body in asked:
        with pytest.raises(PermanentBackendError):
            client.ask(method, where, asked="ask", query=query, body=body)
    assert len(served.misspelt) >= len(asked)
    served.misspelt.clear()
    client.close()


def test_the_judge_finds_a_wrong_answer(served: PlayedVertex) -> None:
    """Of ours: an imitation that lies about shapes is none."""
    judge, (path, _) = served.contracts["jobs"], served.lists()
    good = {"customJobs": [{"name": "a", "state": "JOB_STATE_QUEUED"}]}
    assert judge.answer("GET", path, good) == []
    for wrong in ({"jobs": []}, {"customJobs": [{"state": "QUEUED"}]}, {"nextPageToken": 1}):
        assert judge.answer("GET", path, wrong)
    asked = Asked("GET", path, {}, {}, b"", "", None)
    assert served.judge_answer(asked, served.refusal(Refusal(404, "", "x"))) == []
    assert served.judge_answer(asked, Reply(404, {"error": {"code": "404", "status": "NOT_FOUND"}}))


def test_nodes_of_a_trial_are_two_pools_and_know_their_ranks(
    make: Make, served: PlayedVertex
) -> None:
    """The first is alone in its pool. Mutation: each one is rank 0."""
    jobs = VertexJobs(make().service, "abc")
    script = 'echo "rank $BEQUEATH_RANK"'
    jobs.create(replace(ORDER, script=script, nodes=3))
    pools = served.job(ORDER.name).document["jobSpec"]["workerPoolSpecs"]
    assert [each["replicaCount"] for each in pools] == ["1", "2"]
    wait_until(lambda: served.job(ORDER.name).ended is not None, "all have ended")
    assert sorted(jobs.output(ORDER.name).splitlines()) == ["rank 0", "rank 1", "rank 2"]
    jobs.close()


ENDS = [
    ("", Gone.FAILED, "exited with a non-zero status of 143"),
    (PREEMPTED, Gone.PREEMPTED, "preempted"),
    (OUT_OF_MEMORY, Gone.OUT_OF_MEMORY, "ran out-of-memory"),
    (WALL_TIME, Gone.WALL_TIME, "maximum running time"),
    (STOPPED, Gone.CANCELLED, "CANCELED"),
]


@pytest.mark.parametrize("cause, gone, reason", ENDS)
def test_how_one_ended_is_known(
    cause: str,
    gone: Gone,
    reason: str,
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: PlayedVertex,
) -> None:
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    served.machines.stop(served.ids(order.name)[0], cause, 5.0)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is gone
    assert reason in ended.reason


def test_one_that_fails_has_its_last_line_as_reason(
    make: Make, served: PlayedVertex, tmp_path: Path
) -> None:
    """Where logs may be read; else the rest is said at once. Mutation: nobody says more than a
    status."""
    for reads, more in ((True, "no module named nas"), (False, "status of 7.")):
        served.reads_logs = reads
        jobs = VertexJobs(make().service, "abc")
        name = f"abc-worker-{int(reads)}"
        jobs.create(replace(ORDER, name=name, script="echo no module named nas; echo; exit 7"))
        wait_until(lambda name=name: served.job(name).ended is not None, "it has ended")
        (job,) = [each for each in jobs.list() if each.name == name]
        gone, reason = jobs.end_of(job)
        assert gone is None
        assert reason.startswith("The replica workerpool0-0 exited with a non-zero status of 7")
        assert reason.endswith(more)
        jobs.close()


def test_one_that_waits_says_why(
    allocator: HttpJobsAllocator, orders: Orders, served: PlayedVertex
) -> None:
    """By what the service itself logs of it."""
    served.machines.places = 0
    order = orders.order()
    allocator.submit(order)
    why = "Resources are insufficient in region: us-central1. Retrying."
    served.service_lines[served.ids(order.name)[0]] = ["Job is queued.", why]
    assert reaches(allocator, order.name, AllocationState.WAITING).reason == why


def test_two_of_one_name_are_one_in_the_end(
    orders: Orders, served: PlayedVertex, allocator: HttpJobsAllocator
) -> None:
    """A list that lags may hide the first from the one who asks for it again. Mutation: both run,
    and their agents fight."""
    served.machines.places = 1  # who begins takes the script away, and it is to be the first
    order = orders.order()
    allocator.submit(order)
    served.hidden.add(order.name)
    orders.allocator().submit(order)
    served.hidden.clear()
    first, second = served.ids(order.name)
    reaches(allocator, order.name, AllocationState.RUNNING)
    wait_until(
        lambda: allocator.look() is not None and served.machines.jobs[second].ended is not None,
        "the later one is cancelled",
    )
    assert served.machines.jobs[first].runs


def test_what_has_ended_is_removed_there(
    make: Make, served: PlayedVertex, monkeypatch: pytest.MonkeyPatch
) -> None:
    """After a while. Mutation: records for ever."""
    clock, orders = Clock(), make()
    allocator = orders.allocator(clock)
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    allocator.cancel([order.name], 1.0)
    reaches(allocator, order.name, AllocationState.ENDED)
    allocator.cancel([order.name], 1.0)
    clock.wait(looking.ENDED_S)
    allocator.look()
    assert served.ids(order.name) == []
    assert served.count("DELETE") == 1
    allocator.close()


def test_to_cancel_what_has_ended_is_no_error(orders: Orders, served: PlayedVertex) -> None:
    jobs = VertexJobs(orders.service, "abc")
    jobs.create(ORDER)
    wait_until(lambda: served.job(ORDER.name).ended is not None, "it has ended")
    (job,) = jobs.list()
    jobs.stop(job, 0.0)
    assert served.count("POST") == 2
    jobs.close()


def test_refusals_have_their_kind(make: Make, served: PlayedVertex) -> None:
    """Mutation: a quota that is used up for now loses a worker for good."""
    for keys, kind, text in (
        ({"machineType": "z9-huge"}, Invalid, "machine_type; Message: Machine type"),
        ({"project": "another-lab"}, NotAllowed, "Permission denied on resource project"),
    ):
        orders = make(**keys)
        allocator = orders.allocator()
        with pytest.raises(kind, match=text):
            allocator.submit(orders.order())
        allocator.close()
    served.quota = False
    orders = make()
    allocator = orders.allocator()
    with pytest.raises(OverQuota, match="custom_model_training_cpus"):
        allocator.submit(orders.order())
    served.quota = True
    allocator.submit(orders.order())
    allocator.close()
