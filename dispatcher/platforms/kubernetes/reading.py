"""A Job and its pods, read as an allocation: pure.

Documents are a server's of any version, so that each field may be missing or of another kind. What
nobody knows is ``UNKNOWN``, and never a failure.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dispatcher.http_services.server_clock import ServerClock
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.kubernetes.api.server import Document

#: An image that nodes could not pull for so long (seconds) is one that cannot be had: registries
#: are away for minutes at times.
PULL_LIMIT_S = 600.0

#: Reasons for which a container does not begin. They count as a wait, which has a limit.
_STUCK = frozenset({
    "ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "InvalidImageName",
    "ImageInspectError", "RegistryUnavailable", "CreateContainerConfigError",
    "CreateContainerError", "RunContainerError", "CreatePodSandboxError",
})  # fmt: skip

#: Of these, those that nothing will mend, and those that are given time.
_NEVER = frozenset({"InvalidImageName", "ErrImageNeverPull"})
_PULLS = frozenset({"ErrImagePull", "ImagePullBackOff", "RegistryUnavailable"})

#: How a pod ended, by the reason of its status or of its disruption.
_ENDS = {
    "Preempting": Gone.PREEMPTED,
    "Preempted": Gone.PREEMPTED,
    "PreemptionByScheduler": Gone.PREEMPTED,
    "PreemptionByKubeScheduler": Gone.PREEMPTED,  # 1.25
    "WorkloadEvictedDueToPreempted": Gone.PREEMPTED,  # Kueue
    "Evicted": Gone.EVICTED,
    "EvictionByEvictionAPI": Gone.EVICTED,
    "TerminationByKubelet": Gone.EVICTED,
    "UnexpectedAdmissionError": Gone.EVICTED,
    "NodeAffinity": Gone.EVICTED,
    "NodeLost": Gone.NODE_LOST,
    "NodeShutdown": Gone.NODE_LOST,
    "Shutdown": Gone.NODE_LOST,
    "Terminated": Gone.NODE_LOST,
    "DeletionByTaintManager": Gone.NODE_LOST,
    "DeletionByPodGC": Gone.NODE_LOST,
    "DeadlineExceeded": Gone.WALL_TIME,
}

SECOND = "its pod was taken away, and Kubernetes has started another one"
DELETED = "its pod was deleted"


def allocation_of(
    name: str,
    job: Document | None,
    pods: Sequence[Document],
    times: ServerClock,
    *,
    first: Collection[str] = (),
    left: Sequence[Document] = (),
    events: Mapping[str, str] | None = None,
) -> Allocation:
    """Return what a Job and its pods come to.

    Args:
        name: of the allocation.
        job: the Job; None: it is gone, and its pods were left.
        pods: of the Job.
        times: of the server.
        first: the uids of the pods that the Job had first; empty: not known. Any other one is a
            second start, which its agent's head refuses.
        left: pods of the Job that have gone already, as they were at last.
        events: the newest warning about an object, by its name.
    """
    about = _mapping(job or {}, "metadata")
    waited_s = times.since(about.get("creationTimestamp")) or 0.0
    condition = _condition(job or {}, "Complete", "Failed")
    if condition is not None:
        gone, reason = _end(condition, [*pods, *left], deleted="deletionTimestamp" in about)
        return Allocation(name, AllocationState.ENDED, reason, gone=gone, place=_place(pods))
    if "deletionTimestamp" in about:
        return _leaving(name, pods, times, waited_s, ran=bool(first))
    target = _condition(job or {}, "FailureTarget")
    others = [each for each in pods if first and uid_of(each) not in first]
    if target is not None or others or (first and not pods and job is not None):
        reason = _end(target, pods)[1] if target is not None else SECOND
        return Allocation(name, AllocationState.WAITING, reason, waited_s)
    if not pods:
        reason = _why_no_pod(name, job or {}, events or {})
        return Allocation(name, AllocationState.WAITING, reason, waited_s)
    return _of_pods(name, pods, times, waited_s, events or {})


def _leaving(
    name: str, pods: Sequence[Document], times: ServerClock, waited_s: float, *, ran: bool
) -> Allocation:
    """One whose Job is being deleted. It goes with its pods, and no others are started."""
    if pods:
        return _of_pods(name, pods, times, waited_s, {})
    state = AllocationState.RUNNING if ran else AllocationState.WAITING
    return Allocation(name, state, "its Job is being deleted", waited_s)


def _of_pods(
    name: str,
    pods: Sequence[Document],
    times: ServerClock,
    waited_s: float,
    events: Mapping[str, str],
) -> Allocation:
    place = _place(pods)
    states = [_state(each, times, events) for each in pods]
    for wanted in (AllocationState.ENDED, AllocationState.WAITING, AllocationState.STARTING):
        for state, reason in states:
            if state is wanted:
                gone = Gone.NEVER if state is AllocationState.ENDED else None
                return Allocation(name, state, reason, waited_s, gone=gone, place=place)
    if any(state is AllocationState.UNKNOWN for state, _ in states):
        return Allocation(name, AllocationState.UNKNOWN, states[0][1], place=place)
    ends = [end for each in pods if (end := _ends_in_s(each, times)) is not None]
    return Allocation(name, AllocationState.RUNNING, ends_in_s=min(ends, default=None), place=place)


def _state(
    pod: Document, times: ServerClock, events: Mapping[str, str]
) -> tuple[AllocationState, str]:
    """The state of one pod, and the reason for it."""
    status = _mapping(pod, "status")
    phase = status.get("phase")
    if phase in ("Running", "Succeeded", "Failed"):  # the Job says next how it ended
        return AllocationState.RUNNING, ""
    if phase not in ("Pending", None):
        return AllocationState.UNKNOWN, _text(phase)
    event = events.get(_text(_mapping(pod, "metadata").get("name")), "")
    for waiting in _waiting(status):
        reason = _text(waiting.get("reason"))
        if reason not in _STUCK:
            continue
        text = _sentence(reason, waiting.get("message"))
        since = times.since(status.get("startTime")) or 0.0
        if reason in _NEVER or (reason in _PULLS and since > PULL_LIMIT_S):
            return AllocationState.ENDED, text
        return AllocationState.WAITING, text
    scheduled = _condition(pod, "PodScheduled")
    if scheduled is not None or _mapping(pod, "spec").get("nodeName"):
        return AllocationState.STARTING, event
    for each in _conditions(pod):
        if each.get("type") == "PodScheduled" and (each.get("message") or each.get("reason")):
            return AllocationState.WAITING, _sentence(each.get("reason"), each.get("message"))
    return AllocationState.WAITING, event


def _why_no_pod(name: str, job: Document, events: Mapping[str, str]) -> str:
    event = events.get(name, "")
    if _mapping(job, "spec").get("suspend") is True:
        suspended = _condition(job, "Suspended")
        text = "" if suspended is None else _text(suspended.get("message"))
        return event or text or "its queue has not admitted it yet"
    return event


def _end(
    condition: Mapping[str, Any], pods: Sequence[Document], *, deleted: bool = False
) -> tuple[Gone, str]:
    """How it ended, and the reason: what disturbed a pod comes before what its container made of
    that. An agent that was asked to leave in good time has left with success."""
    for pod in pods:
        status = _mapping(pod, "status")
        disrupted = _condition(pod, "DisruptionTarget") or {}
        for given in (disrupted, status):
            reason = _text(given.get("reason"))
            gone = _ENDS.get(reason, Gone.EVICTED if reason.startswith("OutOf") else None)
            if gone is not None:
                return gone, _sentence(reason, given.get("message"))
    if not deleted and any("deletionTimestamp" in _mapping(pod, "metadata") for pod in pods):
        return Gone.EVICTED, DELETED
    if condition.get("type") == "Complete":
        return Gone.FINISHED, ""
    exits = [each for pod in pods for each in _terminated(_mapping(pod, "status"))]
    for each in exits:
        if each.get("reason") == "OOMKilled":
            return Gone.OUT_OF_MEMORY, "OOMKilled: it used more memory than its limit"
    if condition.get("reason") == "DeadlineExceeded":
        return Gone.WALL_TIME, _sentence(condition.get("reason"), condition.get("message"))
    for each in exits:
        if each.get("exitCode"):
            last = _text(each.get("message")).strip().splitlines()
            text = f"exit code {each.get('exitCode')}"
            return Gone.FAILED, f"{text}: {last[-1]}" if last else text
    return Gone.FAILED, _sentence(condition.get("reason"), condition.get("message"))


def last_words(pods: Sequence[Document]) -> list[str]:
    """The end of what the containers of some pods have printed, as far as it is kept."""
    exits = [each for pod in pods for each in _terminated(_mapping(pod, "status"))]
    return [_text(each.get("message")) for each in exits]


def _ends_in_s(pod: Document, times: ServerClock) -> float | None:
    limit = _mapping(pod, "spec").get("activeDeadlineSeconds")
    age = times.since(_mapping(pod, "status").get("startTime"))
    if not isinstance(limit, int) or age is None:
        return None
    return limit - age


def newest_warning(events: Sequence[Document]) -> str:
    """The text of the newest of some events; empty if there is none."""
    newest = max(events, key=_moment, default=None)
    return "" if newest is None else _sentence(newest.get("reason"), newest.get("message"))


def _moment(event: Document) -> str:
    """When an event was seen last: time stamps of one server are in order as texts."""
    given = (event.get(key) for key in ("lastTimestamp", "eventTime", "firstTimestamp"))
    return next((str(each) for each in given if each), "")


# -- documents -------------------------------------------------------------------------------------


def uid_of(document: Document) -> str:
    """The uid of an object; empty if it has none."""
    return _text(_mapping(document, "metadata").get("uid"))


def _place(pods: Sequence[Document]) -> str:
    nodes = {_text(_mapping(pod, "spec").get("nodeName")): None for pod in pods}
    return ", ".join(node for node in nodes if node)


def _mapping(document: Mapping[str, Any], key: str) -> Mapping[str, Any]:
    value = document.get(key)
    return value if isinstance(value, Mapping) else {}


def _list(document: Mapping[str, Any], key: str) -> Iterator[Mapping[str, Any]]:
    value = document.get(key)
    for each in value if isinstance(value, list) else []:
        if isinstance(each, Mapping):
            yield each


def _conditions(document: Document) -> Iterator[Mapping[str, Any]]:
    yield from _list(_mapping(document, "status"), "conditions")


def _condition(document: Document, *types: str) -> Mapping[str, Any] | None:
    """The first condition of these types that holds. Their order in the list says nothing."""
    holds = [each for each in _conditions(document) if each.get("status") == "True"]
    return next((each for type_ in types for each in holds if each.get("type") == type_), None)


def _states(status: Mapping[str, Any], word: str) -> Iterator[Mapping[str, Any]]:
    for key in ("initContainerStatuses", "containerStatuses"):
        for each in _list(status, key):
            state = _mapping(each, "state").get(word)
            if isinstance(state, Mapping):
                yield state


def _waiting(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from _states(status, "waiting")


def _terminated(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from _states(status, "terminated")


def _sentence(reason: object, message: object) -> str:
    parts = [" ".join(_text(each).split()) for each in (reason, message)]
    return ": ".join(part for part in parts if part)


def _text(value: object) -> str:
    return "" if value is None else str(value)
