"""What a scheduler says of a worker's allocation, and what that comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.allocations import held as module
from dispatcher.platforms.allocations.allocation import (
    LONGEST_NAME,
    Allocation,
    AllocationState,
    Gone,
    allocation_name,
    service_label,
)
from dispatcher.platforms.allocations.held import Held
from dispatcher.platforms.allocations.incarnation import read_incarnation

S = AllocationState
DAY = 86_400.0


class Scene:
    def __init__(self, home: Path, limit_s: float = DAY) -> None:
        self.home = home
        self.now = 1000.0
        self.limit_s = limit_s
        self.held = self.next_head()

    def next_head(self) -> Held:
        self.held = Held("q-1", self.home, "lab", self.limit_s, self.now)
        return self.held

    def order(self) -> str:
        name, self.ticket = self.held.begin(self.now, self.now)
        self.held.save()
        self.held.ordered(self.now)
        self.held.save()
        return name

    def seen(self, state: AllocationState | None, **more: object) -> Loss | None:
        name = self.held.name or ""
        listed = None if state is None else Allocation(name, state, **more)  # type: ignore[arg-type]
        loss = self.held.seen(listed, self.now, self.now)
        self.held.save()
        return loss


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    return Scene(tmp_path)


def test_it_waits_for_days_and_runs_then(scene: Scene) -> None:
    """Mutation: silence in the queue is a loss."""
    scene.order()
    for hour in range(20):
        scene.now += 3600.0
        assert scene.seen(S.WAITING, reason=f"Priority {hour}", waiting_s=60.0) is None
        assert (scene.held.number, scene.held.reason) == (None, f"Priority {hour}")
    assert scene.seen(S.STARTING) is None
    assert (scene.held.number, scene.held.reason) == (None, "its place is being prepared")
    assert scene.seen(S.RUNNING, ends_in_s=600.0) is None
    assert (scene.held.number, scene.held.ends_at) == (1, scene.now + 600.0)


def test_beyond_its_limit_a_wait_is_one_for_ever(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limit_s=100.0)
    scene.order()
    assert scene.seen(S.WAITING, reason="BadConstraints", waiting_s=99.0) is None
    loss = scene.seen(S.WAITING, reason="BadConstraints", waiting_s=101.0)
    text = "it has waited in its queue for 100 s: BadConstraints"
    assert loss == Loss(text, hopeless=True)
    assert scene.held.grace_to_cancel(scene.now) == 0.0


@pytest.mark.parametrize(
    "gone, text, hopeless, planned",
    [
        (Gone.PREEMPTED, "its allocation was preempted: by 17", False, True),
        (Gone.EVICTED, "its allocation was evicted: by 17", False, True),
        (Gone.NODE_LOST, "the node of its allocation is lost: by 17", False, True),
        (Gone.WALL_TIME, "its allocation has reached its wall time: by 17", False, True),
        (Gone.OUT_OF_MEMORY, "its allocation ran out of memory: by 17", False, False),
        (Gone.FINISHED, "its agent has left: by 17", False, False),
        (Gone.CANCELLED, "somebody has cancelled its allocation: by 17", False, False),
        (Gone.FAILED, "its allocation has failed: by 17", False, False),
        (Gone.NEVER, "no place for it can ever be had: by 17", True, False),
        (None, "its allocation has ended: by 17", False, False),
    ],
)
def test_what_takes_a_place_back_is_not_blamed_on_the_agent(
    scene: Scene, gone: Gone | None, text: str, hopeless: bool, planned: bool
) -> None:
    scene.order()
    scene.seen(S.RUNNING)
    scene.now += 3600.0
    loss = scene.seen(S.ENDED, gone=gone, reason="by 17")
    assert loss == Loss(text, hopeless, planned=planned)
    assert (scene.held.is_there, scene.held.needs_order) == (False, True)


def test_each_way_to_end_has_its_sentence() -> None:
    assert set(module._HOW) == {*Gone, None}


def test_one_that_ran_and_waits_again_would_begin_anew_under_its_ticket(scene: Scene) -> None:
    """Mutation: what Slurm requeues starts a second agent with the name of the first."""
    scene.order()
    scene.seen(S.RUNNING)
    loss = scene.seen(S.WAITING, reason="BeginTime")
    assert loss == Loss("its place was taken back: BeginTime", planned=True)
    assert scene.held.grace_to_cancel(scene.now) == 0.0
    assert scene.held.expects(scene.ticket, scene.now) is False
    assert scene.held.is_there, "nothing else is ordered before it is gone"


def test_its_hello_counts_before_the_scheduler_has_noticed(scene: Scene) -> None:
    scene.order()
    scene.seen(S.WAITING)
    assert scene.held.expects("another ticket", scene.now) is False
    assert scene.held.expects(scene.ticket, scene.now) is True
    assert scene.held.number == 1
    assert scene.seen(S.WAITING, waiting_s=2 * DAY) is None, "old news: neither lost nor too late"


def test_unknown_words_change_nothing(scene: Scene) -> None:
    scene.order()
    scene.seen(S.RUNNING)
    assert scene.seen(S.UNKNOWN) is None
    assert scene.held.number == 1


def test_lists_lag_behind_orders_and_forget_what_has_ended(scene: Scene) -> None:
    scene.order()
    scene.now += module.UNSEEN_S - 1
    assert scene.seen(None) is None
    assert scene.held.reason == "its scheduler does not list it yet"
    scene.seen(S.RUNNING)
    loss = scene.seen(None)
    assert loss == Loss("its scheduler does not know its allocation any more")
    scene.order()
    scene.now += module.UNSEEN_S + 1
    assert scene.seen(None) == loss


def test_each_order_has_a_name_and_a_ticket_of_its_own(scene: Scene) -> None:
    first, ticket = scene.order(), scene.ticket
    scene.seen(S.ENDED, gone=Gone.FINISHED)
    assert scene.order() != first
    assert scene.ticket != ticket
    assert scene.held.expects(ticket, scene.now) is False, "an earlier one"


def test_a_head_that_dies_before_its_note_orders_the_same_again(scene: Scene) -> None:
    """Mutation: the number is written down behind the order: two agents of one worker."""
    name, ticket = scene.held.begin(scene.now, scene.now)
    scene.held.save()  # and dies, with the order given or not
    scene.next_head()
    assert (scene.held.name, scene.held.needs_order) == (name, True)
    assert scene.seen(None) is None, "nobody lists it: it is ordered again"
    assert scene.held.begin(scene.now, scene.now) == (name, ticket)
    scene.held.save()
    scene.next_head()
    assert scene.seen(S.WAITING) is None, "somebody lists it: it was ordered"
    assert not scene.held.needs_order
    newest = read_incarnation(scene.home)
    assert newest is not None
    assert newest.stage == "ordered"


def test_a_head_finds_its_predecessors_agent_by_its_ticket(scene: Scene) -> None:
    scene.order()
    scene.next_head()
    assert scene.held.expects(scene.ticket, scene.now) is True
    assert scene.seen(S.RUNNING) is None
    assert scene.held.number == 1


def test_nothing_else_is_ordered_before_a_condemned_one_is_gone(scene: Scene) -> None:
    """Slurm and Kubernetes list what is lost as running for a while: its agent may be."""
    scene.order()
    scene.seen(S.RUNNING)
    scene.held.condemn(0.0, scene.now + 300.0)
    assert scene.held.grace_to_cancel(scene.now) == 0.0
    assert scene.held.grace_to_cancel(scene.now) is None, "not at each look"
    scene.now += module.CANCEL_AGAIN_S
    assert scene.held.grace_to_cancel(scene.now) == 0.0
    assert scene.seen(S.RUNNING) is None
    assert not scene.held.needs_order
    scene.now += 300.0
    assert scene.seen(S.RUNNING) is None
    assert scene.held.needs_order, "without a head its agent has ended by itself"


def test_short_lives_are_followed_after_growing_pauses(scene: Scene) -> None:
    pauses = []
    for _ in range(12):
        scene.order()
        scene.seen(S.RUNNING)
        scene.seen(S.ENDED, gone=Gone.PREEMPTED)
        pauses.append(scene.held.not_before - scene.now)
        scene.now = scene.held.not_before
    assert pauses[:4] == [1.0, 2.0, 4.0, 8.0]
    assert pauses[-1] == module.LONGEST_PAUSE_S
    scene.order()
    scene.seen(S.RUNNING)
    scene.now += module.SHORT_LIFE_S
    scene.seen(S.ENDED, gone=Gone.PREEMPTED)
    assert scene.held.not_before <= scene.now, "it has lived"


def test_what_we_end_ourselves_is_neither_lost_nor_short(scene: Scene) -> None:
    scene.order()
    scene.seen(S.RUNNING)
    scene.held.condemn(5.0)
    assert scene.seen(S.ENDED, gone=Gone.CANCELLED) is None
    assert scene.held.not_before <= scene.now


def test_a_wall_time_that_wobbles_stays(scene: Scene) -> None:
    scene.order()
    scene.seen(S.RUNNING, ends_in_s=600.0)
    ends_at = scene.held.ends_at
    scene.now += 10.0
    scene.seen(S.RUNNING, ends_in_s=591.5)
    assert scene.held.ends_at == ends_at
    scene.seen(S.RUNNING, ends_in_s=7200.0)
    assert scene.held.ends_at == scene.now + 7200.0


def test_names_are_for_every_scheduler() -> None:
    label = service_label("My_Very.Long-Experiment-Name-a1b2c3", "gpu")
    assert label.startswith("my-very-lo-")
    other = service_label("My_Very.Long-Experiment-Name-a1b2c3", "cpu")
    assert label != other, "two services of one experiment"
    names = {allocation_name(label, worker, 123_456) for worker in ("Q_1", "q-1", "_", "x" * 40)}
    assert len(names) == 4
    for name in names:
        assert len(name) <= LONGEST_NAME
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyz0123456789-")
