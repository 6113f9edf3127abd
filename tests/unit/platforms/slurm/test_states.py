"""Slurm's words for states and reasons, as allocations."""

from __future__ import annotations

import pytest

from dispatcher.platforms.allocations.allocation import TAKEN_BACK, AllocationState, Gone
from dispatcher.platforms.slurm.listing import Job, read_list
from dispatcher.platforms.slurm.states import (
    ENDS,
    STATES,
    allocation_of,
    can_never_be,
    has_ended,
    judge,
)
from tests.unit.platforms.slurm.recorded import PREFIX, VERSIONS, listed


@pytest.mark.parametrize("version", VERSIONS)
def test_a_recorded_list_of_many_ends(version: str) -> None:
    late = judge(read_list(listed(version, "late"), PREFIX))
    gone = {each.name.removeprefix(PREFIX): each.gone for each in late.allocations}
    assert gone["1-1"] is Gone.FINISHED
    assert gone["2-1"] is Gone.FAILED
    assert gone["3-1"] is Gone.PREEMPTED
    assert gone["10-1"] is Gone.CANCELLED
    assert gone["11-1"] is Gone.NODE_LOST
    assert gone["12-1"] is None, "it was requeued, and waits"
    states = {each.name.removeprefix(PREFIX): each.state for each in late.allocations}
    assert states["12-1"] is AllocationState.WAITING
    assert states["13-1"] is AllocationState.RUNNING
    assert AllocationState.UNKNOWN not in states.values()


def test_every_word_has_one_meaning() -> None:
    assert not STATES.keys() & ENDS.keys()
    assert {*ENDS.values(), Gone.EVICTED} >= TAKEN_BACK


def test_a_word_that_nobody_knows_keeps_the_last_state() -> None:
    """Mutation: it is a failure."""
    assert allocation_of(Job("1", "a", "EXPEDITING")).state is AllocationState.UNKNOWN
    assert not has_ended(Job("1", "a", "EXPEDITING"))


def test_one_that_completes_has_not_ended() -> None:
    """Its processes run still. Mutation: the next one is ordered beside it."""
    job = Job("1", "a", "COMPLETING", reason="NodeDown")
    assert allocation_of(job).state is AllocationState.RUNNING
    assert not has_ended(job)


def test_an_end_is_told_in_the_words_of_slurm() -> None:
    job = Job("1", "a", "NODE_FAIL", nodes="n3", reason="NodeDown")
    assert allocation_of(job).reason == "NODE_FAIL (NodeDown)"
    assert allocation_of(job).place == "n3"


def test_what_waits_has_no_end_yet() -> None:
    assert allocation_of(Job("1", "a", "PENDING", left_s=60.0)).ends_in_s is None
    assert allocation_of(Job("1", "a", "RUNNING", left_s=60.0)).ends_in_s == 60.0


@pytest.mark.parametrize(
    "reason, never",
    [
        ("PartitionConfig", True),
        ("PartitionTimeLimit", True),
        ("QOSMaxCpuPerJobLimit", True),
        ("QOSMaxGRESPerJob", True),
        ("AssocMaxWallDurationPerJobLimit", True),
        ("QOSMinGRES", True),
        ("Resources", False),
        ("Priority", False),
        ("QOSMaxJobsPerUserLimit", False),
        ("AssocGrpCpuLimit", False),
        ("ReqNodeNotAvail, UnavailableNodes:n[1-3]", False),
        ("JobHeldUser", False),
        ("", False),
    ],
)
def test_reasons_that_no_time_mends(reason: str, never: bool) -> None:
    assert can_never_be(reason) is never


def test_an_order_that_was_taken_twice_is_one_allocation() -> None:
    """The one that runs; else the first; one that has ended only where there is no other. Mutation:
    the newest, whose agent has to leave."""
    runs = judge([Job("9", "a", "PENDING"), Job("10", "a", "RUNNING"), Job("8", "a", "FAILED")])
    assert [each.state for each in runs.allocations] == [AllocationState.RUNNING]
    assert [job.id for job in runs.surplus] == ["9"]
    waits = judge([Job("10", "a", "PENDING"), Job("9", "a", "PENDING")])
    assert waits.jobs["a"].id == "9"
    assert [job.id for job in waits.surplus] == ["10"]
    over = judge([Job("9", "a", "FAILED"), Job("10", "a", "COMPLETED")])
    assert (over.jobs["a"].id, over.surplus) == ("9", [])
