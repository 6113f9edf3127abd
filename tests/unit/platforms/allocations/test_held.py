"""What a scheduler says of a worker's allocation, and what that comes to."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core.model import EndReason
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
from dispatcher.platforms.allocations.incarnation import note_swept, read_incarnation

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
        self.held.tries()
        self.held.taken(self.now)
        self.held.save()
        return name

    def hears(self, ticket: str) -> bool | None:
        return self.held.hears(ticket, self.now)

    def condemn(self, grace_s: float, fence_until: float = float("inf")) -> None:
        self.held.condemn(grace_s, self.now, fence_until)

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


@pytest.mark.parametrize("seen_last", [S.RUNNING, S.WAITING])
@pytest.mark.parametrize("then", [S.ENDED, None])
def test_the_next_head_knows_which_end_was_wanted(
    scene: Scene, seen_last: AllocationState, then: AllocationState | None
) -> None:
    """Mutation: that it is to end is not noted. Then its end is a loss that nobody has planned, or
    it is waited for although it is gone, since its order is young."""
    scene.order()
    scene.seen(seen_last)
    scene.condemn(0.0)
    scene.held.save()
    scene.now += 2.0
    held = scene.next_head()
    assert (held.is_condemned, held.grace_s) == (True, 0.0)
    assert scene.hears(scene.ticket) is False
    assert scene.seen(then, gone=Gone.FINISHED) is None if then else scene.seen(then) is None
    assert not held.is_there
    assert scene.next_head().needs_order


def test_one_that_was_recalled_and_then_listed_is_on_record_as_to_end(scene: Scene) -> None:
    """Mutation: it is not noted when it appears."""
    scene.order()
    scene.condemn(0.0)
    scene.held.save()
    assert not scene.next_head().is_condemned, "its list may lag: the next head looks anew"
    scene.condemn(0.0)
    scene.seen(S.WAITING)
    assert scene.next_head().is_condemned


def test_beyond_its_limit_a_wait_is_one_for_ever(tmp_path: Path) -> None:
    scene = Scene(tmp_path, limit_s=100.0)
    scene.order()
    assert scene.seen(S.WAITING, reason="BadConstraints", waiting_s=99.0) is None
    assert scene.held.overdue(scene.now) is None
    scene.seen(S.WAITING, reason="BadConstraints", waiting_s=101.0)
    text = "it has waited for its place for 100 s: BadConstraints"
    assert scene.held.overdue(scene.now) == Loss(text, hopeless=True)
    assert scene.held.grace_s == 0.0
    assert scene.held.overdue(scene.now) is None, "it is over"


@pytest.mark.parametrize("stage", ["refused", "unlisted", "pulls", "strange", "heard", "runs"])
def test_the_limit_holds_whatever_it_waits_for(tmp_path: Path, stage: str) -> None:
    """For a quota, in a list that lags, for an image, in a state that nobody knows. Mutation: only
    the queue counts, and an image that cannot be pulled is waited for as long as the server likes.
    """
    scene = Scene(tmp_path, limit_s=100.0)
    if stage == "refused":
        scene.held.begin(scene.now, scene.now)
        for _ in range(9):
            scene.held.tries()
            scene.held.refused(scene.now, hopeless=False, certain=False)
            scene.now += 12.0
            scene.held.begin(scene.now, scene.now)
    else:
        scene.order()
        scene.now += 101.0
    if stage == "pulls":
        scene.seen(S.STARTING, reason="ImagePullBackOff")
    elif stage == "strange":
        scene.seen(S.UNKNOWN, reason="in orbit")
    elif stage == "heard":
        scene.hears(scene.ticket)
    elif stage == "runs":
        scene.seen(S.RUNNING)
    loss = scene.held.overdue(scene.now, "quota" if stage == "refused" else "")
    why = {
        "refused": "quota",
        "unlisted": "its scheduler gives no reason",
        "pulls": "ImagePullBackOff",
        "strange": "in orbit",
    }.get(stage)
    text = f"it has waited for its place for 100 s: {why}"
    assert loss == (Loss(text, hopeless=True) if why else None)
    assert scene.held.is_condemned == (why is not None)


def test_whoever_cancels_one_is_not_fought(scene: Scene) -> None:
    """However long it had run. Mutation: the next one is ordered at once, again and again."""
    pauses = []
    for _ in range(5):
        scene.order()
        scene.seen(S.RUNNING)
        scene.now += 3600.0
        scene.seen(S.ENDED, gone=Gone.CANCELLED)
        pauses.append(scene.held.not_before - scene.now)
        scene.now = scene.held.not_before
    assert pauses == [60.0, 120.0, 240.0, 300.0, 300.0]
    text = "somebody has cancelled its allocation: the next one is asked for later"
    assert scene.held.why_later == text
    scene.order()
    scene.seen(S.RUNNING)
    scene.now += 3600.0
    scene.seen(S.ENDED, gone=Gone.PREEMPTED)
    assert scene.held.not_before <= scene.now, "that is forgotten"


def test_places_in_which_nothing_can_run_are_asked_for_less_and_less_often(scene: Scene) -> None:
    """Mutation: a wall time that is too short storms the scheduler."""
    pauses = []
    for _ in range(4):
        scene.order()
        scene.seen(S.RUNNING)
        scene.held.was_in_vain()
        scene.condemn(0.0)
        scene.seen(S.ENDED)
        pauses.append(scene.held.not_before - scene.now)
        scene.now = scene.held.not_before
    assert pauses == [1.0, 2.0, 4.0, 8.0]
    assert "ended too soon for any trial" in scene.held.why_later
    scene.order()
    scene.seen(S.RUNNING)
    scene.condemn(0.0)
    scene.seen(S.ENDED)
    assert scene.held.not_before <= scene.now, "what we have given back was of use"


@pytest.mark.parametrize(
    "gone, text, hopeless, planned",
    [
        (Gone.PREEMPTED, "its allocation was preempted: by 17", False, True),
        (Gone.EVICTED, "its allocation was evicted: by 17", False, True),
        (Gone.NODE_LOST, "the node of its allocation is lost: by 17", False, True),
        (Gone.WALL_TIME, "its allocation has reached its wall time: by 17", False, True),
        (Gone.OUT_OF_MEMORY, "its allocation ran out of memory: by 17", False, False),
        (Gone.FINISHED, "its agent has left: by 17", False, False),
        (Gone.CANCELLED, "somebody has cancelled its allocation: by 17", False, True),
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
    ends_as = EndReason.OUT_OF_MEMORY if gone is Gone.OUT_OF_MEMORY else None
    assert loss == Loss(text, hopeless, planned=planned, ends_as=ends_as)
    assert (scene.held.is_there, scene.held.needs_order) == (False, True)


def test_each_way_to_end_has_its_sentence() -> None:
    assert set(module.HOW) == {*Gone, None}


def test_one_that_ran_and_waits_again_would_begin_anew_under_its_ticket(scene: Scene) -> None:
    """Mutation: what Slurm requeues starts a second agent with the name of the first."""
    scene.order()
    scene.seen(S.RUNNING)
    loss = scene.seen(S.WAITING, reason="BeginTime")
    assert loss == Loss("its place was taken back: BeginTime", planned=True)
    assert scene.held.grace_s == 0.0
    assert scene.hears(scene.ticket) is False
    assert scene.held.is_there, "nothing else is ordered before it is gone"


def test_its_hello_counts_before_the_scheduler_has_noticed(scene: Scene) -> None:
    scene.order()
    scene.seen(S.WAITING)
    assert scene.hears("another ticket") is False
    assert scene.hears(scene.ticket) is True
    assert scene.held.number == 1
    assert scene.seen(S.WAITING, waiting_s=2 * DAY) is None, "old news: neither lost nor too late"


def test_a_scheduler_that_forgets_what_runs_ends_nothing_while_its_agent_speaks(
    scene: Scene,
) -> None:
    """A controller that is restarted may have an older state. Mutations: what runs is given up; one
    whose agent is silent, or was never heard, is kept."""
    scene.order()
    scene.seen(S.RUNNING)
    scene.now += 3600.0
    held = scene.held
    scene.hears(scene.ticket)
    for _ in range(3):
        assert held.seen(None, scene.now, scene.now, speaks=True) is None
        assert held.number == 1
    assert held.seen(None, scene.now, scene.now) is not None, "it is silent"
    scene.now = held.not_before
    scene.order()
    scene.seen(S.RUNNING)
    scene.now += 3600.0
    assert held.seen(None, scene.now, scene.now, speaks=True) is not None, "of another one"


def test_what_was_swept_while_nobody_led_is_waited_for_and_no_loss(scene: Scene) -> None:
    """Mutations: the next head takes it for somebody's wish, and pauses; it orders beside it."""
    scene.order()
    scene.seen(S.RUNNING)
    note_swept(scene.home)
    held = scene.next_head()
    assert (held.is_condemned, held.number, held.hears(scene.ticket, scene.now)) == (
        True,
        None,
        False,
    )
    assert scene.seen(S.RUNNING) is None
    assert held.is_there
    assert scene.seen(S.ENDED, gone=Gone.CANCELLED) is None
    assert held.needs_order
    assert held.not_before <= scene.now
    assert scene.order().endswith("-2")
    note_swept(scene.home)
    scene.next_head()
    assert scene.seen(None) is None
    note_swept(scene.home)
    assert read_incarnation(scene.home).stage == "gone"  # type: ignore[union-attr]
    note_swept(scene.home / "nobody")
    assert not (scene.home / "nobody").exists()


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
    assert scene.hears(ticket) is False, "an earlier one"


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
    assert scene.hears(scene.ticket) is True
    assert scene.seen(S.RUNNING) is None
    assert scene.held.number == 1


def test_nothing_else_is_ordered_before_a_condemned_one_is_gone(scene: Scene) -> None:
    """Slurm and Kubernetes list what is lost as running for a while: its agent may be."""
    scene.order()
    scene.seen(S.RUNNING)
    scene.condemn(0.0, scene.now + 300.0)
    assert scene.held.grace_s == 0.0
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
    scene.condemn(5.0)
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


def test_a_thousand_workers_of_long_names_share_no_name() -> None:
    """One of two that did would be cancelled for the other. Mutation: a digest of two bytes."""
    workers = [f"a100-partition-{group}-{i}" for group in range(5) for i in range(1000)]
    assert len({allocation_name("lab-0a1b2c", each, 1) for each in workers}) == len(workers)
