"""A trial that needs much is not starved by those that need little."""

from __future__ import annotations

import copy

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import WorkerId
from dispatcher.core.reservations import PASSED_OVER, Reservations
from dispatcher.core.resource_match import fits_alone
from dispatcher.core.resources import A_SLOT, Needs, Offer
from tests.support.cluster import Cluster, gpus
from tests.support.replaying import differences


def turn_over(lab: Cluster, running: list[int], needs: Needs, host: str = "a") -> int:
    """Small trials come all the time, and end in turn: how many began until none began."""
    for began in range(3 * PASSED_OVER):
        lab.submit(needs)
        trial = running.pop(0)
        started = [start.trial for start in lab.leave(trial)]
        if not started:
            return began
        running.extend(started)
    raise AssertionError("the large one is starved")


ONE = Needs(gpus=1)


def test_eight_gpus_of_one_host_are_kept_after_a_bound() -> None:
    """Mutation: nothing is kept; or it is kept at once, and small ones wait for nothing."""
    lab = Cluster({"a": 8})
    running = [lab.submit(ONE) for _ in range(8)]
    large = lab.submit(gpus=8)
    assert turn_over(lab, running, ONE) == PASSED_OVER
    while lab.where(large) is None:
        assert running, "all have ended, and it does not begin"
        started = [start.trial for start in lab.leave(running.pop(0))]
        assert started in ([], [large])
    assert running == []
    assert lab.trial(large).passed_over == 0


def test_what_it_does_not_need_is_kept_from_nobody() -> None:
    lab = Cluster({"a": 4, "b": 1, "c": Offer(cpus=8.0)}, each=5)
    running = [lab.submit(ONE) for _ in range(5)]
    large = lab.submit(gpus=4)
    on_a = [trial for trial in running if lab.where(trial) == "a"]
    turn_over(lab, on_a, ONE)
    assert lab.where(lab.submit(cpus=2)) is not None, "no GPU"
    (on_b,) = [trial for trial in running if lab.where(trial) == "b"]
    (start,) = lab.leave(on_b)
    assert start.worker == "b", "a host too small for it"
    assert lab.where(large) is None


def test_slots_are_kept_as_well() -> None:
    lab = Cluster({"a": 2}, each=2)
    running = [lab.submit(ONE) for _ in range(2)]
    large = lab.submit(gpus=2)
    turn_over(lab, running, ONE)
    slot_only = lab.submit()
    assert lab.where(slot_only) is None, "the last slot is that of the large trial"
    began = [start.trial for start in lab.leave(running.pop())]
    assert began == [large, slot_only], "both fit now, and it is first"


def test_the_host_that_is_free_soonest_is_kept() -> None:
    lab = Cluster({"a": 4, "b": 4})
    running = [lab.submit(ONE) for _ in range(8)]
    on_b = [trial for trial in running if lab.where(trial) == "b"]
    on_a = [trial for trial in running if lab.where(trial) == "a"]
    large = lab.submit(gpus=4)
    lab.trial(large).passed_over = PASSED_OVER
    assert lab.leave(on_b.pop()) == lab.leave(on_b.pop()) == []
    small = lab.submit(ONE)
    assert lab.where(small) is None, "b has two left to end"
    (start,) = lab.leave(on_a.pop())
    assert (start.trial, start.worker) == (small, "a"), "which is not kept"
    while on_b:
        lab.leave(on_b.pop())
    assert lab.where(large) == "b"


def test_the_next_in_line_waits_its_own_turn() -> None:
    """Only the first of a line is overtaken. Mutation: all of them are."""
    lab = Cluster({"a": 2})
    running = [lab.submit(ONE) for _ in range(2)]
    large, next_large = lab.submit(gpus=2), lab.submit(gpus=2)
    turn_over(lab, running, ONE)
    while running:
        lab.leave(running.pop())
    assert lab.where(large) == "a"
    assert lab.trial(next_large).passed_over == 0


@pytest.mark.parametrize("needs", [Needs(gpus=4), Needs(gpus=0.5), Needs(cpus=8), A_SLOT])
def test_a_host_is_cleared_in_thought_only(needs: Needs) -> None:
    """Mutation: while a host is looked for that could be kept, the books forget what runs there:
    devices and slots are given twice, and what is lost with the host is never tried again."""
    lab = Cluster({name: Offer(gpus(name, 4), cpus=8.0) for name in "ab"}, each=4)
    running = [lab.submit(gpus=1, cpus=2) for _ in range(8)]
    waiting = lab.trial(lab.submit(needs))
    assert lab.where(waiting.id) is None
    waiting.passed_over = PASSED_OVER
    before = copy.deepcopy(lab.state)
    for _ in range(2):
        kept = Reservations(lab.state)
        kept.keep_for(waiting, lambda *_: True)
        assert [name for name, host in lab.state.workers.items() if kept.on(host)] == ["a"]
        assert all(fits_alone(lab.state, waiting, host) for host in lab.state.workers.values())
        assert not differences(lab.state, before)
    lab.say(e.WorkerLost(WorkerId("a"), "gone"))
    lost = [trial for trial in running if lab.trial(trial).losses]
    assert len(lost) == 4
    assert len(lab.state.workers[WorkerId("b")].running) == 4


def test_two_large_trials_have_two_hosts_kept() -> None:
    lab = Cluster({"a": 2, "b": 2})
    running = [lab.submit(ONE) for _ in range(4)]
    large, other = lab.submit(gpus=2), lab.submit(gpus=2, cpus=1)
    for trial in (large, other):
        lab.trial(trial).passed_over = PASSED_OVER
    small = lab.submit(ONE)
    for trial in running:
        lab.leave(trial)
    assert {lab.where(large), lab.where(other)} == {"a", "b"}
    assert lab.where(small) is None


def test_cpus_are_kept_too() -> None:
    lab = Cluster({"a": Offer(cpus=4.0)})
    running = [lab.submit(cpus=1) for _ in range(4)]
    large = lab.submit(cpus=4)
    assert turn_over(lab, running, Needs(cpus=1)) == PASSED_OVER
    while running:
        lab.leave(running.pop())
    assert lab.where(large) == "a"


def test_a_host_that_is_lost_is_kept_for_nobody() -> None:
    lab = Cluster({"a": 2, "b": 1})
    running = [lab.submit(ONE) for _ in range(3)]
    on_a = [trial for trial in running if lab.where(trial) == "a"]
    large = lab.submit(gpus=2)
    turn_over(lab, on_a, ONE)
    lab.join("a", Offer(), 64)
    (start,) = lab.leave(next(trial for trial in running if lab.where(trial) == "b"))
    assert start.worker == "b"
    assert lab.where(large) is None


def test_what_a_higher_priority_takes_is_not_overtaking() -> None:
    lab = Cluster({"a": 2})
    running = [lab.submit(ONE) for _ in range(2)]
    large = lab.submit(gpus=2)
    for _ in range(2 * PASSED_OVER):
        lab.submit(gpus=1, priority=1)
        running.extend(start.trial for start in lab.leave(running.pop(0)))
    assert lab.trial(large).passed_over == 0
