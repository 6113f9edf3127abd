"""What a Framework and its pods come to, on documents as its controller writes them."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.frameworkcontroller import completion as module
from dispatcher.platforms.frameworkcontroller.completion import completion_of
from dispatcher.platforms.frameworkcontroller.frameworks import FRAMEWORK
from dispatcher.platforms.kubernetes.reading import DELETED, SECOND, allocation_of
from tests.support.kubernetes.framework_controller import PHRASES, completion
from tests.unit.platforms.frameworkcontroller.test_bodies import CRD, framework_of
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


def framework(state: str = "", ended: Any = None, *tasks: Any, **about: Any) -> dict[str, Any]:
    """A Framework in a state; how its attempt ended, and its tasks."""
    made = framework_of()
    made["metadata"] |= {"uid": "u", "creationTimestamp": ago(100), **about}
    if state:
        attempt: dict[str, Any] = {"id": 0, "startTime": ago(90), "completionStatus": ended}
        roles = [{"name": "worker", "taskStatuses": [*tasks]}]
        attempt["taskRoleStatuses"] = roles
        made["status"] = {
            "state": state, "startTime": ago(90), "transitionTime": ago(10),
            "attemptStatus": attempt,
        }  # fmt: skip
    return made


def task(index: int, ended: Any) -> dict[str, Any]:
    return {
        "index": index,
        "state": "Completed",
        "attemptStatus": {"id": 0, "podName": f"x-worker-{index}", "completionStatus": ended},
    }


def container(code: int, **words: str) -> dict[str, Any]:
    return {"containers": [{"name": "agent", "code": code, **words}]}


def read(framework: dict[str, Any], *pods: Any, **more: Any) -> Allocation:
    assert CRD.complaints(framework) == []
    return allocation_of(FRAMEWORK, "j", framework, pods, TIMES, **more)


LIVES = {
    "not taken up": (("",), (), WAITING, "FrameworkController has not taken it up yet"),
    "without a pod": (
        ("AttemptCreationPending",), (), WAITING,
        "FrameworkController has made no pod of it yet: AttemptCreationPending",
    ),
    "unschedulable": (
        ("AttemptPreparing",), (pod("Pending", UNSCHEDULABLE),), WAITING,
        "Unschedulable: 0/3 nodes are available.",
    ),
    "being prepared": (
        ("AttemptPreparing",), (pod("Pending", SCHEDULED, node="n1"),), STARTING, "",
    ),
    "running": (("AttemptRunning",), (pod("Running", node="n1"),), RUNNING, ""),
    "one of two waits": (
        ("AttemptRunning",), (pod("Running", node="n1"), pod("Pending", UNSCHEDULABLE, uid="q")),
        WAITING, "Unschedulable: 0/3 nodes are available.",
    ),
    "its attempt is being ended": (("AttemptDeletionPending",), (pod("Failed"),), UNKNOWN, ""),
    "its pods are being deleted": (("AttemptDeleting",), (pod("Running"),), UNKNOWN, ""),
    "its attempt has ended": (("AttemptCompleted", completion(0)), (), UNKNOWN, ""),
}  # fmt: skip


@pytest.mark.parametrize("given, pods, state, reason", LIVES.values(), ids=LIVES.keys())
def test_how_it_stands(given: Any, pods: Any, state: AllocationState, reason: str) -> None:
    """The end of an attempt is none of the Framework, and what follows is not known. Mutation: an
    attempt that is over is an end, so that its worker is blamed or not before anybody knows why."""
    allocation = read(framework(*given), *pods)
    assert (allocation.state, allocation.reason, allocation.gone) == (state, reason, None)


def test_a_state_that_nobody_knows_is_no_failure() -> None:
    odd = framework("AttemptRunning")
    odd["status"]["state"] = "Dreaming"
    seen = allocation_of(FRAMEWORK, "j", odd, [pod("Running")], TIMES)
    assert (seen.state, seen.reason) == (UNKNOWN, "Dreaming")


OOM = container(137, reason="OOMKilled")
LAST = container(3, message="Traceback\nValueError: no\n")
LATE = {**container(143), "reason": "DeadlineExceeded"}

ENDS = {
    "succeeded": ((completion(0),), Gone.FINISHED, ""),
    "exit code": (
        (completion(3), task(0, completion(3, pod=LAST))), Gone.FAILED,
        "ContainerUnrecognizedFailed: exit code 3: ValueError: no",
    ),
    "exit code of the task that was the reason": (
        (
            completion(3, trigger={"taskRoleName": "worker", "taskIndex": 1, "message": ""}),
            task(0, completion(-220, pod=container(143))),
            task(1, completion(3, pod=LAST)),
        ),
        Gone.FAILED, "exit code 3: ValueError: no",
    ),
    "exit code where no task is named": (
        (completion(3), task(0, completion(-220)), task(1, completion(3, pod=LAST))),
        Gone.FAILED, "exit code 3: ValueError: no",
    ),
    "out of memory": (
        (completion(137), task(0, completion(137, pod=OOM))), Gone.OUT_OF_MEMORY, "OOM",
    ),
    "wall time": (
        (completion(143), task(0, completion(143, pod=LATE))),
        Gone.WALL_TIME, "exit code 143",
    ),
    "its pod was deleted": (
        (completion(-101, "Pod was deleted"),), Gone.EVICTED,
        "PodExternalDeleted (-101): Pod was deleted",
    ),
    "its ConfigMap was deleted": ((completion(-100),), Gone.CANCELLED, "ConfigMapExternalDeleted"),
    "somebody has stopped it": (
        (completion(-210, "User has requested to stop"),), Gone.CANCELLED,
        "StopFrameworkRequested (-210): User has requested to stop",
    ),
    "passing": ((completion(-111),), Gone.EVICTED, "PodLocalCacheCreationTimeout (-111)"),
    "passing, by its exit code": (
        (completion(200), task(0, completion(200, pod=container(200)))), Gone.EVICTED,
        "ContainerTransientFailed: exit code 200",
    ),
    "a conflict": ((completion(201),), Gone.EVICTED, "ContainerTransientConflictFailed"),
    "for good": (
        (completion(-200, "Failed to create Pod: forbidden"),), Gone.NEVER,
        "PodCreationPermanentError (-200): Failed to create Pod: forbidden",
    ),
    "for good, by its exit code": ((completion(210),), Gone.NEVER, "ContainerPermanentFailed"),
    "without a failed container": (
        (completion(-300),), Gone.FAILED, "PodFailedWithoutFailedContainer",
    ),
    "without a word": ((None,), Gone.FAILED, ""),
}  # fmt: skip


@pytest.mark.parametrize("ended, cause, reason", ENDS.values(), ids=ENDS.keys())
def test_how_it_ended(ended: Any, cause: Gone, reason: str) -> None:
    """By its codes, where its pods have gone. Mutation: what passes counts against the worker, and
    what does not is tried for ever."""
    allocation = read(framework("Completed", *ended))
    assert (allocation.state, allocation.gone) == (ENDED, cause)
    assert reason in allocation.reason


def test_each_code_of_the_controller_is_read() -> None:
    """As it publishes them. Mutation: one that is new is passed over."""
    causes = {code: completion_of({"completionStatus": completion(code)})[0] for code in PHRASES}
    assert causes.pop(0) is Gone.FINISHED
    retried = {code for code, cause in causes.items() if cause in (Gone.EVICTED, Gone.CANCELLED)}
    assert retried == {200, 201, -100, -101, -110, -111, -120, -210, -230}
    never = {code for code, cause in causes.items() if cause is Gone.NEVER}
    assert never == {210, -200, -220}
    assert set(causes) - retried - never == {-300, -310}


def test_what_its_pods_say_comes_first_where_they_are_there() -> None:
    """They have gone by then, as the controller deletes what has ended: that is no eviction."""
    failed = gone(exits(3, message="ValueError: no"), asked_s=4, ended_s=5)
    over = framework("Completed", completion(3))
    assert (read(over, left=[failed]).gone, read(over, left=[failed]).reason) == (
        Gone.FAILED, "exit code 3: ValueError: no",
    )  # fmt: skip
    taken = gone(exits(143), asked_s=40, ended_s=36, grace_s=30)
    evicted = read(framework("Completed", completion(-101)), left=[taken])
    assert (evicted.gone, evicted.reason) == (Gone.EVICTED, DELETED)
    passing = framework("Completed", completion(200))
    own = gone(exits(200), asked_s=4, ended_s=5)
    assert read(passing, left=[own]).gone is Gone.EVICTED, "its cluster's own rule for exit codes"
    between = read(framework("AttemptRunning"), first=["p"], left=[failed])
    assert between.state is UNKNOWN


def test_another_pod_is_a_place_that_was_taken_back() -> None:
    second = read(framework("AttemptRunning"), pod("Pending", uid="q"), first=["p"])
    assert (second.state, second.reason) == (WAITING, SECOND)


# -- statuses of large jobs ------------------------------------------------------------------------


def packed(content: bytes) -> str:
    return base64.b64encode(gzip.compress(content)).decode()


def large(text: str) -> dict[str, Any]:
    made = framework("Completed", completion(3))
    attempt = made["status"]["attemptStatus"]
    attempt["taskRoleStatuses"] = None
    attempt["taskRoleStatusesCompressed"] = text
    return made


def test_statuses_of_large_jobs_are_unpacked() -> None:
    tasks = [task(x, completion(0)) for x in range(2000)]
    roles = [{"name": "worker", "taskStatuses": [*tasks, task(2000, completion(3, pod=LAST))]}]
    seen = read(large(packed(json.dumps(roles).encode())))
    assert (seen.gone, seen.reason) == (
        Gone.FAILED, "ContainerUnrecognizedFailed: exit code 3: ValueError: no",
    )  # fmt: skip


STRANGE = {
    "no base64": "§",
    "no gzip": base64.b64encode(b"plain").decode(),
    "cut": packed(b"[]")[:-8],
    "no JSON": packed(b"[1,"),
    "another document": packed(b'{"a": 1}'),
    "deep": packed(b"[" * 100_000 + b"]" * 100_000),
    "a bomb": packed(b" " * (8 << 20) + b"[]"),
}


@pytest.mark.parametrize("text", STRANGE.values(), ids=STRANGE.keys())
def test_what_is_none_of_that_says_nothing(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Mutation: 8 MiB are unpacked, of each object, at each look."""
    most = []
    inflate = module.json.loads

    def loads(content: bytes) -> Any:
        most.append(len(content))
        return inflate(content)

    monkeypatch.setattr(module.json, "loads", loads)
    seen = allocation_of(FRAMEWORK, "j", large(text), (), TIMES)
    assert (seen.gone, seen.reason) == (Gone.FAILED, "ContainerUnrecognizedFailed")
    assert all(each <= module.MOST_BYTES for each in most)


def test_they_are_unpacked_once() -> None:
    """A look comes twice a second, for a minute."""
    text = packed(json.dumps([{"name": "worker", "taskStatuses": []}]).encode())
    before = module.unpacked.cache_info().misses
    for _ in range(5):
        read(large(text))
    assert module.unpacked.cache_info().misses == before + 1


status = st.dictionaries(
    st.sampled_from(["code", "phrase", "type", "name", "attributes", "diagnostics", "trigger",
                     "completionStatus", "taskRoleStatuses", "taskRoleStatusesCompressed",
                     "taskStatuses", "attemptStatus", "pod", "containers", "message"]),
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda inner: st.lists(inner, max_size=2)
        | st.dictionaries(
            st.sampled_from(["code", "name", "attributes", "pod", "containers", "type",
                             "taskStatuses", "attemptStatus", "completionStatus", "index"]),
            inner, max_size=3),
        max_leaves=12,
    ),
    max_size=5,
)  # fmt: skip


@settings(max_examples=200, deadline=None)
@given(documents, status)
def test_no_document_is_too_strange(framework: Any, attempt: Any) -> None:
    assert FRAMEWORK.first_pods(framework) >= 0
    assert isinstance(allocation_of(FRAMEWORK, "j", framework, (), TIMES), Allocation)
    over = {"metadata": {}, "status": {"state": "Completed", "attemptStatus": attempt}}
    assert isinstance(allocation_of(FRAMEWORK, "j", over, (), TIMES), Allocation)
