"""Jobs as the contract has them, and what the service says of them; a misspelt one is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import PermanentBackendError
from dispatcher.http_services.errors import Invalid, NotAllowed, NotLoggedIn, NotThere, OverQuota
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.dlc import jobs as module
from dispatcher.platforms.dlc.jobs import DlcJobs, body_of, job_of
from dispatcher.platforms.http_jobs import allocator as looking
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.http_jobs.jobs import JobOrder
from tests.support.processes import wait_until
from tests.support.services.dlc import DLC, NO_ROOM, Dlc, rules
from tests.support.services.faults import Clock
from tests.support.services.machines import OUT_OF_MEMORY, PREEMPTED, STOPPED
from tests.support.services.played import Orders, whole_section
from tests.support.services.server import Asked, Refusal, Reply

ORDER = JobOrder("abc-worker-1", "abc", "f" * 32, "exec true", experiment="abc", worker="worker",
                 wall_s=7200.0, grace_s=10.0)  # fmt: skip

Make = Callable[..., Orders]


@pytest.fixture
def served(tmp_path: Path) -> Iterator[Dlc]:
    with DLC.serving(tmp_path, 4) as service:
        yield service


@pytest.fixture
def make(served: Dlc, tmp_path: Path) -> Make:
    def orders(**keys: Any) -> Orders:
        section = whole_section(DLC, served, tmp_path, **keys)
        return Orders({k: v for k, v in section.items() if v is not ...}, tmp_path)

    return orders


@pytest.fixture
def orders(make: Make) -> Orders:
    return make()


@pytest.fixture
def allocator(orders: Orders) -> Iterator[HttpJobsAllocator]:
    made = orders.allocator()
    yield made
    made.close()


def reaches(allocator: HttpJobsAllocator, name: str, wanted: AllocationState) -> Allocation:
    last: list[Any] = [None]

    def look() -> bool:
        last[0] = next((each for each in allocator.look() if each.name == name), None)
        return last[0] is not None and last[0].state is wanted

    wait_until(look, f"{name} is {wanted}")
    made: Allocation = last[0]
    return made


def test_a_job_as_the_contract_has_it(make: Make, served: Dlc, tmp_path: Path) -> None:
    here = str(tmp_path / "shared")
    orders = make(
        ecsSpec=...,
        resourceId="quota7",
        cpus=4,
        memory="15.5GB",
        sharedMemory="4GiB",
        gpus=2,
        gpuType="V100",
        priority=7,
        dataSources=[
            {"id": "d-1", "at": "/mnt/nas", "here": here},
            {"uri": "oss://b.oss-cn-tests-internal.aliyuncs.com/data/", "at": "/mnt/oss"},
            {"id": "d-2"},
        ],
        vpc={"id": "vpc-1", "securityGroup": "sg-1", "switch": "vsw-1"},
        settings={"EnableRDMA": True, "Tags": {"team": "nas"}},
        node={"UseSpotInstance": True},
    )
    body = body_of(replace(ORDER, nodes=3), orders.service)
    assert served.contract.complaints("CreateJobRequest", body) == []
    assert rules(body, len(json.dumps(body))) == []
    node = {
        "UseSpotInstance": True,
        "Image": "registry-vpc.cn-tests.aliyuncs.com/lab/nas:1",
        "RestartPolicy": "Never",
        "ResourceConfig": {
            "CPU": "4", "Memory": "16Gi", "SharedMemory": "4Gi", "GPU": "2", "GPUType": "V100",
        },
    }  # fmt: skip
    assert body == {
        "DisplayName": "abc-worker-1",
        "Description": "bequeath: worker of experiment abc",
        "JobType": "PyTorchJob",
        "JobSpecs": [
            {**node, "Type": "Master", "PodCount": 1},
            {**node, "Type": "Worker", "PodCount": 2},
        ],
        "UserCommand": "exec true",
        "WorkspaceId": "268",
        "Accessibility": "PRIVATE",
        "Settings": {
            "TerminationGracePeriodSeconds": 40,
            "EnableRDMA": True,
            "Tags": {
                "team": "nas",
                "bequeath-attempt": "abc-worker-1",
                "bequeath-service": "abc",
                "bequeath-mark": "f" * 32,
            },
        },
        "JobMaxRunningTimeMinutes": 122,
        "ResourceId": "quota7",
        "Priority": 7,
        "DataSources": [
            {"DataSourceId": "d-1", "MountPath": "/mnt/nas"},
            {"Uri": "oss://b.oss-cn-tests-internal.aliyuncs.com/data/", "MountPath": "/mnt/oss"},
            {"DataSourceId": "d-2"},
        ],
        "UserVpc": {"VpcId": "vpc-1", "SecurityGroupId": "sg-1", "SwitchId": "vsw-1"},
    }
    assert orders.service.seen(tmp_path / "shared/x") == "/mnt/nas/x"
    assert orders.service.gpus_asked == 2


def test_public_machines_are_named_by_their_type(orders: Orders) -> None:
    body = body_of(replace(ORDER, wall_s=None), orders.service)
    (spec,) = body["JobSpecs"]
    assert spec["EcsSpec"] == "ecs.g6.2xlarge"
    absent = {"ResourceConfig", "JobMaxRunningTimeMinutes", "ResourceId", "DataSources", "UserVpc"}
    assert not absent & {*body, *spec}


MISSPELT: dict[str, Callable[[dict[str, Any]], object]] = {
    "of a job": lambda body: body.update(displayName="x"),
    "of a node": lambda body: node(body).update(Images="x"),
    "of its machine": lambda body: node(body).update(ResourceConfig={"Cpu": "1"}),
    "of the settings": lambda body: body["Settings"].update(tags={}),
    "of a storage": lambda body: body.update(DataSources=[{"Id": "d-1"}]),
    "of the network": lambda body: body.update(UserVpc={"Id": "vpc-1"}),
    "a missing name": lambda body: body.pop("DisplayName"),
    "a missing command": lambda body: body.pop("UserCommand"),
    "a count that is a text": lambda body: node(body).update(PodCount="1"),
    "a size that is a number": lambda body: node(body).update(ResourceConfig={"CPU": 4}),
    "a name with a slash": lambda body: body.update(DisplayName="a/b"),
    "a kind of job": lambda body: body.update(JobType="PytorchJob"),
    "a kind of node": lambda body: node(body).update(Type="Chief"),
    "two ways to a machine": lambda body: node(body).update(ResourceConfig={"CPU": "1"}),
    "tries of the service": lambda body: node(body).update(RestartPolicy="OnFailure"),
    "a priority": lambda body: body.update(Priority=10),
    "more than 64 KiB": lambda body: body.update(UserCommand="x" * 65_536),
}


def node(body: dict[str, Any]) -> dict[str, Any]:
    made: dict[str, Any] = body["JobSpecs"][0]
    return made


@pytest.mark.parametrize("what", MISSPELT)
def test_a_misspelt_job_is_refused(
    what: str, orders: Orders, served: Dlc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the judge judges nothing, and neither do the tests that it presides."""
    body = copy.deepcopy(body_of(ORDER, orders.service))
    MISSPELT[what](body)
    monkeypatch.setattr(module, "body_of", lambda *_: body)
    jobs = DlcJobs(orders.service, "abc")
    with pytest.raises(Invalid):
        jobs.create(ORDER)
    assert served.misspelt
    served.misspelt.clear()
    assert served.machines.jobs == {}
    jobs.close()


def test_other_misspelt_requests_are_refused_as_well(orders: Orders, served: Dlc) -> None:
    jobs = DlcJobs(orders.service, "abc")
    for operation, path, method, more in (
        ("ListJobs", "/api/v1/jobs", "GET", {"query": {"Workspace": "268"}}),
        ("ListJobs", "/api/v1/jobs", "GET", {"query": {"PageSize": "many"}}),
        ("ListJobs", "/api/v1/job", "GET", {}),
        ("GetJobs", "/api/v1/jobs/a", "GET", {}),
        ("StopJob", "/api/v1/jobs/a/stop", "PUT", {}),
        ("StopJob", "/api/v1/jobs/a/stop", "POST", {"body": {"force": True}}),
        ("CreateJob", "/api/v1/jobs", "POST", {}),
    ):
        with pytest.raises(PermanentBackendError):
            jobs.ask(operation, path, "ask", method, **more)
    assert len(served.misspelt) >= 7
    served.misspelt.clear()
    jobs.close()


def test_the_judge_finds_a_wrong_answer(served: Dlc) -> None:
    """Of ours: an imitation that lies about shapes is none."""

    def wrong(path: str, status: int, document: Any) -> list[str]:
        asked = Asked("GET", path, {}, {}, b"", "", None)
        return served.judge_answer(asked, Reply(status, document))

    refusal = served.refusal(Refusal(404, "", "x")).document
    assert wrong("/api/v1/jobs/a", 404, refusal) == []
    for document in ({**refusal, "more": 1}, {"Code": "x"}, {**refusal, "Code": 404}):
        assert wrong("/api/v1/jobs/a", 404, document)
    good = {"Jobs": [{"JobId": "a", "Status": "Running"}], "TotalCount": 1}
    assert wrong("/api/v1/jobs", 200, good) == []
    for jobs in ([{"Id": "a"}], [{"JobId": 1}], [{"RestartTimes": 1}]):
        assert wrong("/api/v1/jobs", 200, {"Jobs": jobs})
    assert wrong("/api/v1/jobs/a/pods/p/logs", 200, {"Logs": "text"})


BAD_KEYS: dict[str, tuple[str, str]] = {
    "another secret": ("secret", "does not match our calculation"),
    "an unknown id": ("id", "Specified access key is not found"),
}


@pytest.mark.parametrize("what", BAD_KEYS)
def test_a_wrong_key_is_no_missing_job(what: str, make: Make, served: Dlc, tmp_path: Path) -> None:
    """It is "404" for one of them. Mutation: all jobs have been deleted, it seems."""
    half, text = BAD_KEYS[what]
    orders = make()
    allocator = orders.allocator()
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    path = served.id_file if half == "id" else served.secret_file
    before = path.read_text()
    path.write_text("LTAI-another-key\n")
    served.hidden.add(order.name)
    with pytest.raises(NotLoggedIn, match=text) as refused:
        allocator.look()
    assert "LTAI-another-key" not in str(refused.value) or half == "id"
    path.write_text(before)
    assert reaches(allocator, order.name, AllocationState.RUNNING)
    allocator.close()


def test_a_key_that_ends_is_signed_with_its_token(
    make: Make, served: Dlc, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("STS", "t0ken-of-sts")
    served.sts = "t0ken-of-sts"
    jobs = DlcJobs(make(securityToken="env:STS").service, "abc")
    assert jobs.list() == []
    served.sts = "the-next-one"
    with pytest.raises(NotLoggedIn, match="SecurityToken is expired") as refused:
        jobs.list()
    assert "t0ken-of-sts" not in str(refused.value)
    jobs.close()


def test_nodes_of_a_trial_are_a_master_and_workers_and_know_their_ranks(
    orders: Orders, served: Dlc
) -> None:
    """Mutation: each one is rank 0."""
    jobs = DlcJobs(orders.service, "abc")
    jobs.create(replace(ORDER, script='echo "rank $RANK of $WORLD_SIZE"', nodes=3))
    specs = served.job(ORDER.name).document["JobSpecs"]
    assert [(each["Type"], each["PodCount"]) for each in specs] == [("Master", 1), ("Worker", 2)]
    wait_until(lambda: served.job(ORDER.name).ended is not None, "all have ended")
    lines = sorted(jobs.output(ORDER.name).splitlines())
    assert lines == ["rank 0 of 3", "rank 1 of 3", "rank 2 of 3"]
    (id_,) = served.ids(ORDER.name)
    assert served.count(f"GET /api/v1/jobs/{id_}/pods/{id_}-master-0/logs") == 1
    jobs.close()


ENDS = [
    ("", Gone.FAILED, "exited with code 143"),
    (PREEMPTED, Gone.PREEMPTED, "was preempted"),
    (OUT_OF_MEMORY, Gone.OUT_OF_MEMORY, "OOMKilled"),
    (STOPPED, Gone.CANCELLED, "Job is stopped by user"),
]


@pytest.mark.parametrize("cause, gone, reason", ENDS)
def test_how_one_ended_is_known(
    cause: str,
    gone: Gone,
    reason: str,
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: Dlc,
) -> None:
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    served.machines.stop(served.ids(order.name)[0], cause, 5.0)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is gone
    assert reason in ended.reason


def test_one_that_fails_has_its_last_line_as_reason(orders: Orders, served: Dlc) -> None:
    """Where logs may be read; else the rest is known at once. Mutation: nobody says more than a
    code."""
    for reads, more in ((True, "no module named nas"), (False, "with code 7.")):
        served.reads_logs = reads
        jobs, name = DlcJobs(orders.service, "abc"), f"abc-worker-{int(reads)}"
        jobs.create(replace(ORDER, name=name, script="echo no module named nas; echo; exit 7"))
        wait_until(lambda name=name: served.job(name).ended is not None, "it has ended")
        (job,) = [each for each in jobs.list() if each.name == name]
        gone, reason = jobs.end_of(job)
        assert gone is None
        assert reason.startswith("JobFailed: The container exited with code 7.")
        assert reason.endswith(more)
        jobs.close()


def test_one_that_waits_says_why(allocator: HttpJobsAllocator, orders: Orders, served: Dlc) -> None:
    """By the list, else by its last event, else by that of a node that is prepared."""
    served.machines.places = 0
    order = orders.order()
    allocator.submit(order)
    assert reaches(allocator, order.name, AllocationState.WAITING).reason == NO_ROOM
    served.reasons[order.name] = ("JobEnqueued", "3 jobs are before it.")
    other = orders.allocator()
    why = "JobEnqueued: 3 jobs are before it."
    assert reaches(other, order.name, AllocationState.WAITING).reason == why
    served.reasons[order.name] = ("", "")
    served.preparing.add(order.name)
    pull = "Failed to pull image: manifest unknown"
    served.events[f"{served.ids(order.name)[0]}-master-0"] = ["Pulling image", pull]
    third = orders.allocator()
    assert reaches(third, order.name, AllocationState.STARTING).reason == pull
    other.close()
    third.close()


def test_two_of_one_name_are_one_in_the_end(
    orders: Orders, served: Dlc, allocator: HttpJobsAllocator
) -> None:
    """A list that lags may hide the first from the one who asks for it again. Mutation: both run,
    and their agents fight."""
    served.machines.places = 1  # who begins takes the script away, and it is to be the first
    order = orders.order()
    allocator.submit(order)
    served.hidden.add(order.name)
    orders.allocator().submit(order)
    first, second = served.ids(order.name)
    jobs = served.machines.jobs
    jobs[second].created = jobs[first].created  # the service's times are whole seconds
    served.hidden.clear()
    reaches(allocator, order.name, AllocationState.RUNNING)
    wait_until(
        lambda: allocator.look() is not None and served.machines.jobs[second].ended is not None,
        "the later one is stopped",
    )
    assert served.machines.jobs[first].runs


def test_a_name_that_is_the_beginning_of_another_is_another(orders: Orders, served: Dlc) -> None:
    """Names are looked for by a part of them. Mutation: job 1 is taken for job 11."""
    served.machines.places = 0
    served.fill("abc", 12)
    jobs = DlcJobs(orders.service, "abc")
    found = jobs.find("abc-worker-1")
    assert found is not None
    assert found.name == "abc-worker-1"
    assert jobs.find("abc-worker") is None
    jobs.close()


def test_lists_without_tags_and_old_jobs_do(
    orders: Orders, served: Dlc, allocator: HttpJobsAllocator
) -> None:
    """Mutations: a job of our own is somebody else's; one that is older than a week is gone."""
    served.bare_lists = True
    order = orders.order()
    allocator.submit(order)
    served.job(order.name).created -= 30 * 86400.0
    orders.allocator().submit(order)
    assert len(served.ids(order.name)) == 1
    assert reaches(allocator, order.name, AllocationState.RUNNING)


def test_all_pages_are_read_and_later_one_at_a_look(
    orders: Orders, served: Dlc, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: what is beyond the first page is gone."""
    monkeypatch.setattr(module, "PAGE", 4)
    served.machines.places = 0
    served.fill("abc", 10)
    jobs = DlcJobs(orders.service, "abc")
    for requests in (3, 4, 5):
        assert len({each.name for each in jobs.list()}) == 10
        assert served.count("GET /api/v1/jobs") == requests
    jobs.close()


def test_what_has_ended_is_removed_there(orders: Orders, served: Dlc) -> None:
    """After a while. Mutation: records for ever."""
    clock = Clock()
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


def test_a_machine_that_is_kept_is_given_back(orders: Orders, served: Dlc) -> None:
    """Though the job has ended well. Mutation: a bill that goes on."""
    served.keeps = True
    jobs = DlcJobs(orders.service, "abc")
    jobs.create(ORDER)
    wait_until(lambda: served.job(ORDER.name).ended is not None, "it has ended")
    (job,) = jobs.list()
    assert job.word == "SucceededReserving"
    assert jobs.states[job.word] is Gone.FINISHED
    jobs.remove(job)
    assert served.count(f"POST /api/v1/jobs/{job.id}/stop") == 1
    assert served.count("DELETE") == 0
    jobs.close()


def test_to_stop_what_has_ended_or_gone_is_no_error(orders: Orders, served: Dlc) -> None:
    jobs = DlcJobs(orders.service, "abc")
    jobs.create(ORDER)
    wait_until(lambda: served.job(ORDER.name).ended is not None, "it has ended")
    (job,) = jobs.list()
    jobs.stop(job, 0.0)
    served.delete(ORDER.name)
    jobs.stop(job, 0.0)
    assert served.count("POST") == 3
    jobs.close()


def test_a_restart_has_lost_its_place() -> None:
    """The service counts "1/3" of them. Mutation: a second agent begins under the first's
    ticket."""
    for document, restarts in (
        ({"Status": "Running", "RestartTimes": "2/3"}, 2),
        ({"Status": "Running", "RestartTimes": ""}, 0),
        ({"Status": "Running", "RestartTimes": "none"}, 0),
        ({"Status": "Restarting"}, 1),
    ):
        assert job_of(document).restarts == restarts
    assert job_of({"Status": "Running", "ReasonCode": "JobRunning"}).reason == ""


def test_refusals_have_their_kind(make: Make, served: Dlc) -> None:
    """Mutation: a quota that is used up for now loses a worker for good."""
    for keys, kind, text in (
        ({"ecsSpec": "ecs.z9.huge"}, Invalid, "EcsSpec ecs.z9.huge is invalid"),
        ({"image": "r/nowhere:1"}, Invalid, "is not accessible"),
        ({"workspaceId": "999"}, NotAllowed, "no member of the workspace '999'"),
        ({"resourceId": "none"}, NotThere, "Quota none is not there"),
    ):
        orders = make(**keys)
        allocator = orders.allocator()
        with pytest.raises(kind, match=text):
            allocator.submit(orders.order())
        allocator.close()
    served.over_quota = True
    orders = make()
    allocator = orders.allocator()
    with pytest.raises(OverQuota, match="QuotaExceeded"):
        allocator.submit(orders.order())
    served.over_quota = False
    allocator.submit(orders.order())
    allocator.close()
