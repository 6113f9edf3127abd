"""What a job of the operator and its pods come to, on documents as it writes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.kubeflow.kinds import KINDS
from dispatcher.platforms.kubernetes.reading import DELETED, SECOND, allocation_of
from tests.unit.platforms.kubeflow.test_bodies import CRDS, job_of
from tests.unit.platforms.kubernetes.test_reading import (
    SCHEDULED,
    TIMES,
    UNSCHEDULABLE,
    ago,
    documents,
    exits,
    pod,
)

WAITING, STARTING, RUNNING, ENDED, UNKNOWN = AllocationState


def condition(type_: str, message: str = "", status: str = "True") -> Any:
    return {
        "type": type_,
        "status": status,
        "reason": f"PyTorchJob{type_}",
        "message": message,
        "lastUpdateTime": ago(10),
        "lastTransitionTime": ago(10),
    }


CREATED = condition("Created", "PyTorchJob j is created.")
RUNS = condition("Running", "PyTorchJob j is running.")
RAN = condition("Running", "PyTorchJob j is running.", "False")
DONE = condition("Succeeded", "PyTorchJob j is successfully completed.")
FAILED = condition(
    "Failed", "PyTorchJob j has failed because it has reached the specified backoff limit"
)
AGAIN = condition("Restarting", "PyTorchJob j is restarting because 1 Master replica(s) failed.")


def job(*conditions: Any, suspend: bool = False, **about: Any) -> dict[str, Any]:
    made = job_of()
    made["metadata"] |= {"uid": "u", "creationTimestamp": ago(100), **about}
    made["spec"]["runPolicy"]["suspend"] = suspend
    made["status"] = {"conditions": list(conditions)} if conditions else {}
    return made


def read(job: dict[str, Any], *pods: Any, **more: Any) -> Allocation:
    assert CRDS["PyTorchJob"].complaints(job) == []
    return allocation_of(KINDS["PyTorchJob"], "j", job, pods, TIMES, **more)


LIVES = {
    "just made": ((job(),), WAITING, ""),
    "without a pod": ((job(CREATED),), WAITING, ""),
    "suspended, and nobody says so": (
        (job(suspend=True),), WAITING, "its queue has not admitted it yet",
    ),
    "suspended": (
        (job(CREATED, condition("Suspended", "PyTorchJob j is suspended."), suspend=True),),
        WAITING,
        "PyTorchJob j is suspended.",
    ),
    "admitted": (
        (job(condition("Suspended", status="False"), CREATED), pod("Pending", UNSCHEDULABLE)),
        WAITING,
        "Unschedulable: 0/3 nodes are available.",
    ),
    "being prepared": ((job(CREATED), pod("Pending", SCHEDULED, node="n1")), STARTING, ""),
    "running": ((job(CREATED, RUNS), pod("Running", SCHEDULED, node="n1")), RUNNING, ""),
    "its pod has ended, the job not yet": (
        (job(CREATED, RUNS), pod("Failed", SCHEDULED, node="n1", state=exits(1))), RUNNING, "",
    ),
    "a worker waits": (
        (job(CREATED, RUNS), pod("Running", node="n1"), pod("Pending", UNSCHEDULABLE, uid="q")),
        WAITING,
        "Unschedulable: 0/3 nodes are available.",
    ),
    "a word that nobody knows": ((job(condition("Dreaming")), pod("Running")), UNKNOWN, "Dreaming"),
    "a word that nobody knows beside others": (
        (job(condition("Dreaming"), CREATED), pod("Running", node="n1")), RUNNING, "",
    ),
    "restarting, whatever we have told it": (
        (job(CREATED, AGAIN), pod("Running")),
        WAITING,
        "PyTorchJobRestarting: PyTorchJob j is restarting because 1 Master replica(s) failed.",
    ),
}  # fmt: skip


@pytest.mark.parametrize("documents, state, reason", LIVES.values(), ids=LIVES.keys())
def test_how_it_stands(documents: Any, state: AllocationState, reason: str) -> None:
    allocation = read(*documents)
    assert (allocation.state, allocation.reason, allocation.gone) == (state, reason, None)


LAST = exits(3, message="Traceback\nValueError: no\n")

ENDS = {
    "done": ((job(CREATED, RAN, DONE), pod("Succeeded")), Gone.FINISHED, ""),
    "done, and its order says nothing": ((job(DONE, RAN, CREATED),), Gone.FINISHED, ""),
    "exit code": ((job(FAILED, CREATED, RAN), pod("Failed", state=LAST)), Gone.FAILED,
                  "exit code 3: ValueError: no"),
    "all pods have gone with it": (
        (job(FAILED, CREATED),), Gone.FAILED, "PyTorchJobFailed: PyTorchJob j has failed because",
    ),
    "out of memory": (
        (job(FAILED), pod("Failed", state=exits(137, "OOMKilled"))), Gone.OUT_OF_MEMORY, "OOM",
    ),
    "wall time": (
        (job(FAILED), pod("Failed", reason="DeadlineExceeded", message="was active longer")),
        Gone.WALL_TIME,
        "DeadlineExceeded: was active longer",
    ),
}  # fmt: skip


@pytest.mark.parametrize("documents, gone, reason", ENDS.values(), ids=ENDS.keys())
def test_how_it_ended(documents: Any, gone: Gone, reason: str) -> None:
    allocation = read(*documents)
    assert (allocation.state, allocation.gone) == (ENDED, gone)
    assert reason in allocation.reason


def gone(state: Any, *, asked_s: float, ended_s: float, grace_s: int = 0) -> Any:
    """A pod that has gone: how long ago that was asked for, and how long ago it ended."""
    state["terminated"]["finishedAt"] = ago(ended_s)
    made = pod("Failed" if state["terminated"]["exitCode"] else "Succeeded", state=state)
    made["metadata"]["deletionTimestamp"] = ago(asked_s - grace_s)
    made["metadata"]["deletionGracePeriodSeconds"] = grace_s
    return made


@pytest.mark.parametrize("is_there", [True, False])
def test_pods_that_the_operator_removes_are_not_evicted(is_there: bool) -> None:
    """It removes them all when one has failed, and says it then. Mutations: the worker whose trial
    failed is not blamed, and asked for again for ever; the job between the two counts as one that
    was started anew."""
    failed = gone(exits(3), asked_s=5, ended_s=8)
    beside = gone(exits(143), asked_s=5, ended_s=1, grace_s=30)
    pods = [failed, beside]
    kept: Any = {"left": []} if is_there else {"left": pods}
    ended = read(job(CREATED, FAILED), *(pods if is_there else []), **kept)
    assert (ended.gone, ended.reason) == (Gone.FAILED, "exit code 3")
    between = read(job(CREATED, RUNS), first=["p"], left=pods)
    assert between.state is UNKNOWN


def test_a_pod_that_somebody_else_has_deleted_is_a_place_that_was_taken_back() -> None:
    """Its agent leaves with success or by the signal, after it was asked to. The operator makes a
    second pod, or calls the job done. Mutation: the worker is blamed."""
    for code in (0, 143):
        taken = gone(exits(code), asked_s=10, ended_s=6, grace_s=30)
        assert read(job(CREATED, DONE), left=[taken]).gone is Gone.EVICTED
        assert read(job(CREATED, FAILED), taken).reason == DELETED
        second = read(job(CREATED, RUNS), pod("Pending", uid="q"), first=["p"], left=[taken])
        none = read(job(CREATED, RUNS), first=["p"], left=[taken])
        assert [(x.state, x.reason) for x in (second, none)] == [(WAITING, SECOND)] * 2


def test_what_came_first_counts_where_there_are_several_pods() -> None:
    """A drained worker takes the others along, and a failed one has them removed. Some objects of
    pods that had ended say nothing of their removal."""
    drained = gone(exits(143), asked_s=20, ended_s=18, grace_s=30)
    leaves = gone(exits(1), asked_s=3, ended_s=5)
    assert read(job(CREATED, FAILED), drained, leaves).gone is Gone.EVICTED
    silent = gone(exits(1), asked_s=3, ended_s=25)
    del silent["metadata"]["deletionTimestamp"]
    assert read(job(CREATED, FAILED), left=[drained, silent]).gone is Gone.FAILED


@pytest.mark.parametrize("code, cause", [(1, Gone.FAILED), (0, Gone.EVICTED), (143, Gone.EVICTED)])
def test_within_one_second_the_exit_code_tells(code: int, cause: Gone) -> None:
    both = gone(exits(code), asked_s=5, ended_s=5)
    assert read(job(CREATED, FAILED), left=[both]).gone is cause


def test_a_queue_that_takes_it_back_is_the_reason() -> None:
    """Kueue suspends what it preempts. Mutations: that another pod was started; one whose agent
    left by itself in that second waits for a word that never comes."""
    suspended = condition("Suspended", "PyTorchJob j is suspended.")
    for code in (143, 1):
        left = [gone(exits(code), asked_s=5, ended_s=5)]
        taken = read(job(CREATED, suspended, suspend=True), first=["p"], left=left)
        assert (taken.state, taken.reason) == (WAITING, "PyTorchJob j is suspended.")
    silent = read(job(CREATED, suspend=True), first=["p"])
    assert silent.reason == "its queue has taken it back"


def test_one_that_is_being_deleted() -> None:
    deleted = job(CREATED, RUNS, deletionTimestamp=ago(1))
    assert read(deleted, pod("Running"), first=["p"]).state is RUNNING
    alone = read(deleted, first=["p"])
    assert (alone.state, alone.reason) == (RUNNING, "its PyTorchJob is being deleted")


def test_the_pod_of_rank_0_is_the_first() -> None:
    """For a shell beside a trial. Mutation: by names, where a worker stands before the chief."""
    names = ["ps-0", "worker-10", "worker-2", "chief-0", "odd-0", "worker-0"]
    pods = []
    for name in names:
        role, index = name.split("-")
        label = "training.kubeflow.org/replica"
        labels = {f"{label}-type": role, f"{label}-index": index}
        pods.append({"metadata": {"name": name, "labels": labels}})
    pods.append({"metadata": {"name": "without"}})
    ordered = [each["metadata"]["name"] for each in sorted(pods, key=KINDS["TFJob"].rank_of)]
    assert ordered == ["chief-0", "worker-0", "worker-2", "worker-10", "ps-0", "odd-0", "without"]


@settings(max_examples=200, deadline=None)
@given(documents)
def test_no_document_is_too_strange(job: Any) -> None:
    for kind in KINDS.values():
        assert kind.first_pods(job) >= 0
        assert isinstance(allocation_of(kind, "j", job, (), TIMES), Allocation)
