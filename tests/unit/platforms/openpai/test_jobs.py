"""Jobs as the protocol has them, and what a cluster says of them; a misspelt one is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.errors import Invalid, NotAllowed, OverQuota
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.http_jobs.jobs import JobOrder
from dispatcher.platforms.openpai import jobs as module
from dispatcher.platforms.openpai.jobs import OpenPaiJobs, body_of
from tests.support.processes import wait_until
from tests.support.services.machines import OUT_OF_MEMORY
from tests.support.services.openpai import OPENPAI, OpenPai
from tests.support.services.played import Orders, whole_section
from tests.support.services.server import Refusal

ORDER = JobOrder("abc-worker-1", "abc", "f" * 32, "exec true '<% $secrets.bequeath %>'", "c2VjcmV0",
                 experiment="abc", worker="worker")  # fmt: skip


@pytest.fixture
def served(tmp_path: Path) -> Iterator[OpenPai]:
    with OPENPAI.serving(tmp_path, 4) as service:
        yield service


Make = Callable[..., Orders]


@pytest.fixture
def make(served: OpenPai, tmp_path: Path) -> Make:
    return lambda **keys: Orders(whole_section(OPENPAI, served, tmp_path, **keys), tmp_path)


@pytest.fixture
def orders(make: Make) -> Orders:
    return make()


@pytest.fixture
def allocator(orders: Orders) -> Iterator[HttpJobsAllocator]:
    made = orders.allocator()
    yield made
    made.close()


def reaches(allocator: HttpJobsAllocator, name: str, wanted: AllocationState) -> Any:
    last: list[Any] = [None]

    def look() -> bool:
        last[0] = next((each for each in allocator.look() if each.name == name), None)
        return last[0] is not None and last[0].state is wanted

    wait_until(look, f"{name} is {wanted}")
    return last[0]


def test_a_job_as_the_protocol_has_it(make: Make) -> None:
    orders = make(
        cpus=4,
        memory="16GB",
        gpus=2,
        sharedMemory="1GiB",
        virtualCluster="research",
        storages=["home", {"name": "scratch", "at": "/s"}],
        extras={"hivedScheduler": {"jobPriorityClass": "prod"}},
    )
    body = body_of(ORDER, orders.service, "")
    assert body == {
        "protocolVersion": 2,
        "name": "abc-worker-1",
        "type": "job",
        "description": f"bequeath {'f' * 32}, worker of experiment abc",
        "prerequisites": [{"name": "image", "type": "dockerimage", "uri": "our/own:1"}],
        "secrets": {"bequeath": "c2VjcmV0"},
        "jobRetryCount": 0,
        "taskRoles": {
            "agent": {
                "instances": 1,
                "taskRetryCount": 0,
                "dockerImage": "image",
                "resourcePerInstance": {"cpu": 4, "memoryMB": 16384, "gpu": 2},
                "commands": ["exec true '<% $secrets.bequeath %>'"],
                "extraContainerOptions": {"shmMB": 1024},
            }
        },
        "defaults": {"virtualCluster": "research"},
        "extras": {
            "hivedScheduler": {"jobPriorityClass": "prod"},
            "storages": [
                {"name": "home", "mountPath": "/mnt/home"},
                {"name": "scratch", "mountPath": "/s"},
            ],
        },
    }


def test_the_login_of_a_registry_is_a_secret(
    make: Make, served: OpenPai, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REGISTRY_PASSWORD", "hunter2-hunter2")
    registry = {"address": "r:5000", "user": "u", "password": "env:REGISTRY_PASSWORD"}
    orders = make(registry=registry)
    allocator = orders.allocator()
    order = orders.order()
    allocator.submit(order)
    document = served.job(order.name).document
    assert document["secrets"]["registry_password"] == "hunter2-hunter2"
    (image,) = document["prerequisites"]
    assert image["auth"] == {
        "username": "u", "password": "<% $secrets.registry_password %>", "registryuri": "r:5000",
    }  # fmt: skip
    assert "hunter2" not in served.shown(order.name)
    allocator.close()


MISSPELT: dict[str, Callable[[dict[str, Any]], object]] = {
    "of a job": lambda body: body.update(jobRetryCounts=0),
    "of a role": lambda body: body["taskRoles"]["agent"].update(taskRetrycount=0),
    "of resources": lambda body: body["taskRoles"]["agent"]["resourcePerInstance"].update(gpus=1),
    "of an image": lambda body: body["prerequisites"][0].update(url="x"),
    "of defaults": lambda body: body["defaults"].update(vc="x"),
    "of a storage": lambda body: body.update(extras={"storages": [{"name": "a", "path": "/x"}]}),
    "a missing one": lambda body: body.pop("taskRoles"),
    "a wrong kind": lambda body: body.update(jobRetryCount="0"),
}


@pytest.mark.parametrize("what", MISSPELT)
def test_a_misspelt_job_is_refused(
    what: str, orders: Orders, served: OpenPai, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the judge judges nothing, and neither do the tests that it presides."""
    body = copy.deepcopy(body_of(ORDER, orders.service, ""))
    MISSPELT[what](body)
    monkeypatch.setattr(module, "body_of", lambda *_: body)
    jobs = OpenPaiJobs(orders.service, "abc")
    with pytest.raises(Invalid):
        jobs.create(ORDER)
    assert served.misspelt
    served.misspelt.clear()
    assert served.machines.jobs == {}
    jobs.close()


def test_other_misspelt_requests_are_refused_as_well(orders: Orders, served: OpenPai) -> None:
    client = OpenPaiJobs(orders.service, "abc").client
    for method, path, query, body in (
        ("GET", "/api/v2/jobs", {"user": "alice"}, None),
        ("GET", "/api/v2/job", {}, None),
        ("PUT", "/api/v2/jobs/alice~a/executionType", {}, {"value": "HALT"}),
        ("PUT", "/api/v2/jobs/alice~a/executionType", {}, None),
    ):
        with pytest.raises(PermanentBackendError):
            client.ask(method, path, asked="ask", query=query, body=body)
    assert len(served.misspelt) == 4
    served.misspelt.clear()
    served.wrong.clear()  # it cannot refuse them in the words of the contract
    client.close()


def test_the_judge_finds_a_wrong_answer(served: OpenPai) -> None:
    """Of ours: an imitation that lies about shapes is none."""
    judge = served.contract
    good = served.refusal(Refusal(404, "NoJobError", "Job b is not found.")).document
    assert judge.answer("GET", "/api/v2/jobs/a~b", 404, "application/json", good) == []
    for document in ({**good, "more": 1}, {"code": "NoSuchCode", "message": "x"}, {"code": "x"}):
        assert judge.answer("GET", "/api/v2/jobs/a~b", 404, "application/json", document)
    assert judge.answer("GET", "/api/v2/jobs", 200, "application/json", [{"name": "a"}])
    assert judge.answer("POST", "/api/v2/jobs", 201, "application/json", {"message": "x"})


def test_a_command_has_no_template_but_ours(orders: Orders, served: OpenPai) -> None:
    """The program of a probe has `<%s>` in it. Mutation: it stands in the command as it is."""
    allocator = orders.allocator()
    order = orders.order()
    object.__setattr__(order, "arguments", ("-c", "print('<%s>' % 1)"))
    allocator.submit(order)
    (command,) = served.job(order.name).document["taskRoles"]["agent"]["commands"]
    assert command.count("<%") == 1
    gone = reaches(allocator, order.name, AllocationState.ENDED)
    assert gone.gone is Gone.FINISHED
    allocator.close()


def test_one_that_waits_says_why(
    allocator: HttpJobsAllocator, orders: Orders, served: OpenPai
) -> None:
    served.machines.places = 0
    order = orders.order()
    why = "FailedScheduling: 0/17 nodes are available: 16 Insufficient nvidia.com/gpu."
    served.warnings[order.name] = why
    allocator.submit(order)
    assert reaches(allocator, order.name, AllocationState.WAITING).reason == why


ENDS: list[tuple[str, Gone, str]] = [
    ("", Gone.FAILED, "exit code"),
    ("preempted", Gone.PREEMPTED, "PodPreempted"),
    (OUT_OF_MEMORY, Gone.OUT_OF_MEMORY, "ContainerOOMKilled"),
    ("stopped", Gone.CANCELLED, ""),
]


@pytest.mark.parametrize("cause, gone, reason", ENDS)
def test_how_one_ended_is_known(
    cause: str,
    gone: Gone,
    reason: str,
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: OpenPai,
) -> None:
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    served.machines.stop(f"alice~{order.name}", cause, 0.0)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is gone
    assert reason in ended.reason


def test_what_a_job_prints_can_be_read(
    allocator: HttpJobsAllocator, orders: Orders, served: OpenPai
) -> None:
    """By the locations that the cluster names: a probe that shares no folder answers so."""
    order = orders.order()
    allocator.submit(order)
    jobs = OpenPaiJobs(orders.service, orders.label)
    reaches(allocator, order.name, AllocationState.RUNNING)
    wait_until(lambda: "what follows is in" in jobs.output(order.name), "it has begun")
    jobs.close()


def test_refusals_have_their_kind(orders: Orders, served: OpenPai, make: Make) -> None:
    """Mutation: a quota that is used up for now loses a worker for good."""
    allocator = orders.allocator()
    served.over_quota = True
    with pytest.raises(OverQuota, match="no quota left"):
        allocator.submit(orders.order())
    allocator.close()
    for name, kind in (("nowhere", Invalid), ("research", NotAllowed)):
        served.allowed = ["default"]
        other = make(virtualCluster=name)
        allocator = other.allocator()
        with pytest.raises(kind, match=name):
            allocator.submit(other.order())
        allocator.close()


def test_one_that_cannot_be_asked_about_stops_no_other(
    allocator: HttpJobsAllocator, orders: Orders, served: OpenPai, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: a question about a single job fails, and with it the look at all others."""
    monkeypatch.setattr("dispatcher.http_services.patience.FIRST_S", 0.0)
    one, other = orders.order(), orders.order(worker="other")
    for order in (one, other):
        allocator.submit(order)
        reaches(allocator, order.name, AllocationState.RUNNING)
    served.hidden.add(one.name)
    served.fail(f"GET /api/v2/jobs/alice~{one.name}", 500, times=3)
    states = {each.name: each.state for each in allocator.look()}
    assert states == {one.name: AllocationState.UNKNOWN, other.name: AllocationState.RUNNING}


def test_all_pages_are_read(
    orders: Orders, served: OpenPai, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: what is beyond the first page is gone."""
    monkeypatch.setattr(module, "PAGE", 4)
    served.machines.places = 0
    served.fill("abc", 10)
    jobs = OpenPaiJobs(orders.service, "abc")
    assert len({each.name for each in jobs.list()}) == 10
    assert served.count("GET /api/v2/jobs") == 3
    jobs.close()
