"""Slurm's words for states and reasons, and what a list comes to. Pure."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from dispatcher.platforms.allocations.allocation import Allocation, AllocationState, Gone
from dispatcher.platforms.slurm.listing import Job

_WAITING, _STARTING = AllocationState.WAITING, AllocationState.STARTING
_RUNNING, _ENDED = AllocationState.RUNNING, AllocationState.ENDED

#: A job that is ``COMPLETING`` has processes still. One that was requeued would begin anew, and is
#: taken as one whose place was taken back.
STATES: Mapping[str, AllocationState] = MappingProxyType(
    {
        **dict.fromkeys(("PENDING", "REQUEUED", "REQUEUE_FED", "REQUEUE_HOLD"), _WAITING),
        **dict.fromkeys(("RESV_DEL_HOLD", "SPECIAL_EXIT"), _WAITING),
        **dict.fromkeys(("CONFIGURING", "POWER_UP_NODE"), _STARTING),
        **dict.fromkeys(("RUNNING", "COMPLETING", "SUSPENDED", "STOPPED"), _RUNNING),
        **dict.fromkeys(("RESIZING", "SIGNALING", "STAGE_OUT", "UPDATE_DB"), _RUNNING),
    }
)

#: The states in which a job has ended, and how.
ENDS: Mapping[str, Gone] = MappingProxyType(
    {
        "COMPLETED": Gone.FINISHED,
        "FAILED": Gone.FAILED,
        "LAUNCH_FAILED": Gone.FAILED,
        "TIMEOUT": Gone.WALL_TIME,
        "DEADLINE": Gone.WALL_TIME,
        "OUT_OF_MEMORY": Gone.OUT_OF_MEMORY,
        "NODE_FAIL": Gone.NODE_LOST,
        "BOOT_FAIL": Gone.NODE_LOST,
        "RECONFIG_FAIL": Gone.NODE_LOST,
        "PREEMPTED": Gone.PREEMPTED,
        "CANCELLED": Gone.CANCELLED,
        "REVOKED": Gone.CANCELLED,
    }
)

#: Reasons of a wait that no time mends: the request itself is more than there is, or is allowed.
_NEVER = re.compile(
    "BadConstraints|PartitionNodeLimit|PartitionTimeLimit|PartitionConfig|InvalidAccount|InvalidQOS"
    "|AccountNotAllowed|QOSNotAllowed|DependencyNeverSatisfied|MaxMemPerLimit"
    "|Reservation(Deleted|Invalid)|JobHoldMaxRequeue|(QOS|Assoc)Max\\w*Per(Job|Node)(Limit)?"
    "|QOSMin\\w+"
)


class JobList(NamedTuple):
    """A list that was judged: an allocation for each name, the job that each is, and the jobs that
    have the name of another one, and are to be cancelled."""

    allocations: list[Allocation]
    jobs: dict[str, Job]
    surplus: list[Job]


def can_never_be(reason: str) -> bool:
    """Whether a job that waits for this reason will wait for ever, unless somebody changes what is
    allowed."""
    return _NEVER.fullmatch(reason) is not None


def has_ended(job: Job) -> bool:
    """Whether nothing of it runs any more."""
    return job.state in ENDS


def allocation_of(job: Job) -> Allocation:
    """A job as an allocation."""
    gone = ENDS.get(job.state)
    if gone is not None:
        reason = f"{job.state} ({job.reason})" if job.reason else job.state
        return Allocation(job.name, _ENDED, reason, gone=gone, place=job.nodes)
    state = STATES.get(job.state, AllocationState.UNKNOWN)
    left_s = job.left_s if state is _RUNNING else None
    return Allocation(job.name, state, job.reason, job.waiting_s, left_s, place=job.nodes)


def judge(jobs: Iterable[Job]) -> JobList:
    """Tell which job is the allocation of its name.

    An order whose answer was lost may have been taken twice: the one that runs is it, else the
    first; one that has ended is it only where there is no other.
    """
    by_name: dict[str, list[Job]] = defaultdict(list)
    for job in jobs:
        by_name[job.name].append(job)
    chosen, surplus = {}, []
    for name, same in by_name.items():
        chosen[name], *others = sorted(same, key=_rank)
        surplus += [job for job in others if not has_ended(job)]
    return JobList([allocation_of(job) for job in chosen.values()], chosen, surplus)


def _rank(job: Job) -> tuple[bool, bool, tuple[int, ...]]:
    runs = STATES.get(job.state) is _RUNNING
    return has_ended(job), not runs, tuple(int(n) for n in re.findall(r"\d+", job.id))
