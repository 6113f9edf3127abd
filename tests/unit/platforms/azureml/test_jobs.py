"""Jobs as Azure Resource Manager has them, and what it and the run history say of them; a misspelt
one is refused."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.errors import AlreadyThere, Invalid
from dispatcher.platforms.allocations.allocation import AllocationState, Gone
from dispatcher.platforms.azureml import jobs as module
from dispatcher.platforms.azureml.jobs import AzureMlJobs, body_of
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.http_jobs.jobs import JobOrder
from tests.support.processes import wait_until
from tests.support.services import azureml
from tests.support.services.azureml import AZUREML, COMPUTE, ID, AzureMl, arm, history
from tests.support.services.machines import OUT_OF_MEMORY, PREEMPTED, STOPPED, WALL_TIME
from tests.support.services.played import Orders, whole_section

ORDER = JobOrder("abc-worker-1", "abc", "f" * 32, "exec sh '/x/abc.start'", experiment="a b",
                 worker="worker", wall_s=7200.0, nodes=2)  # fmt: skip

Make = Callable[..., Orders]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[AzureMl]:
    with AZUREML.serving(tmp_path, 4) as service:
        yield service


@pytest.fixture
def make(served: AzureMl, tmp_path: Path) -> Make:
    return lambda **keys: Orders(whole_section(AZUREML, served, tmp_path, **keys), tmp_path)


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


def whole_body(make: Make) -> dict[str, Any]:
    orders = make(
        sharedMemory="16GiB",
        datastores=[{"name": "files", "folder": "nas/a", "at": "/mnt/f s"}, "blobs"],
        extras={
            "identity": {"identityType": "Managed"},
            "resources": {"instanceType": "gpu-small"},
            "tags": {"team": "nas"},
        },
    )
    return body_of(ORDER, orders.service, ID, "azureml://registries/r/environments/e/versions/1")


def test_a_job_as_the_contract_has_it(make: Make) -> None:
    mount = {"jobOutputType": "uri_folder", "mode": "ReadWriteMount"}
    assert whole_body(make) == {
        "properties": {
            "jobType": "Command",
            "displayName": "abc-worker-1",
            "experimentName": "bequeath-a-b",
            "description": "worker of experiment a b",
            "tags": {"team": "nas", "bequeath-abc": "f" * 32},
            "computeId": f"{ID}/computes/{COMPUTE}",
            "environmentId": "azureml://registries/r/environments/e/versions/1",
            "command": "mkdir -p /mnt && ln -sfn \"${{outputs.store0}}\" '/mnt/f s' && "
            'mkdir -p /mnt && ln -sfn "${{outputs.store1}}" /mnt/blobs && '
            "exec sh '/x/abc.start'",
            "resources": {"instanceType": "gpu-small", "instanceCount": 2, "shmSize": "16384m"},
            "outputs": {
                "store0": {**mount, "uri": "azureml://datastores/files/paths/nas/a"},
                "store1": {**mount, "uri": "azureml://datastores/blobs/paths/"},
            },
            "distribution": {"distributionType": "PyTorch", "processCountPerInstance": 1},
            "limits": {"jobLimitsType": "Command", "timeout": "PT7200S"},
            "identity": {"identityType": "Managed"},
        }
    }


MISSPELT: dict[str, Callable[[dict[str, Any]], object]] = {
    "of a job": lambda own: own.update(computeID="x"),
    "of limits": lambda own: own["limits"].update(timeOut="PT1S"),
    "of resources": lambda own: own["resources"].update(instances=1),
    "of an output": lambda own: own["outputs"]["store0"].update(path="x"),
    "of a distribution": lambda own: own["distribution"].update(processes=1),
    "of an identity": lambda own: own["identity"].update(identityType="Own"),
    "of a kind": lambda own: own.update(jobType="Comand"),
    "what answers alone have": lambda own: own.update(status="Queued"),
    "a missing one": lambda own: own.pop("environmentId"),
    "a wrong kind": lambda own: own["resources"].update(instanceCount="2"),
    "a tag that is no text": lambda own: own["tags"].update(more=1),
}


@pytest.mark.parametrize("what", MISSPELT)
def test_a_misspelt_job_is_refused(
    what: str, make: Make, served: AzureMl, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the judge judges nothing, and neither do the tests that it presides."""
    body = copy.deepcopy(whole_body(make))
    path, version = f"{ID}/jobs/abc-worker-1", {"api-version": "2023-04-01"}
    assert arm().request("PUT", path, version, body) == [], "it is right before"
    MISSPELT[what](body["properties"])
    monkeypatch.setattr(module, "body_of", lambda *_: body)
    jobs = AzureMlJobs(make().service, "abc")
    with pytest.raises(Invalid):
        jobs.create(ORDER)
    assert served.misspelt
    served.misspelt.clear()
    assert served.machines.jobs == {}
    jobs.close()


def test_other_misspelt_requests_are_refused_as_well(orders: Orders, served: AzureMl) -> None:
    jobs = AzureMlJobs(orders.service, "abc")
    version = {"api-version": "2023-04-01"}
    for method, path, query, body in (
        ("GET", f"{ID}/jobs", {**version, "tags": "abc"}, None),
        ("GET", f"{ID}/jobs", {}, None),
        ("GET", f"{ID}/jobs", {"api-version": "2020-01-01"}, None),
        ("GET", f"{ID}/job", version, None),
        ("POST", f"{ID}/jobs/a/cancel", version, {"force": True}),
        ("PUT", f"{ID}/environments/a/versions/1", version, {"properties": {"img": "x"}}),
        ("PUT", f"{ID}/environments/a/versions/1", version, None),
        ("GET", f"/history/v1.0{ID}/runs/a/detail", {}, None),
    ):
        with pytest.raises(PermanentBackendError):
            jobs.client.ask(method, path, asked="ask", query=query, body=body)
    assert len(served.misspelt) == 8
    served.misspelt.clear()
    served.wrong.clear()  # it cannot refuse the last one in the words of a contract
    jobs.close()


def test_the_judge_finds_a_wrong_answer(served: AzureMl, allocator: HttpJobsAllocator,
                                        orders: Orders) -> None:  # fmt: skip
    """Of ours: an imitation that lies about shapes is none."""
    order = orders.order()
    allocator.submit(order)
    job, path = served.job(order.name), f"{ID}/jobs/{order.name}"
    good = served.shape(job)
    assert arm().answer("GET", path, 200, good) == []
    for wrong in (
        {**good, "etag": "x"},
        {**good, "properties": {**good["properties"], "status": "Levitating"}},
        {**good, "properties": {**good["properties"], "started": "x"}},
        {**good, "systemData": {"createdAt": 3}},
    ):
        assert arm().answer("GET", path, 200, wrong)
    assert arm().answer("GET", path, 202, good)
    assert arm().answer("GET", path, 404, {"message": "x"})
    assert arm().answer("POST", f"{path}/cancel", 202, good), "it has no body"
    run, kind = f"/history/v1.0{ID}/runs/a/details", "application/json"
    assert history().answer("GET", run, 200, kind, served.details(job)) == []
    assert history().answer("GET", run, 200, kind, {**served.details(job), "state": "x"})


def test_an_image_is_registered_once_for_all_jobs(make: Make, served: AzureMl) -> None:
    """Mutations: a version for each job; one that is there already is an error."""
    orders = make(image="our/own:1")
    for number in (1, 2):
        allocator = orders.allocator()
        allocator.submit(orders.order(number))
        allocator.submit(orders.order(number, worker="other"))
        allocator.close()
    made = [name for name in served.environments if name.startswith("bequeath:")]
    assert len(made) == 1
    assert served.environments[made[0]] == {
        "image": "our/own:1", "osType": "Linux", "isAnonymous": True,
    }  # fmt: skip
    assert served.count(f"PUT {ID}/environments") == 1


def test_another_order_under_a_name_that_is_taken(make: Make, served: AzureMl) -> None:
    """A head asks for what another one has asked for at the same moment. Mutation: that it differs
    is an order that was certainly not taken, whose files are removed."""
    jobs = AzureMlJobs(make(wallTime="1h").service, "abc")
    served.foreign(ORDER.name)
    with pytest.raises(AlreadyThere, match="already exists"):
        jobs.create(ORDER)
    assert served.job(ORDER.name).document["tags"] == {}
    jobs.close()


def test_a_name_is_taken_for_good(allocator: HttpJobsAllocator, orders: Orders,
                                  served: AzureMl) -> None:  # fmt: skip
    order = orders.order()
    allocator.submit(order)
    served.delete(order.name)
    with pytest.raises(Invalid, match="already exists"):
        allocator.submit(order)


def test_one_that_waits_says_why(
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: AzureMl,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By its compute while it has no node, by its run while its image is built."""
    monkeypatch.setattr("dispatcher.platforms.http_jobs.allocator.WHY_EVERY_S", 1e-4)
    served.machines.places = 0
    order = orders.order()
    allocator.submit(order)
    waits = reaches(allocator, order.name, AllocationState.WAITING)
    assert waits.reason == "0 of 64 nodes are there"
    quota = {"error": {"code": "QuotaExceeded", "message": "Approved cores: 0"}}
    served.compute["errors"] = [quota]
    waits = reaches(allocator, order.name, AllocationState.WAITING)
    assert waits.reason == "QuotaExceeded: Approved cores: 0"
    served.job(order.name).word = "Preparing"
    waits = reaches(allocator, order.name, AllocationState.WAITING)
    assert "its image is made ready" in waits.reason
    served.warnings[order.name] = ["old", "Building the image failed, retrying"]
    waits = reaches(allocator, order.name, AllocationState.WAITING)
    assert waits.reason == "Building the image failed, retrying"


ENDS: list[tuple[str, Gone, str]] = [
    ("", Gone.FAILED, "exited with status code"),
    (PREEMPTED, Gone.PREEMPTED, "was preempted"),
    (OUT_OF_MEMORY, Gone.OUT_OF_MEMORY, "OutOfMemory"),
    (STOPPED, Gone.CANCELLED, ""),
]


@pytest.mark.parametrize("cause, gone, reason", ENDS)
def test_how_one_ended_is_known(
    cause: str,
    gone: Gone,
    reason: str,
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: AzureMl,
) -> None:
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    served.machines.stop(order.name, cause, 0.0)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is gone
    assert reason in ended.reason


def test_one_that_says_nothing_ends_with_the_last_line_of_its_log(
    orders: Orders, served: AzureMl
) -> None:
    """By a signed address, where our token does not go. Mutation: "failed", and nothing else."""
    served.silent = True
    allocator = orders.allocator()
    order = orders.order()
    script = "import sys; print('first', flush=True); sys.exit('disk full\\n')"
    object.__setattr__(order, "arguments", ("-c", script))
    object.__setattr__(order, "log", "")
    allocator.submit(order)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is Gone.FAILED
    assert "disk full" in ended.reason
    allocator.close()


def test_one_that_reached_its_wall_time_is_known(make: Make, served: AzureMl) -> None:
    """Azure calls it canceled. Mutation: somebody has stopped it, and that is said."""
    orders = make(wallTime="1h")
    allocator = orders.allocator()
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    job = served.job(order.name)
    assert job.started is not None
    job.started -= 3600.0
    served.machines.stop(order.name, WALL_TIME, 0.0)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is Gone.WALL_TIME
    allocator.close()


def test_the_next_head_knows_when_a_job_began(make: Make, served: AzureMl) -> None:
    """Mutation: its wall time counts from the moment at which that head looks first."""
    orders = make(wallTime="2h")
    first = orders.allocator()
    order = orders.order()
    first.submit(order)
    reaches(first, order.name, AllocationState.RUNNING)
    first.close()
    job = served.job(order.name)
    assert job.started is not None
    job.started -= 3600.0
    following = orders.allocator()
    seen = reaches(following, order.name, AllocationState.RUNNING)
    assert 3500 < seen.ends_in_s < 3602, "its clock has no parts of a second"
    following.close()


def test_nodes_of_one_job_know_their_ranks(make: Make, served: AzureMl) -> None:
    jobs = AzureMlJobs(make().service, "abc")
    order = JobOrder("abc-worker-1", "abc", "f" * 32, "echo rank=$NODE_RANK", nodes=2)
    jobs.create(order)
    job = served.job(order.name)
    wait_until(lambda: job.ended is not None, "it has ended")
    assert sorted(job.output.read_text().split()) == ["rank=0", "rank=1"]
    jobs.close()


def test_a_datastore_is_linked_where_the_file_says(
    make: Make, served: AzureMl, tmp_path: Path
) -> None:
    there = tmp_path / "mnt/deep/files"
    store = {"name": "workspacefilestore", "folder": "a/b", "at": str(there)}
    jobs = AzureMlJobs(make(datastores=[store]).service, "abc")
    jobs.create(JobOrder("abc-worker-1", "abc", "f" * 32, f"echo x >{there}/new"))
    job = served.job("abc-worker-1")
    wait_until(lambda: job.ended is not None, "it has ended")
    assert (served.store("workspacefilestore") / "a/b/new").read_text() == "x\n"
    jobs.close()


def test_one_that_has_ended_meanwhile_can_be_stopped(orders: Orders, served: AzureMl) -> None:
    """Mutation: the answer to a late stop counts as one that failed, again and again."""
    jobs = AzureMlJobs(orders.service, "abc")
    jobs.create(JobOrder("abc-worker-1", "abc", "f" * 32, "true"))
    job = served.job("abc-worker-1")
    wait_until(lambda: job.ended is not None, "it has ended")
    (listed,) = jobs.list()
    jobs.stop(listed, 5.0)
    jobs.remove(listed)
    jobs.stop(listed, 5.0)
    jobs.remove(listed)
    assert jobs.list() == []
    jobs.close()


def test_all_pages_are_read(orders: Orders, served: AzureMl, monkeypatch: Any) -> None:
    """Mutation: what is beyond the first page is gone."""
    monkeypatch.setattr(azureml, "PAGE", 4)
    served.machines.places = 0
    served.fill("abc", 10)
    served.fill("other", 3)
    jobs = AzureMlJobs(orders.service, "abc")
    assert len({each.name for each in jobs.list()}) == 10, "those with our tag alone"
    assert served.count(f"GET {ID}/jobs") == 3
    jobs.close()
