"""What a TrainJob and its pods come to, on documents that its definition takes, and on others."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.platforms.allocations.allocation import Allocation, Gone
from dispatcher.platforms.kubernetes.bodies import object_of
from dispatcher.platforms.kubernetes.reading import AGAIN, SECOND, allocation_of
from dispatcher.platforms.trainer.kind import TRAIN_JOB, TrainJobKind
from tests.support.kubernetes.contract import complaints
from tests.support.kubernetes.train_jobs import train_jobs
from tests.unit.platforms.kubernetes import test_reading as of_jobs
from tests.unit.platforms.kubernetes.test_bodies import order
from tests.unit.platforms.kubernetes.test_reading import (
    ENDED,
    RUNNING,
    SCHEDULED,
    STARTING,
    TIMES,
    WAITING,
    ago,
    exits,
)
from tests.unit.platforms.trainer.test_bodies import NEW, OLD, fields_of, job_of, section

CRD = train_jobs()


def condition(type_: str, reason: str, message: str, status: str = "True", s: float = 50) -> Any:
    since = ago(s)
    about = {"type": type_, "status": status, "reason": reason, "message": message}
    return {**about, "lastTransitionTime": since}


def job(*conditions: Any, status: Any = None, nodes: int = 1, **keys: Any) -> dict[str, Any]:
    made = job_of(nodes=nodes, **keys)
    made["metadata"] |= {"uid": "u", "creationTimestamp": ago(100)}
    given = {**({"conditions": list(conditions)} if conditions else {}), **(status or {})}
    return {**made, **({"status": given} if given else {})}


def counted(**active: int) -> dict[str, Any]:
    """The counters of the jobs of a runtime."""
    rest = {"ready": 0, "succeeded": 0, "failed": 0, "suspended": 0}
    return {
        "jobsStatus": [
            {"name": k.replace("_", "-"), "active": n, **rest} for k, n in active.items()
        ]
    }


def pod(*given: Any, **more: Any) -> dict[str, Any]:
    last = more.pop("last", None)
    made = of_jobs.pod(*given, **more)
    for each in made["status"].get("containerStatuses", []):
        each["name"] = "node"
        if last is not None:
            each["lastState"] = last
    return made


def read(document: Any, *pods: Any, **more: Any) -> Allocation:
    assert document is None or not CRD.complaints(document)
    assert not [x for each in pods for x in complaints("Pod", each)]
    return allocation_of(TRAIN_JOB, "j", document, pods, TIMES, **more)


SUSPENDED = condition("Suspended", "Suspended", "TrainJob is suspended")
RESUMED = condition("Suspended", "Resumed", "TrainJob is resumed", "False", s=30)
COMPLETE = condition("Complete", "AllJobsCompleted", "jobset completed successfully")
FAILED = condition("Failed", "FailedJobs", "jobset failed due to one or more job failures")
LATE = condition("Failed", "DeadlineExceeded", "Trainjob exceeded its active deadline")
RAN = pod("Running", SCHEDULED, node="n1")

LIVES = {
    "just made": ((job(),), WAITING, ""),
    "in a queue": ((job(SUSPENDED, queue="team"),), WAITING, "its queue has not admitted it yet"),
    "an initializer runs first": (
        (job(status=counted(dataset_initializer=1, node=0)),),
        WAITING,
        "of its runtime dataset-initializer runs first",
    ),
    "its own job has no pod yet": ((job(status=counted(initializer=1, node=1)),), WAITING, ""),
    "unschedulable": (
        (job(status=counted(node=1)), pod("Pending", of_jobs.UNSCHEDULABLE)),
        WAITING,
        "Unschedulable: 0/3 nodes are available.",
    ),
    "being prepared": ((job(), pod("Pending", SCHEDULED, node="n1")), STARTING, ""),
    "running": ((job(RESUMED, status=counted(node=1)), RAN), RUNNING, ""),
    "one pod of two": ((job(nodes=2), RAN, pod("Pending", uid="q")), WAITING, ""),
}

ENDS = {
    "its agent left": ((job(COMPLETE), pod("Succeeded")), Gone.FINISHED, ""),
    "its agent failed": (
        (job(FAILED), pod("Failed", state=exits(1, message="\nTraceback\nno such layer\n"))),
        Gone.FAILED,
        "exit code 1: no such layer",
    ),
    "it failed, and its pods have gone": ((job(FAILED),), Gone.FAILED, "FailedJobs: jobset failed"),
    "out of memory": (
        (job(FAILED), pod("Failed", state=exits(137, "OOMKilled"))), Gone.OUT_OF_MEMORY, "OOM",
    ),
    "drained, by a runtime that starts nothing again": (
        (
            job(FAILED),
            pod("Failed", of_jobs.condition("DisruptionTarget", "EvictionByEvictionAPI")),
        ),
        Gone.EVICTED,
        "EvictionByEvictionAPI",
    ),
    "at its limit": ((job(LATE, wallTime="1m"),), Gone.WALL_TIME, "exceeded its active deadline"),
    "a runtime that its controller does not know": (
        (job(condition("Failed", "TrainingRuntimeNotSupported", "unsupported runtime: x")),),
        Gone.NEVER,
        "unsupported runtime: x",
    ),
}  # fmt: skip


@pytest.mark.parametrize("documents, state, reason", LIVES.values(), ids=LIVES.keys())
def test_how_it_stands(documents: Any, state: Any, reason: str) -> None:
    allocation = read(*documents)
    assert (allocation.state, allocation.reason) == (state, reason)


@pytest.mark.parametrize("documents, gone, reason", ENDS.values(), ids=ENDS.keys())
def test_how_it_ended(documents: Any, gone: Gone, reason: str) -> None:
    allocation = read(*documents)
    assert (allocation.state, allocation.gone) == (ENDED, gone)
    assert reason in allocation.reason


def test_pods_that_are_ended_at_its_limit_were_not_taken_away() -> None:
    """Mutation: its own controller's deletion is an eviction."""
    late = pod("Failed", state=exits(143))
    late["metadata"] |= {"deletionTimestamp": ago(5), "deletionGracePeriodSeconds": 30}
    assert read(job(LATE, wallTime="1m"), late).gone is Gone.WALL_TIME
    assert read(job(FAILED, wallTime="1m"), late).gone is Gone.EVICTED


def test_its_end_is_known_before_it_comes() -> None:
    """Its pods say nothing of it. From when it was made, or admitted; mutations: either."""
    assert read(job(wallTime="10m"), RAN).ends_in_s == 500
    assert read(job(RESUMED, wallTime="10m"), RAN).ends_in_s == 570
    assert read(job(SUSPENDED, wallTime="10m"), RAN).ends_in_s == 500
    assert read(job(), RAN).ends_in_s is None


def test_other_pods_than_the_first_are_a_second_start() -> None:
    """So is one that has failed, and begins anew since its JobSet was removed."""
    other = pod("Running", SCHEDULED, node="n1", uid="q")
    for documents in ([job(), RAN, other], [job(), other], [job()]):
        allocation = read(*documents, first=["p"])
        assert (allocation.state, allocation.reason) == (WAITING, SECOND)
    taken = read(job(SUSPENDED, queue="team"), first=["p"])
    assert (taken.state, taken.reason) == (WAITING, "its queue has taken it back")


@pytest.mark.parametrize(
    "last, gone, reason",
    [
        (exits(1), Gone.FAILED, "exit code 1"),
        (exits(137, "OOMKilled"), Gone.OUT_OF_MEMORY, "OOMKilled"),
        (exits(255, "Unknown"), Gone.FAILED, "exit code 255"),
    ],
)
@pytest.mark.parametrize("state", [{"running": {}}, of_jobs.waits("CrashLoopBackOff")])
def test_a_container_that_its_node_starts_again_has_ended(
    state: Any, last: Any, gone: Gone, reason: str
) -> None:
    """Usual runtimes let nodes do so. Mutation: a place with which nothing is wrong, or that was
    taken back, whatever the program there does."""
    phase = pod("Running", SCHEDULED, node="n1", state=state, last=last)
    allocation = read(job(), phase, first=["p"])
    assert (allocation.state, allocation.gone) == (ENDED, gone)
    assert reason in allocation.reason
    assert AGAIN in allocation.reason
    for each in phase["status"]["containerStatuses"]:
        each["name"] = "istio-proxy"
    assert read(job(), phase, first=["p"]).state == RUNNING, "that of somebody else"


def test_one_that_is_being_deleted_goes_on_as_long_as_its_pods() -> None:
    leaving = job()
    leaving["metadata"]["deletionTimestamp"] = ago(1)
    assert read(leaving, RAN, first=["p"]).state == RUNNING
    assert "its TrainJob is being deleted" in read(leaving, first=["p"]).reason


def test_how_many_pods_it_has_at_first() -> None:
    assert [TRAIN_JOB.first_pods(job(nodes=n)) for n in (1, 4)] == [1, 4]
    assert TRAIN_JOB.first_pods({"spec": {"trainer": {"numNodes": "x"}}}) == 1


_anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: (
        st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["type", "status", "reason", "name", "active", "message"]),
            inner,
            max_size=3,
        )
    ),
    max_leaves=8,
)


@pytest.mark.parametrize("crd", [NEW, OLD], ids=["patches", "overrides"])
def test_a_head_that_has_ordered_nothing_knows_whose_job_is_ours(crd: Any) -> None:
    """Its predecessor has, of a runtime that calls our job otherwise. Mutation: the job is looked
    up by what the first order asks of the server."""
    fields = fields_of(crd)
    assert fields is not None
    before = TrainJobKind(replace(fields, job="workers"))
    made = object_of(before, order(), section(), "abc123-0a0b0c")
    made["metadata"] |= {"uid": "u", "creationTimestamp": ago(100)}
    for active, reason in (
        ({"workers": 1}, ""),
        ({"node": 1, "workers": 0}, "of its runtime node runs first"),
    ):
        document = {**made, "status": counted(**active)}
        assert not crd.complaints(document)
        assert allocation_of(TRAIN_JOB, "j", document, (), TIMES).reason == reason


@settings(max_examples=60, deadline=None)
@given(_anything, _anything, _anything)
def test_nothing_that_a_server_says_is_too_much(first: Any, second: Any, third: Any) -> None:
    document = {
        "metadata": {"name": "j", "labels": third, "creationTimestamp": first},
        "spec": {"suspend": second, "trainer": first, "activeDeadlineSeconds": third},
        "status": {"conditions": second, "jobsStatus": third},
    }
    allocation_of(TRAIN_JOB, "j", document, (), TIMES)
    TRAIN_JOB.first_pods(document)
