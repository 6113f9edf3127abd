"""What an AdaptDLJob and its pods come to, on documents as its controller writes them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings

from dispatcher.platforms.adaptdl.jobs import ADAPTDL_JOB, STARTS_WITHIN_S
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.kubernetes.reading import DELETED, OVER_S, allocation_of
from tests.unit.platforms.adaptdl.test_bodies import CRD, job_of
from tests.unit.platforms.kubeflow.test_reading import gone
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


def job(phase: str = "", **status: Any) -> dict[str, Any]:
    made = job_of()
    made["metadata"] |= {"uid": "u", "creationTimestamp": ago(100)}
    if phase:
        made["status"] = {"phase": phase, **status}
    return made


def read(job: dict[str, Any], *pods: Any, **more: Any) -> Allocation:
    assert CRD.complaints(job) == []
    return allocation_of(ADAPTDL_JOB, "j", job, pods, TIMES, **more)


def going(phase: str, code: int) -> Any:
    """A pod that AdaptDL has asked to go."""
    made = pod(phase, node="n1", state=exits(code) if phase != "Running" else None)
    made["metadata"] |= {"deletionTimestamp": ago(-20), "deletionGracePeriodSeconds": 30}
    return made


LIVES = {
    "just made": ((job(),), WAITING, "AdaptDL has not taken it up yet"),
    "without room": ((job("Pending"),), WAITING, "AdaptDL has no room for it now"),
    "starting": ((job("Starting", group=0),), WAITING, "AdaptDL makes its pods"),
    "being prepared": (
        (job("Starting", group=0), pod("Pending", SCHEDULED, node="n1")), STARTING, "",
    ),
    "its claim is missing": (
        (job("Starting", group=0), pod("Pending", UNSCHEDULABLE)), WAITING,
        "Unschedulable: 0/3 nodes are available.",
    ),
    "running": ((job("Running", group=0), pod("Running", node="n1")), RUNNING, ""),
    "running in another group": (
        (job("Running", group=4), pod("Running", uid="q", node="n1")), RUNNING, "",
    ),
    "being stopped": ((job("Stopping", group=0), going("Running", 0)), RUNNING, ""),
    "its agent has left": ((job("Stopping", group=0), going("Failed", 143)), RUNNING, ""),
    "stopped": (
        (job("Stopping", group=0),), WAITING, "AdaptDL stops its pods, to start them anew",
    ),
    "evicted, and AdaptDL has not seen it": (
        (job("Running", group=0),), WAITING, "AdaptDL is to start its pods anew",
    ),
    "waiting for the next group": (
        (job("Pending", group=0),), WAITING, "AdaptDL has no room for it now",
    ),
    "a phase that nobody knows": ((job("Dreaming"), pod("Running")), UNKNOWN, "Dreaming"),
}  # fmt: skip


@pytest.mark.parametrize("documents, state, reason", LIVES.values(), ids=LIVES.keys())
@pytest.mark.parametrize("first", [(), ("p",)], ids=["new", "known"])
def test_how_it_stands(
    documents: Any, state: AllocationState, reason: str, first: tuple[str, ...]
) -> None:
    """Other pods than the first ones are no second start. Mutation: a rescale is an end."""
    allocation = read(*documents, first=first)
    assert (allocation.state, allocation.reason, allocation.gone) == (state, reason, None)


def test_how_long_it_waits_for_its_next_place_is_not_known() -> None:
    """Mutation: a job that has run for a day has waited for a day, and its limit is over."""
    assert read(job("Pending")).waiting_s == 100.0
    assert read(job("Pending", group=0)).waiting_s == 0.0


ENDS = {
    "succeeded": ((job("Succeeded", group=2), pod("Succeeded")), Gone.FINISHED, ""),
    "exit code": (
        (
            job("Failed", reason="PodFailure", message="j-0-0 Failed"),
            pod("Failed", state=exits(3, message="Traceback\nValueError: no\n")),
        ),
        Gone.FAILED, "exit code 3: ValueError: no",
    ),
    "no pod": (
        (job("Failed", reason="PodCreationError", message="quota"),), Gone.FAILED,
        "PodCreationError: quota",
    ),
    "out of memory": (
        (job("Failed", reason="PodFailure"), pod("Failed", state=exits(137, "OOMKilled"))),
        Gone.OUT_OF_MEMORY, "OOMKilled",
    ),
    "one that is not to be moved, and was": (
        (job("Failed", reason="PodFailure"), gone(exits(143), asked_s=9, ended_s=5)),
        Gone.EVICTED, DELETED,
    ),
    "at its wall time, of which AdaptDL makes nothing": (
        (
            job("Running", group=0),
            pod("Failed", reason="DeadlineExceeded", message="was longer", state=exits(143)),
        ),
        Gone.WALL_TIME, "DeadlineExceeded: was longer",
    ),
}  # fmt: skip


@pytest.mark.parametrize("documents, cause, reason", ENDS.values(), ids=ENDS.keys())
def test_how_it_ended(documents: Any, cause: Gone, reason: str) -> None:
    allocation = read(*documents)
    assert (allocation.state, allocation.gone) == (ENDED, cause)
    assert reason in allocation.reason


@pytest.mark.parametrize("code, cause", [(143, Gone.FAILED), (0, Gone.FINISHED)])
def test_a_pod_that_has_ended_and_of_which_nothing_comes(code: int, cause: Gone) -> None:
    """AdaptDL takes SIGTERM for its own. Mutation: the job runs for ever without an agent."""

    def left(seconds: float) -> Allocation:
        state = exits(code)
        state["terminated"]["finishedAt"] = ago(seconds)
        phase = "Failed" if code else "Succeeded"
        return read(job("Running", group=0), pod(phase, node="n1", state=state))

    assert left(OVER_S - 5).state is RUNNING
    assert (left(OVER_S + 5).state, left(OVER_S + 5).gone) == (ENDED, cause)


def test_a_pod_that_does_not_begin_is_no_place() -> None:
    """It has its node, so that it waits for a volume that nobody makes. Mutation: it stands in
    Starting for ever, and its room is nobody's."""

    def waits(seconds: float) -> Allocation:
        made = pod("Pending", UNSCHEDULABLE)
        made["metadata"]["creationTimestamp"] = ago(seconds)
        return read(job("Starting", group=0), made)

    assert waits(STARTS_WITHIN_S - 5).state is WAITING
    late = waits(STARTS_WITHIN_S + 5)
    assert (late.state, late.gone) == (ENDED, Gone.NEVER)
    assert late.reason == (
        "its pod has its node, and has not begun within 900 s: "
        "Unschedulable: 0/3 nodes are available."
    )


def test_the_pod_of_rank_0_is_the_first() -> None:
    """For a shell beside a trial."""
    pods = [
        {"metadata": {"name": name, "annotations": {"adaptdl/rank": rank}}}
        for name, rank in (("c", "10"), ("b", "2"), ("a", "0"))
    ]
    ordered = sorted([*pods, {"metadata": {"name": "odd"}}], key=ADAPTDL_JOB.rank_of)
    assert [each["metadata"]["name"] for each in ordered] == ["a", "odd", "b", "c"]


@settings(max_examples=200, deadline=None)
@given(documents, documents)
def test_no_document_is_too_strange(job: Any, pod: Any) -> None:
    assert ADAPTDL_JOB.first_pods(job) >= 0
    assert isinstance(allocation_of(ADAPTDL_JOB, "j", job, [pod], TIMES), Allocation)
