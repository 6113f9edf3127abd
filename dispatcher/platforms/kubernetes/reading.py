"""An object and its pods, read as an allocation: pure.

Documents are a server's of any version, so that each field may be missing or of another kind. What
nobody knows is ``UNKNOWN``, and never a failure.
"""

from __future__ import annotations

import math
from collections.abc import Collection, Iterator, Mapping, Sequence
from typing import Any

from dispatcher.http_services.server_clock import ServerClock, moment_of
from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.kubernetes.api.documents import (
    condition_of,
    conditions_of,
    mapping_in,
    mappings_in,
    sentence,
    sentence_of,
    text_of,
    uid_of,
)
from dispatcher.platforms.kubernetes.api.server import Document
from dispatcher.platforms.kubernetes.jobs import NOT_ADMITTED
from dispatcher.platforms.kubernetes.kind import AllocationKind, KindStanding

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

#: Exit codes of an agent that was asked to leave.
_ASKED = (0, 143)

#: Ends of a pod in which its place was taken, whatever its agent has made of that.
_TAKEN = (Gone.PREEMPTED, Gone.EVICTED, Gone.NODE_LOST)

#: A pod that has ended by itself is given so long (seconds) until its controller says what comes of
#: that; some never do.
OVER_S = 60.0

_CONTAINERS = "containerStatuses"

SECOND = "its pod was taken away, and Kubernetes has started another one"
AGAIN = "its node starts it again, and that is none of ours"
DELETED = "its pod was deleted"
TAKEN_BACK = "its queue has taken it back"


def allocation_of(
    kind: AllocationKind,
    name: str,
    document: Document | None,
    pods: Sequence[Document],
    times: ServerClock,
    *,
    first: Collection[str] = (),
    left: Sequence[Document] = (),
    events: Mapping[str, str] | None = None,
) -> Allocation:
    """Return what an object and its pods come to.

    Args:
        kind: of the object.
        name: of the allocation.
        document: the object; None: it is gone, and its pods were left.
        pods: of the object.
        times: of the server.
        first: the uids of the pods that the object had first; empty: not known. Any other one is a
            second start, which its agent's head refuses, unless its kind renews them.
        left: pods of the object that have gone already, as they were at last.
        events: the newest warning about an object, by its name.
    """
    there = {} if document is None else document
    about = mapping_in(there, "metadata")
    standing = KindStanding() if document is None else kind.standing(document)
    waited_s = 0.0 if standing.began else times.since(about.get("creationTimestamp")) or 0.0
    deleted = "deletionTimestamp" in about
    if standing.state is AllocationState.ENDED:
        gone, reason = _end(kind, standing, [*pods, *left], deleted=deleted)
        return Allocation(name, AllocationState.ENDED, reason, gone=gone, place=_place(pods))
    if deleted:
        return _leaving(kind, name, pods, times, waited_s, ran=bool(first))
    if standing.state is AllocationState.WAITING:
        reason = _end(kind, standing, pods)[1]
        return Allocation(name, AllocationState.WAITING, reason, waited_s)
    if standing.state is AllocationState.RUNNING:
        return _running(name, pods, times, standing)
    if standing.state is not None:
        return Allocation(name, AllocationState.UNKNOWN, standing.reason, place=_place(pods))
    before = _ended_before(kind, pods)
    if before and not kind.renews_pods:
        gone, reason = _failure(before) or (Gone.FAILED, "it has ended")
        reason = f"{reason}; {AGAIN}"
        return Allocation(name, AllocationState.ENDED, reason, gone=gone, place=_place(pods))
    others = [each for each in pods if first and uid_of(each) not in first]
    missing = first and not pods and document is not None
    if missing and kind.removes_pods and not standing.suspended and _left_first(left):
        return Allocation(name, AllocationState.UNKNOWN)  # its controller says next how it ended
    if (others or missing) and not kind.renews_pods:
        reason = SECOND
        if missing and standing.suspended:
            reason = TAKEN_BACK if standing.reason == NOT_ADMITTED else standing.reason
        return Allocation(name, AllocationState.WAITING, reason, waited_s)
    if not pods:
        event = (events or {}).get(text_of(about.get("name")), "")
        return Allocation(name, AllocationState.WAITING, event or standing.reason, waited_s)
    return _of_pods(kind, name, pods, times, waited_s, events or {}, standing)


def _leaving(
    kind: AllocationKind,
    name: str,
    pods: Sequence[Document],
    times: ServerClock,
    waited_s: float,
    *,
    ran: bool,
) -> Allocation:
    """One whose object is being deleted. It goes with its pods, and no others are started."""
    if pods:
        return _of_pods(kind, name, pods, times, waited_s, {}, KindStanding())
    state = AllocationState.RUNNING if ran else AllocationState.WAITING
    return Allocation(name, state, f"its {kind.word} is being deleted", waited_s)


def _of_pods(
    kind: AllocationKind,
    name: str,
    pods: Sequence[Document],
    times: ServerClock,
    waited_s: float,
    events: Mapping[str, str],
    standing: KindStanding,
) -> Allocation:
    place = _place(pods)
    if kind.renews_pods and any(_is_over(each, times) for each in pods):
        failed = any(mapping_in(each, "status").get("phase") == "Failed" for each in pods)
        over = KindStanding(AllocationState.ENDED, Gone.FAILED if failed else Gone.FINISHED)
        cause, text = _end(kind, over, pods)
        return Allocation(name, AllocationState.ENDED, text, gone=cause, place=place)
    states = [_state_within(kind.starts_within_s, each, times, events) for each in pods]
    for wanted in (AllocationState.ENDED, AllocationState.WAITING, AllocationState.STARTING):
        for state, reason in states:
            if state is wanted:
                gone = Gone.NEVER if state is AllocationState.ENDED else None
                return Allocation(name, state, reason, waited_s, gone=gone, place=place)
    if any(state is AllocationState.UNKNOWN for state, _ in states):
        return Allocation(name, AllocationState.UNKNOWN, states[0][1], place=place)
    return _running(name, pods, times, standing)


def _running(
    name: str, pods: Sequence[Document], times: ServerClock, standing: KindStanding
) -> Allocation:
    ends = [end for each in pods if (end := _ends_in_s(each, times)) is not None]
    age = times.since(standing.since)
    if standing.limit_s is not None and age is not None:
        ends.append(standing.limit_s - age)
    ends_in_s = min(ends, default=None)
    return Allocation(name, AllocationState.RUNNING, ends_in_s=ends_in_s, place=_place(pods))


def _is_over(pod: Document, times: ServerClock) -> bool:
    """Whether a pod has ended for good, by itself, and its controller does nothing of that: where
    it renews pods it may take an end by a signal for one that it has wanted."""
    status = mapping_in(pod, "status")
    if status.get("phase") not in ("Failed", "Succeeded"):
        return False
    if "deletionTimestamp" in mapping_in(pod, "metadata"):
        return False
    if status.get("reason") == "DeadlineExceeded":
        return True
    ends = [times.since(each.get("finishedAt")) for each in _terminated(status)]
    known = [each for each in ends if each is not None]
    since = min(known) if known else times.since(status.get("startTime"))
    return since is not None and since > OVER_S


def _state_within(
    limit_s: float, pod: Document, times: ServerClock, events: Mapping[str, str]
) -> tuple[AllocationState, str]:
    """The state of one pod, and the reason for it; one that does not begin in time never does."""
    state, reason = _state(pod, times, events)
    if state not in (AllocationState.WAITING, AllocationState.STARTING):
        return state, reason
    age_s = times.since(mapping_in(pod, "metadata").get("creationTimestamp"))
    if age_s is None or age_s <= limit_s:
        return state, reason
    text = f"its pod has its node, and has not begun within {limit_s:.0f} s"
    return AllocationState.ENDED, f"{text}: {reason}" if reason else text


def _state(
    pod: Document, times: ServerClock, events: Mapping[str, str]
) -> tuple[AllocationState, str]:
    """The state of one pod, and the reason for it."""
    status = mapping_in(pod, "status")
    phase = status.get("phase")
    if phase in ("Running", "Succeeded", "Failed"):  # the Job says next how it ended
        return AllocationState.RUNNING, ""
    if phase not in ("Pending", None):
        return AllocationState.UNKNOWN, text_of(phase)
    event = events.get(text_of(mapping_in(pod, "metadata").get("name")), "")
    for waiting in _waiting(status):
        reason = text_of(waiting.get("reason"))
        if reason not in _STUCK:
            continue
        text = sentence(reason, waiting.get("message"))
        since = times.since(status.get("startTime")) or 0.0
        if reason in _NEVER or (reason in _PULLS and since > PULL_LIMIT_S):
            return AllocationState.ENDED, text
        return AllocationState.WAITING, text
    scheduled = condition_of(pod, "PodScheduled")
    if scheduled is not None or mapping_in(pod, "spec").get("nodeName"):
        return AllocationState.STARTING, event
    for each in conditions_of(pod):
        if each.get("type") == "PodScheduled" and (each.get("message") or each.get("reason")):
            return AllocationState.WAITING, sentence(each.get("reason"), each.get("message"))
    return AllocationState.WAITING, event


def _end(
    kind: AllocationKind,
    standing: KindStanding,
    pods: Sequence[Document],
    *,
    deleted: bool = False,
) -> tuple[Gone, str]:
    """How it ended, and the reason: what disturbed a pod comes before what its container made of
    that. An agent that was asked to leave in good time has left with success."""
    gone = standing.gone or Gone.FAILED
    if gone in (Gone.CANCELLED, Gone.NEVER):
        return gone, standing.reason
    for pod in pods:
        status = mapping_in(pod, "status")
        disrupted = condition_of(pod, "DisruptionTarget") or {}
        for given in (disrupted, status):
            reason = text_of(given.get("reason"))
            cause = _ENDS.get(reason, Gone.EVICTED if reason.startswith("OutOf") else None)
            if cause is not None:
                return cause, sentence_of(given)
    taken = not deleted and any("deletionTimestamp" in mapping_in(pod, "metadata") for pod in pods)
    taken = taken and gone is not Gone.WALL_TIME  # at which pods are deleted
    taken = taken and not kind.tells_deletions
    if taken and not (kind.removes_pods and _left_first(pods)):
        return Gone.EVICTED, DELETED
    if gone is Gone.FINISHED or gone in _TAKEN:
        return gone, "" if gone is Gone.FINISHED else standing.reason
    failure = _failure([x for pod in pods for x in _terminated(mapping_in(pod, "status"))])
    if failure is None or (gone is Gone.WALL_TIME and failure[0] is not Gone.OUT_OF_MEMORY):
        return gone, standing.reason
    return failure


def _failure(exits: Sequence[Mapping[str, Any]]) -> tuple[Gone, str] | None:
    """The end that those of some containers come to; None: none of them has failed."""
    for each in exits:
        if each.get("reason") == "OOMKilled":
            return Gone.OUT_OF_MEMORY, "OOMKilled: it used more memory than its limit"
    for each in exits:
        if each.get("exitCode"):
            last = text_of(each.get("message")).strip().splitlines()
            text = f"exit code {each.get('exitCode')}"
            return Gone.FAILED, f"{text}: {last[-1]}" if last else text
    return None


def _ended_before(kind: AllocationKind, pods: Sequence[Document]) -> list[Mapping[str, Any]]:
    """The ends of our containers that their nodes have started again, or are about to: as some
    kinds of objects let them do, whatever they are asked for."""
    statuses = (x for pod in pods for x in mappings_in(mapping_in(pod, "status"), _CONTAINERS))
    ours = (each for each in statuses if each.get("name") == kind.container)
    ends = (mapping_in(mapping_in(each, "lastState"), "terminated") for each in ours)
    return [each for each in ends if each]


def _left_first(pods: Sequence[Document]) -> bool:
    """Whether the container of a pod had ended before anybody wanted that of any of them. Time
    stamps are seconds: within one of them exit codes tell, as agents that were asked leave well, or
    by the signal."""
    asked, left = [], []
    for pod in pods:
        asked_at = _deleted_at(mapping_in(pod, "metadata"))
        for each in _terminated(mapping_in(pod, "status")):
            ended_at = moment_of(each.get("finishedAt"))
            if ended_at is None:
                continue
            by_itself = ended_at == asked_at and each.get("exitCode") not in _ASKED
            if asked_at is None or ended_at < asked_at or by_itself:
                left.append(ended_at)
                break
        else:
            asked += [] if asked_at is None else [asked_at]
    return bool(left) and min(left) <= min(asked, default=math.inf)


def _deleted_at(about: Mapping[str, Any]) -> float | None:
    """When somebody wanted an object to go; its time stamp says when its grace is over."""
    over_at, grace_s = moment_of(about.get("deletionTimestamp")), 0.0
    given = about.get("deletionGracePeriodSeconds")
    if isinstance(given, int):
        grace_s = given
    return None if over_at is None else over_at - grace_s


def last_words(pods: Sequence[Document]) -> list[str]:
    """The end of what the containers of some pods have printed, as far as it is kept."""
    exits = [each for pod in pods for each in _terminated(mapping_in(pod, "status"))]
    return [text_of(each.get("message")) for each in exits]


def _ends_in_s(pod: Document, times: ServerClock) -> float | None:
    limit = mapping_in(pod, "spec").get("activeDeadlineSeconds")
    age = times.since(mapping_in(pod, "status").get("startTime"))
    if not isinstance(limit, int) or age is None:
        return None
    return limit - age


def newest_warning(events: Sequence[Document]) -> str:
    """The text of the newest of some events; empty if there is none."""
    newest = max(events, key=_moment, default=None)
    return "" if newest is None else sentence(newest.get("reason"), newest.get("message"))


def _moment(event: Document) -> str:
    """When an event was seen last: time stamps of one server are in order as texts."""
    given = (event.get(key) for key in ("lastTimestamp", "eventTime", "firstTimestamp"))
    return next((str(each) for each in given if each), "")


# -- documents -------------------------------------------------------------------------------------


def _place(pods: Sequence[Document]) -> str:
    nodes = {text_of(mapping_in(pod, "spec").get("nodeName")): None for pod in pods}
    return ", ".join(node for node in nodes if node)


def _states(status: Mapping[str, Any], word: str) -> Iterator[Mapping[str, Any]]:
    for key in ("initContainerStatuses", _CONTAINERS):
        for each in mappings_in(status, key):
            state = mapping_in(each, "state").get(word)
            if isinstance(state, Mapping):
                yield state


def _waiting(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from _states(status, "waiting")


def _terminated(status: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    yield from _states(status, "terminated")
