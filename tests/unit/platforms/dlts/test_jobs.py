"""Jobs as the dashboard takes them, and what it says of them; a misspelt one is refused."""

from __future__ import annotations

import copy
import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from dispatcher.errors import BackendError, PermanentBackendError
from dispatcher.http_services.errors import Busy, Invalid, NotAllowed, NotLoggedIn, OverQuota
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.dlts import jobs as module
from dispatcher.platforms.dlts.jobs import DltsJobs, body_of, job_of
from dispatcher.platforms.http_jobs import allocator as looking
from dispatcher.platforms.http_jobs.allocator import HttpJobsAllocator
from dispatcher.platforms.http_jobs.jobs import JobOrder
from tests.support.processes import wait_until
from tests.support.services.dlts import NO_ROOM, TEAM, USER, Dlts
from tests.support.services.faults import Clock
from tests.support.services.machines import OUT_OF_MEMORY, PREEMPTED, STOPPED
from tests.support.services.played import Orders
from tests.support.services.server import TOKEN, Asked, Reply

ORDER = JobOrder("abc-worker-1", "abc", "f" * 32, "exec sh /there/abc-worker-1.start",
                 experiment="abc", worker="worker")  # fmt: skip

Make = Callable[..., Orders]


def reaches(allocator: HttpJobsAllocator, name: str, wanted: AllocationState) -> Allocation:
    last: list[Any] = [None]

    def look() -> bool:
        last[0] = next((each for each in allocator.look() if each.name == name), None)
        return last[0] is not None and last[0].state is wanted

    wait_until(look, f"{name} is {wanted}")
    found: Allocation = last[0]
    return found


def test_a_job_as_the_last_client_of_the_dashboard_sent_it(make: Make) -> None:
    """Fields of the file's own stand beside ours, and take the place of none that is needed.
    Mutation: 'extras' changes the command, or who asks."""
    mounts = [{"mountPoint": "/d", "containerPath": "/d"}]
    extras = {"workPath": "code", "mountpoints": mounts, "cmd": "true", "team": "others"}
    body = body_of(ORDER, make(gpus=2, extras=extras).service, "V100")
    assert body == {
        "team": TEAM,
        "vcName": TEAM,
        "userName": USER,
        "jobName": "abc-worker-1",
        "gpuType": "V100",
        "jobType": "training",
        "jobtrainingtype": "RegularJob",
        "resourcegpu": 2,
        "image": "our/own:1",
        "cmd": "exec sh /there/abc-worker-1.start",
        "interactivePorts": [],
        "ssh": False,
        "ipython": False,
        "tensorboard": False,
        "workPath": "code",
        "enableworkpath": True,
        "dataPath": "",
        "enabledatapath": False,
        "jobPath": "",
        "enablejobpath": True,
        "mountpoints": mounts,
        "env": [{"name": "BEQUEATH_MARK", "value": "f" * 32}],
        "hostNetwork": False,
        "useGPUTopology": False,
        "isPrivileged": False,
        "hostIPC": False,
        "preemptionAllowed": "False",
    }


def test_gpus_are_of_the_first_type_that_the_team_has(make: Make, served: Dlts) -> None:
    for keys, wanted in (({}, "P40"), ({"gpuType": "V100"}, "V100")):
        orders = make(**keys)
        allocator, order = orders.allocator(), orders.order(worker=f"w{wanted.lower()}")
        allocator.submit(order)
        assert served.job(order.name).document["gpuType"] == wanted
        allocator.close()
    assert served.count(f"GET /api/teams/{TEAM}") == 1


MISSPELT: dict[str, Callable[[dict[str, Any]], object]] = {
    "of a job": lambda body: body.update(resourceGpu=1),
    "of a variable": lambda body: body["env"][0].update(key="x"),
    "a missing one": lambda body: body.pop("team"),
    "a wrong kind": lambda body: body.update(resourcegpu="1"),
    "a wrong word": lambda body: body.update(preemptionAllowed=False),
}


@pytest.mark.parametrize("what", MISSPELT)
def test_a_misspelt_job_is_refused(
    what: str, orders: Orders, served: Dlts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the judge judges nothing, and neither do the tests that it presides."""
    body = copy.deepcopy(body_of(ORDER, orders.service, "P40"))
    MISSPELT[what](body)
    monkeypatch.setattr(module, "body_of", lambda *_: body)
    jobs = DltsJobs(orders.service, "abc")
    with pytest.raises(Invalid):
        jobs.create(ORDER)
    assert served.misspelt
    served.misspelt.clear()
    assert served.machines.jobs == {}
    jobs.close()


def test_other_misspelt_requests_are_refused_as_well(orders: Orders, served: Dlts) -> None:
    client = DltsJobs(orders.service, "abc").client
    status = "/api/clusters/lab/jobs/a/status"
    for method, path, query, body in (
        ("GET", f"/api/v2/clusters/lab/teams/{TEAM}/jobs", {"num": 3}, None),
        ("GET", f"/api/v2/clusters/lab/teams/{TEAM}/jobs", {"user": "bob"}, None),
        ("GET", "/api/v2/clusters/lab/job/a", {}, None),
        ("PUT", status, {}, {"status": "stopped"}),
        ("PUT", status, {}, None),
    ):
        with pytest.raises(PermanentBackendError):
            client.ask(method, path, asked="ask", query=query, body=body)
    assert len(served.misspelt) == 5
    served.misspelt.clear()
    served.wrong.clear()  # it cannot refuse them in the words of the contract
    client.close()


def test_the_judge_finds_a_wrong_answer(served: Dlts) -> None:
    """Of ours: an imitation that lies about shapes is none."""
    asked = Asked("GET", "/api/v2/clusters/lab/jobs/a", {}, {}, b"", "", None)
    wrong: list[Any] = [{"jobStatus": "levitating"}, {"id": "x"}, {"jobStatusDetail": {}}, []]
    for document in wrong:
        assert served.judge_answer(asked, Reply(200, document)), document
    assert served.judge_answer(asked, Reply(200, {"jobStatus": "paused"})) == []
    assert served.judge_answer(asked, Reply(201, {}))


REFUSALS: list[tuple[str, type[BackendError]]] = [
    ("Access Denied!", NotAllowed),
    ("the quota of the team is used up", OverQuota),
    ("Cannot schedule job. Cannot add job into database.", Busy),
    ("ERROR: Job name cannot be empty", Invalid),
]


@pytest.mark.parametrize("text, kind", REFUSALS)
def test_a_refusal_in_an_answer_that_is_no_error_is_one(
    text: str, kind: type[BackendError], orders: Orders, served: Dlts
) -> None:
    """Mutation: 200 is taken for a job, which is waited for for ever."""
    served.refusal_text = text
    jobs = DltsJobs(orders.service, "abc")
    with pytest.raises(kind, match=text.partition(".")[0]):
        jobs.create(ORDER)
    jobs.close()


def test_one_that_waits_says_why(
    allocator: HttpJobsAllocator, orders: Orders, served: Dlts
) -> None:
    served.machines.places = 0
    order, other = orders.order(), orders.order(worker="other")
    served.needs_approval.add(other.name)
    allocator.submit(order)
    allocator.submit(other)
    before = len(served.asked)
    assert reaches(allocator, order.name, AllocationState.WAITING).reason == NO_ROOM
    assert "approve" in reaches(allocator, other.name, AllocationState.WAITING).reason
    assert len(served.asked) == before + 2, "the list has said it"


ENDS: list[tuple[str, str, Gone, str]] = [
    ("", "", Gone.FAILED, "No such file: /mnt/x.start"),
    ("", "node lost", Gone.NODE_LOST, "node lost"),
    (PREEMPTED, "", Gone.PREEMPTED, "paused"),
    (OUT_OF_MEMORY, "", Gone.OUT_OF_MEMORY, "OOMKilled"),
    (STOPPED, "", Gone.CANCELLED, ""),
]


@pytest.mark.parametrize("cause, message, gone, reason", ENDS)
def test_how_one_ended_is_known(
    cause: str,
    message: str,
    gone: Gone,
    reason: str,
    allocator: HttpJobsAllocator,
    orders: Orders,
    served: Dlts,
) -> None:
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    served.messages[order.name] = message
    served.log[order.name] = {"pod-0": "bequeath: what follows is in x\nNo such file: /mnt/x.start"}
    served.machines.stop(served.ids(order.name)[0], cause, 0.0)
    ended = reaches(allocator, order.name, AllocationState.ENDED)
    assert ended.gone is gone
    assert reason in ended.reason
    assert "what follows" not in ended.reason


def test_what_was_paused_is_resumed_by_nobody(orders: Orders, served: Dlts) -> None:
    """Mutation: it keeps its place in the team, and an agent begins when nobody expects it."""
    clock = Clock()
    allocator, order = orders.allocator(clock), orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    (id_,) = served.ids(order.name)
    served.machines.stop(id_, PREEMPTED, 0.0)
    reaches(allocator, order.name, AllocationState.ENDED)
    clock.wait(looking.ENDED_S)
    allocator.look()
    assert served.job(order.name).cause == STOPPED
    allocator.close()


def test_a_database_that_fails_loses_nobody(
    allocator: HttpJobsAllocator, orders: Orders, served: Dlts
) -> None:
    """A cluster then answers as if there were no jobs. Mutation: it is believed at once."""
    order = orders.order()
    allocator.submit(order)
    reaches(allocator, order.name, AllocationState.RUNNING)
    served.is_broken = True
    (found,) = allocator.look()
    assert found.state is AllocationState.UNKNOWN
    served.is_broken = False
    (found,) = allocator.look()
    assert found.state is AllocationState.RUNNING


def test_one_that_has_ended_is_known_though_newer_ones_have(
    orders: Orders, served: Dlts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: what the list has no more was deleted, and is nobody's failure."""
    monkeypatch.setattr(module, "ENDED", 1)
    allocator, order, newer = orders.allocator(), orders.order(), orders.order(worker="newer")
    for each in (order, newer):
        allocator.submit(each)
        reaches(allocator, each.name, AllocationState.RUNNING)
    for each in (order, newer):
        served.machines.stop(served.ids(each.name)[0], "", 0.0)
    wait_until(lambda: served.alive() == [], "both have ended")
    assert reaches(allocator, order.name, AllocationState.ENDED).gone is Gone.FAILED
    allocator.close()


def test_the_password_is_in_no_error_and_read_anew(
    orders: Orders, served: Dlts, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It stands in each address, which a server may show. Mutation: in texts, too."""
    jobs = DltsJobs(orders.service, "abc")
    served.fail("GET /", 400)
    shown = Reply(400, {"message": f"Cannot GET /api/v2/jobs?password={TOKEN}"})
    with monkeypatch.context() as patched:
        patched.setattr(served, "refusal", lambda _refusal: shown)
        with pytest.raises(Invalid, match="Cannot GET") as refused:
            jobs.list()
    served.is_away = True
    with pytest.raises(BackendError) as lost:
        jobs.list()
    served.is_away = False
    assert TOKEN not in f"{refused.value} {lost.value} {refused.value.hint}"
    served.tokens = {"an+other&t0ken"}
    with pytest.raises(NotLoggedIn, match="'email' and 'password'"):
        jobs.list()
    served.renew("an+other&t0ken")
    assert jobs.list() == []
    jobs.close()


def test_moments_are_read_as_servers_write_them() -> None:
    for text in ("Fri, 01 May 2026 12:00:00 GMT", "2026-05-01T12:00:00+00:00", "2026-05-01 12:00"):
        assert job_of({"jobTime": text}).created_at == 1777636800.0, text
    assert job_of({"jobTime": "yesterday"}).created_at is None
    odd = job_of({"jobStatusDetail": None, "jobParams": {"env": None}, "jobStatus": "queued"})
    assert (odd.reason, odd.started_at, odd.mark) == ("", None, "none of ours")
    assert job_of({"jobStatus": "queued"}).mark == "", "nobody says whose it is"


@pytest.mark.parametrize("parameters", ["full", None, {}, [], "text", {"env": 3.5}, {"env": None}])
def test_a_list_is_read_as_far_as_it_is_looked_at(parameters: object) -> None:
    """Mutation: a field that a job is made of is passed over in the list, and known of one job
    alone."""
    row: dict[str, Any] = {
        "jobId": "1", "jobName": "abc-worker-1", "jobStatus": "running", "userName": "a@b.c",
        "jobTime": "Sun, 29 Nov 2026 21:08:37 GMT", "priority": 100, "errorMsg": "x",
        "jobStatusDetail": [{"message": "here", "startedAt": "2026-11-29T21:09:00Z"}],
        "jobParams": parameters,
    }  # fmt: skip
    if parameters == "full":
        row["jobParams"] = {"cmd": "x", "env": [{"name": module.MARK, "value": ORDER.mark}]}
    content = json.dumps([row]).encode()
    try:
        (listed,) = msgspec.json.decode(content, type=module.LISTED)
    except msgspec.ValidationError:  # comes whole then
        (listed,) = msgspec.json.decode(content)
        assert parameters in ([], "text")
    if parameters == {"env": 3.5}:  # what makes no sense makes none as well
        with pytest.raises(TypeError):
            job_of(row)
        with pytest.raises(TypeError):
            job_of(listed)
    else:
        assert job_of(listed) == job_of(row)
