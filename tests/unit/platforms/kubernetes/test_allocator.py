"""Jobs are ordered once, whatever becomes of an answer; looks cost no request; nothing is left."""

from __future__ import annotations

import base64
from collections.abc import Callable, Iterator
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.allocations.allocation import Allocation, Gone
from dispatcher.platforms.kubernetes.allocator import KubernetesAllocator
from dispatcher.platforms.kubernetes.api.server import ApiServer
from tests.support.kubernetes import api_server
from tests.support.kubernetes.objects import Refusal
from tests.support.processes import wait_until
from tests.unit.platforms.kubernetes.test_bodies import order, section

Served = api_server.ApiServer
LABEL = "abc123-0a0b0c"
NAME = order().name


class Clock:
    """Time that a test moves."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def allocator(client: ApiServer, clock: Clock) -> Iterator[KubernetesAllocator]:
    made = KubernetesAllocator(client, section(), LABEL, token=lambda: "T", clock=clock)
    yield made
    made.close()


def until(condition: Callable[[], Any]) -> Any:
    """What a condition comes to when it holds."""
    last = [None]

    def holds() -> bool:
        last[0] = condition()
        return bool(last[0])

    wait_until(holds, "it comes to that")
    return last[0]


def seen(allocator: KubernetesAllocator, name: str = NAME) -> Allocation | None:
    return next((each for each in allocator.look() if each.name == name), None)


def running(there: Served, *, name: str = NAME, pod: str = "p1", **status: Any) -> None:
    """A pod of a Job, as its controller and a kubelet make it."""
    uid = there.objects.get("jobs", "trials", name)["metadata"]["uid"]
    owner = {"apiVersion": "batch/v1", "kind": "Job", "name": name, "uid": uid}
    labels = {"job-name": name, "bequeath/service": LABEL}
    body = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": pod, "labels": labels, "ownerReferences": [owner]},
        "spec": {
            "nodeName": "n1",
            "terminationGracePeriodSeconds": 30,
            "containers": [{"name": "agent", "image": "i"}],
        },
        "status": {"phase": "Running", "startTime": there.objects.timestamp(), **status},
    }
    there.objects.create("pods", "trials", body)


def config_of(there: Served) -> dict[str, Any]:
    data = there.objects.get("secrets", "trials", NAME)["data"]
    decoded: dict[str, Any] = msgspec.json.decode(base64.b64decode(data["config"]))
    return decoded


def test_an_order_is_a_job_that_owns_its_secret(
    allocator: KubernetesAllocator, there: Served
) -> None:
    allocator.submit(order())
    job = there.objects.get("jobs", "trials", NAME)
    secret = there.objects.get("secrets", "trials", NAME)
    (owner,) = secret["metadata"]["ownerReferences"]
    assert owner["uid"] == job["metadata"]["uid"]
    assert "S3CRET" not in str(job), "keys are in the Secret only"
    config = config_of(there)
    assert config["head"]["address"] == "tcp://10.0.0.9:4000"
    assert config["ticket"] == "S3CRET-TICKET"
    there.objects.remove("jobs", "trials", NAME)
    assert there.objects.all("secrets") == [], "it goes with its Job"


def test_an_order_that_comes_twice_is_one_job(
    allocator: KubernetesAllocator, there: Served
) -> None:
    """Mutation: a Job that is there already is a failure."""
    allocator.submit(order())
    there.objects.remove("secrets", "trials", NAME)  # a head died before it
    allocator.submit(order())
    assert len(there.objects.all("jobs")) == len(there.objects.all("secrets")) == 1


@pytest.mark.parametrize("status", [500, None])
def test_an_order_that_was_taken_and_not_answered_is_asked_again(
    status: int | None, allocator: KubernetesAllocator, there: Served
) -> None:
    there.fail("POST /apis/batch", status, done=True)
    with pytest.raises(PassingBackendError):
        allocator.submit(order())
    allocator.submit(order())
    assert len(there.objects.all("jobs")) == len(there.objects.all("secrets")) == 1


def test_a_name_that_somebody_else_has_is_not_ours(
    allocator: KubernetesAllocator, there: Served
) -> None:
    """Of another experiment, or of another incarnation of that name: by its ticket."""
    allocator.submit(order())
    other = {"metadata": {"annotations": {"bequeath/ticket": "another"}}}
    there.objects.change("jobs", "trials", NAME, lambda x: x["metadata"].update(other["metadata"]))
    there.objects.remove("secrets", "trials", NAME)
    with pytest.raises(PermanentBackendError, match="has not ordered"):
        allocator.submit(order())
    assert there.objects.all("secrets") == [], "it gets none of our keys"


def test_a_job_whose_secret_is_refused_does_not_stay(
    allocator: KubernetesAllocator, there: Served
) -> None:
    """Mutation: it stays, and its pod waits for ever."""
    there.denied.add(("patch", "secrets"))
    with pytest.raises(PermanentBackendError, match="secrets is forbidden"):
        allocator.submit(order())
    (job,) = there.objects.all("jobs")
    assert "deletionTimestamp" in job["metadata"]


def test_what_cannot_be_taken_back_may_have_been_taken(
    allocator: KubernetesAllocator, there: Served
) -> None:
    """So it is asked for again: a Job without a head's knowledge would stay."""
    there.denied |= {("patch", "secrets"), ("delete", "jobs")}
    with pytest.raises(PassingBackendError, match="cannot be removed"):
        allocator.submit(order())


def test_a_quota_without_room_is_a_wait(allocator: KubernetesAllocator, there: Served) -> None:
    there.objects.quota["jobs"] = 0
    with pytest.raises(PassingBackendError, match="exceeded quota"):
        allocator.submit(order())
    there.objects.quota.clear()
    allocator.submit(order())


def test_looks_cost_no_request(allocator: KubernetesAllocator, there: Served) -> None:
    allocator.submit(order())
    running(there)
    until(lambda: (each := seen(allocator)) and each.state == "running")
    until(lambda: there.count("WATCH") == 2)
    there.asked.clear()
    for _ in range(100):
        allocator.look()
    assert there.asked == []


def test_one_that_was_deleted_by_somebody_is_listed_as_ended(
    allocator: KubernetesAllocator, there: Served, clock: Clock
) -> None:
    """Mutation: it has vanished, and nobody knows why. It is forgotten after a while."""
    allocator.submit(order())
    running(there)
    until(lambda: (each := seen(allocator)) and each.place == "n1")
    there.objects.remove("jobs", "trials", NAME)
    there.objects.remove("pods", "trials", "p1")
    last = until(lambda: (each := seen(allocator)) and each.state == "ended" and each)
    assert last.gone is Gone.CANCELLED
    assert "was deleted" in last.reason
    clock.now += 601
    assert seen(allocator) is None


def test_a_second_pod_is_a_place_that_was_taken_back(
    allocator: KubernetesAllocator, there: Served
) -> None:
    """As servers before 1.26 start one. Mutation: it is the same allocation, still running."""
    allocator.submit(order())
    running(there)
    until(lambda: (each := seen(allocator)) and each.state == "running")
    there.objects.remove("pods", "trials", "p1")
    until(lambda: (each := seen(allocator)) and each.state == "waiting")
    running(there, pod="p2")
    pods = there.objects.all("pods")
    assert [each["metadata"]["name"] for each in pods] == ["p2"]
    for _ in range(20):
        last = seen(allocator)
        assert last is not None
        assert last.state == "waiting"
        assert "another one" in last.reason


def test_how_a_pod_went_is_known_after_it_has_gone(
    allocator: KubernetesAllocator, there: Served
) -> None:
    """Between two looks, it may be marked, end with success and go. Mutation: only what is there
    at a look is known."""
    allocator.submit(order())
    running(there)
    until(lambda: (each := seen(allocator)) and each.state == "running")
    there.objects.delete("pods", "trials", "p1", {"gracePeriodSeconds": 5})
    there.objects.remove("pods", "trials", "p1")
    status = {"conditions": [{"type": "Complete", "status": "True"}]}
    there.objects.change("jobs", "trials", NAME, lambda x: x.update(status=status))
    last = until(lambda: (each := seen(allocator)) and each.state == "ended" and each)
    assert last.gone is Gone.EVICTED


def test_a_job_that_ends_before_its_pods_is_given_a_moment(
    allocator: KubernetesAllocator, there: Served, clock: Clock
) -> None:
    """Their watches are two. A pod may also stay for ever, as on a lost node."""
    allocator.submit(order())
    running(there)
    until(lambda: (each := seen(allocator)) and each.state == "running")
    status = {"conditions": [{"type": "Failed", "status": "True"}]}
    there.objects.change("jobs", "trials", NAME, lambda x: x.update(status=status))
    until(lambda: (each := seen(allocator)) and each.state == "unknown")
    clock.now += 6
    until(lambda: (each := seen(allocator)) and each.state == "ended")


def test_a_shorter_grace_reaches_the_pods(allocator: KubernetesAllocator, there: Served) -> None:
    allocator.submit(order())
    running(there)
    until(lambda: (each := seen(allocator)) and each.state == "running")
    allocator.cancel([NAME], 60.0)
    assert "deletionTimestamp" in there.objects.get("jobs", "trials", NAME)["metadata"]
    assert there.count("DELETE /api/v1/namespaces/trials/pods") == 0, "its own grace is shorter"
    allocator.cancel([NAME], 5.0)
    about = there.objects.get("pods", "trials", "p1")["metadata"]
    assert about["deletionGracePeriodSeconds"] == 5


@pytest.mark.parametrize("grace_s", [0.0, 0.4])
def test_a_pod_is_never_deleted_while_its_process_may_run(
    grace_s: float, allocator: KubernetesAllocator, there: Served
) -> None:
    """A grace of nought removes the object at once, whatever a lost node still runs."""
    allocator.submit(order())
    running(there)
    until(lambda: (each := seen(allocator)) and each.state == "running")
    allocator.cancel([NAME], grace_s)
    about = there.objects.get("pods", "trials", "p1")["metadata"]
    assert about["deletionGracePeriodSeconds"] == 1


def test_what_is_not_there_is_cancelled(allocator: KubernetesAllocator, there: Served) -> None:
    allocator.cancel(["nobody", "nothing"], 1.0)
    assert there.count("DELETE") == 2


def test_the_next_head_tells_its_address(
    allocator: KubernetesAllocator, there: Served, client: ApiServer
) -> None:
    allocator.submit(order())
    later = KubernetesAllocator(client, section(), LABEL, token=lambda: "T", clock=Clock())
    config = order().config
    later.tell(NAME, replace(config, head=replace(config.head, address="tcp://10.0.0.8:1")))
    assert config_of(there)["head"]["address"] == "tcp://10.0.0.8:1"
    assert len(there.objects.get("secrets", "trials", NAME)["data"]) == 3, "variables stay"
    there.objects.remove("jobs", "trials", NAME)
    later.tell(NAME, order().config)  # it has ended meanwhile


def test_why_there_is_no_pod_is_asked_for(
    allocator: KubernetesAllocator, there: Served, clock: Clock
) -> None:
    """A quota of pods shows in events only. Once in some seconds, however many looks there are."""
    allocator.submit(order())
    event = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "e1"},
        "involvedObject": {"kind": "Job", "name": NAME, "namespace": "trials"},
        "type": "Warning",
        "reason": "FailedCreate",
        "message": "exceeded quota: pods",
        "lastTimestamp": there.objects.timestamp(),
    }
    until(lambda: seen(allocator))
    clock.now += 5
    there.objects.create("events", "trials", event)
    for _ in range(50):
        allocator.look()
    last = seen(allocator)
    assert last is not None
    assert last.reason == "FailedCreate: exceeded quota: pods"
    assert there.count("GET /api/v1/namespaces/trials/events") <= 2


def test_without_the_right_to_read_events_all_goes_on(
    allocator: KubernetesAllocator, there: Served, clock: Clock
) -> None:
    there.denied.add(("list", "events"))
    allocator.submit(order())
    until(lambda: seen(allocator))
    for _ in range(5):
        clock.now += 10
        allocator.look()
    assert there.count("GET /api/v1/namespaces/trials/events") == 1


def test_one_that_has_ended_is_removed_after_a_while(
    allocator: KubernetesAllocator, there: Served, clock: Clock
) -> None:
    allocator.submit(order())
    status = {"type": "Complete", "status": "True"}
    there.objects.change(
        "jobs", "trials", NAME, lambda x: x.update(status={"conditions": [status]})
    )
    last = until(lambda: (each := seen(allocator)) and each.state == "ended" and each)
    assert last.gone is Gone.FINISHED
    assert there.count("DELETE") == 0
    clock.now += 61
    allocator.look()
    assert there.count("DELETE") == 1


def test_nothing_is_known_while_the_server_is_away(
    allocator: KubernetesAllocator, there: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the last picture is taken for the present one."""
    allocator.submit(order())
    until(lambda: seen(allocator))
    there.fail("WATCH", 503, times=1000)
    there.fail("GET", 503, times=1000)
    there.cut_watches()
    until(lambda: _fails(allocator))
    there.faults.clear()
    until(lambda: not _fails(allocator))


def _fails(allocator: KubernetesAllocator) -> bool:
    try:
        allocator.look()
    except PassingBackendError:
        return True
    return False


def test_a_right_that_is_taken_away_is_named(allocator: KubernetesAllocator, there: Served) -> None:
    allocator.submit(order())
    until(lambda: seen(allocator))
    there.denied |= {("watch", "pods"), ("list", "pods")}
    there.cut_watches()

    def look() -> str:
        try:
            allocator.look()
        except PermanentBackendError as error:
            return error.message
        return ""

    assert 'cannot watch resource "pods"' in until(look)


def test_a_reference_that_leads_nowhere_orders_nothing(client: ApiServer, there: Served) -> None:
    lost = section(environment={"KEY": "env:NOBODY_HAS_SET_THIS"})
    made = KubernetesAllocator(client, lost, LABEL, token=lambda: "T")
    with pytest.raises(BackendError, match="NOBODY_HAS_SET_THIS"):
        made.submit(order())
    assert there.asked == []


def test_the_objects_of_an_order_need_a_right_each(
    allocator: KubernetesAllocator, there: Served
) -> None:
    there.denied.add(("create", "jobs"))
    with pytest.raises(PermanentBackendError, match="jobs is forbidden"):
        allocator.submit(order())
    with pytest.raises(Refusal):
        there.objects.get("jobs", "trials", NAME)
