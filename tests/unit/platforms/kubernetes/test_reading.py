"""What a Job and its pods come to, on documents of several versions and on broken ones."""

from __future__ import annotations

import datetime
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.http_services.server_clock import ServerClock
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.kubernetes.jobs import JOB
from dispatcher.platforms.kubernetes.reading import PULL_LIMIT_S, SECOND, allocation_of
from tests.support.kubernetes.contract import complaints

NOW = datetime.datetime(2026, 11, 23, 9, 0, tzinfo=datetime.UTC).timestamp()
TIMES = ServerClock(clock=lambda: 0.0, wall=lambda: NOW)
WAITING, STARTING, RUNNING, ENDED, UNKNOWN = AllocationState


def ago(seconds: float) -> str:
    moment = datetime.datetime.fromtimestamp(NOW - seconds, datetime.UTC)
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def condition(type_: str, reason: str = "", message: str = "", status: str = "True") -> Any:
    return {"type": type_, "status": status, "reason": reason, "message": message}


def job(*conditions: Any, **spec: Any) -> dict[str, Any]:
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "agent"}]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "j", "uid": "u", "creationTimestamp": ago(100)},
        "spec": {"backoffLimit": 0, "template": template, **spec},
        "status": {"conditions": list(conditions)} if conditions else {},
    }


def pod(
    phase: str = "Pending", *conditions: Any, uid: str = "p", node: str = "", **more: Any
) -> dict[str, Any]:
    state, reason = more.pop("state", None), more.pop("reason", None)
    status: dict[str, Any] = {"phase": phase, "startTime": ago(50)}
    status |= {"conditions": list(conditions)} if conditions else {}
    status |= {"reason": reason} if reason else {}
    status |= {"message": more.pop("message")} if "message" in more else {}
    if state is not None:
        container = {"name": "agent", "ready": False, "restartCount": 0, "image": "", "imageID": ""}
        status["containerStatuses"] = [{**container, "state": state}]
    spec = {"containers": [{"name": "agent"}], **({"nodeName": node} if node else {}), **more}
    about = {"name": f"j-{uid}", "uid": uid}
    return {
        "apiVersion": "v1", "kind": "Pod", "metadata": about, "spec": spec, "status": status,
    }  # fmt: skip


def read(job: Any, *pods: Any, **more: Any) -> Allocation:
    for kind, each in [("Job", job), *(("Pod", each) for each in pods)]:
        assert each is None or not complaints(kind, each)
    return allocation_of(JOB, "j", job, pods, TIMES, **more)


FAILED = condition("Failed", "BackoffLimitExceeded", "Job has reached the specified backoff limit")
UNSCHEDULABLE = condition("PodScheduled", "Unschedulable", "0/3 nodes are available.", "False")
SCHEDULED = condition("PodScheduled")


def waits(reason: str, message: str = "") -> dict[str, Any]:
    return {"waiting": {"reason": reason, "message": message}}


def exits(code: int, reason: str = "Error", message: str = "") -> dict[str, Any]:
    return {"terminated": {"exitCode": code, "reason": reason, "message": message}}


LIVES = {
    "just made": ((job(),), WAITING, ""),
    "suspended by its queue": ((job(suspend=True),), WAITING, "its queue has not admitted it yet"),
    "suspended, and says why": (
        (job(condition("Suspended", "JobSuspended", "Job suspended"), suspend=True),),
        WAITING,
        "Job suspended",
    ),
    "not scheduled yet": ((job(), pod()), WAITING, ""),
    "unschedulable": (
        (job(), pod("Pending", UNSCHEDULABLE)),
        WAITING,
        "Unschedulable: 0/3 nodes are available.",
    ),
    "scheduled": ((job(), pod("Pending", SCHEDULED, node="n1")), STARTING, ""),
    "being prepared": (
        (job(), pod("Pending", SCHEDULED, node="n1", state=waits("ContainerCreating"))),
        STARTING,
        "",
    ),
    "image cannot be pulled": (
        (job(), pod("Pending", SCHEDULED, node="n1", state=waits("ErrImagePull", "not  found"))),
        WAITING,
        "ErrImagePull: not found",
    ),
    "a secret is missing": (
        (job(), pod("Pending", SCHEDULED, node="n1", state=waits("CreateContainerConfigError"))),
        WAITING,
        "CreateContainerConfigError",
    ),
    "running": ((job(), pod("Running", SCHEDULED, node="n1")), RUNNING, ""),
    "its pod has ended, the Job not yet": (
        (job(), pod("Failed", SCHEDULED, node="n1", state=exits(1))),
        RUNNING,
        "",
    ),
    "a phase that nobody knows": ((job(), pod("Unknown", node="n1")), UNKNOWN, "Unknown"),
    "conditions that do not hold": (
        (job(condition("Failed", status="False")), pod("Running", node="n1")),
        RUNNING,
        "",
    ),
    "one of two pods waits": (
        (job(), pod("Running", node="n1"), pod("Pending", UNSCHEDULABLE, uid="q")),
        WAITING,
        "Unschedulable: 0/3 nodes are available.",
    ),
    "its Job was deleted, and its pod left": ((None, pod("Running", node="n1")), RUNNING, ""),
}


@pytest.mark.parametrize("documents, state, reason", LIVES.values(), ids=LIVES.keys())
def test_how_it_stands(documents: Any, state: AllocationState, reason: str) -> None:
    allocation = read(*documents)
    assert (allocation.state, allocation.reason) == (state, reason)
    assert allocation.gone is None


ENDS = {
    "complete": ((job(condition("Complete")), pod("Succeeded")), Gone.FINISHED, ""),
    "exit code": (
        (job(FAILED), pod("Failed", state=exits(3, message="Traceback\nValueError: no\n"))),
        Gone.FAILED,
        "exit code 3: ValueError: no",
    ),
    "exit code alone": ((job(FAILED), pod("Failed", state=exits(137))), Gone.FAILED, "code 137"),
    "no pod any more": ((job(FAILED),), Gone.FAILED, "BackoffLimitExceeded: Job has reached"),
    "out of memory": (
        (job(FAILED), pod("Failed", state=exits(137, "OOMKilled"))),
        Gone.OUT_OF_MEMORY,
        "OOMKilled",
    ),
    "wall time of the pod": (
        (job(FAILED), pod("Failed", reason="DeadlineExceeded", message="was active longer")),
        Gone.WALL_TIME,
        "DeadlineExceeded: was active longer",
    ),
    "wall time of the Job": (
        (job(condition("Failed", "DeadlineExceeded", "longer")),),
        Gone.WALL_TIME,
        "DeadlineExceeded: longer",
    ),
    "evicted by its kubelet (1.20)": (
        (job(FAILED), pod("Failed", reason="Evicted", message="The node was low on resource")),
        Gone.EVICTED,
        "Evicted: The node was low on resource",
    ),
    "evicted by its kubelet (1.26)": (
        (
            job(condition("Failed", "PodFailurePolicy", "matching FailJob rule")),
            pod("Failed", condition("DisruptionTarget", "TerminationByKubelet", "low"),
                state=exits(137)),
        ),
        Gone.EVICTED,
        "TerminationByKubelet: low",
    ),
    "drained": (
        (job(FAILED), pod("Failed", condition("DisruptionTarget", "EvictionByEvictionAPI"))),
        Gone.EVICTED,
        "EvictionByEvictionAPI",
    ),
    "preempted": (
        (
            job(FAILED),
            pod("Failed", condition("DisruptionTarget", "PreemptionByScheduler", "by a pod"),
                state=exits(143)),
        ),
        Gone.PREEMPTED,
        "PreemptionByScheduler: by a pod",
    ),
    "node lost": (
        (job(FAILED), pod("Failed", condition("DisruptionTarget", "DeletionByTaintManager"))),
        Gone.NODE_LOST,
        "DeletionByTaintManager",
    ),
    "node shut down": ((job(FAILED), pod("Failed", reason="NodeShutdown")), Gone.NODE_LOST, ""),
    "refused by its node": ((job(FAILED), pod("Failed", reason="OutOfcpu")), Gone.EVICTED, "OutOf"),
    "disturbed and out of memory": (
        (
            job(FAILED),
            pod("Failed", condition("DisruptionTarget", "PreemptionByScheduler"),
                state=exits(137, "OOMKilled")),
        ),
        Gone.PREEMPTED,
        "",
    ),
    "an image that has no name": (
        (job(), pod("Pending", SCHEDULED, state=waits("InvalidImageName", "bad"))),
        Gone.NEVER,
        "InvalidImageName: bad",
    ),
}  # fmt: skip


@pytest.mark.parametrize("documents, gone, reason", ENDS.values(), ids=ENDS.keys())
def test_how_it_ended(documents: Any, gone: Gone, reason: str) -> None:
    allocation = read(*documents)
    assert (allocation.state, allocation.gone) == (ENDED, gone)
    assert reason in allocation.reason


def test_an_image_is_given_time_by_the_servers_clock() -> None:
    waiting = pod("Pending", SCHEDULED, node="n1", state=waits("ImagePullBackOff", "no such tag"))
    assert read(job(), waiting).state is WAITING
    waiting["status"]["startTime"] = ago(PULL_LIMIT_S + 1)
    late = read(job(), waiting)
    assert (late.state, late.gone, late.reason) == (
        ENDED, Gone.NEVER, "ImagePullBackOff: no such tag",
    )  # fmt: skip


def test_a_second_pod_is_a_place_that_was_taken_back() -> None:
    """Waiting after running: what the pool calls so."""
    assert read(job(), pod("Running", uid="p"), first=["p"]).state is RUNNING
    second = read(job(), pod("Running", uid="q"), first=["p"])
    assert (second.state, second.reason) == (WAITING, SECOND)
    both = read(job(), pod("Running", uid="p"), pod("Pending", uid="q"), first=["p"])
    assert (both.state, both.reason) == (WAITING, SECOND)
    none = read(job(), first=["p"])  # drained under 1.20: the next one is not there yet
    assert (none.state, none.reason) == (WAITING, SECOND)
    taken = read(job(condition("Suspended", message="Preempted"), suspend=True), first=["p"])
    assert (taken.state, taken.reason) == (WAITING, "Preempted"), "by Kueue, and none was started"
    assert read(job(condition("Complete")), first=["p"]).state is ENDED


COMPLETE = condition("Complete")


def test_an_agent_that_leaves_with_its_place_has_not_left_by_itself() -> None:
    """It ends with success when it is asked to in time. Mutation: that is taken for its own wish,
    so that its machine is blamed. Newer servers mark the pod, older ones only delete it."""
    marked = pod("Succeeded", condition("DisruptionTarget", "EvictionByEvictionAPI"))
    going = pod("Succeeded")
    going["metadata"]["deletionTimestamp"] = ago(1)
    for each in (marked, going):
        assert read(job(COMPLETE), each).gone is Gone.EVICTED
        assert read(job(COMPLETE), left=[each]).gone is Gone.EVICTED
    ours = job(COMPLETE)
    ours["metadata"]["deletionTimestamp"] = ago(1)
    assert read(ours, going).gone is Gone.FINISHED, "its pods go with it"
    assert read(job(COMPLETE), pod("Succeeded")).gone is Gone.FINISHED


def test_a_job_that_is_to_fail_while_its_node_is_silent() -> None:
    """1.31 on: ``FailureTarget`` comes at once, ``Failed`` when the pod is gone."""
    lost = pod("Running", condition("DisruptionTarget", "DeletionByTaintManager"), node="n1")
    allocation = read(job(condition("FailureTarget", "PodFailurePolicy")), lost, first=["p"])
    assert (allocation.state, allocation.reason) == (WAITING, "DeletionByTaintManager")


def test_events_are_the_reason_where_there_is_no_other_one() -> None:
    events = {"j": "FailedCreate: exceeded quota", "j-p": "FailedMount: no such claim"}
    assert read(job(), events=events).reason == "FailedCreate: exceeded quota"
    assert read(job(), pod("Pending", SCHEDULED), events=events).reason.startswith("FailedMount")
    assert read(job(), pod("Pending", UNSCHEDULABLE), events=events).reason.startswith("Unsched")


def test_durations_are_by_the_servers_clock() -> None:
    assert read(job()).waiting_s == 100.0
    running = pod("Running", node="n1", activeDeadlineSeconds=120)
    shorter = pod("Running", uid="q", node="n2", activeDeadlineSeconds=90)
    assert read(job(), running).ends_in_s == 70.0
    both = read(job(), running, shorter)
    assert (both.ends_in_s, both.place) == (40.0, "n1, n2")
    assert read(job(), pod("Running")).ends_in_s is None


anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3)
    | st.dictionaries(
        st.sampled_from(
            ["metadata", "status", "spec", "conditions", "type", "reason", "state", "waiting",
             "phase", "containerStatuses", "startTime", "uid", "terminated", "message"]
        ),
        inner,
        max_size=4,
    ),
    max_leaves=25,
)  # fmt: skip
documents = st.dictionaries(st.sampled_from(["metadata", "spec", "status"]), anything)


@settings(max_examples=300, deadline=None)
@given(documents, st.lists(documents, max_size=3), st.lists(st.text(max_size=3), max_size=2))
def test_no_document_is_too_strange(job: Any, pods: Any, first: Any) -> None:
    assert isinstance(allocation_of(JOB, "j", job, pods, TIMES, first=first), Allocation)
