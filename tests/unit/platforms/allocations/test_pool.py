"""Workers of one service over a scheduler that a test plays: its list is all that they see."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace as with_fields
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from dispatcher.errors import BackendError, PassingBackendError, PermanentBackendError
from dispatcher.platforms.agents.process import Loss, Waiting
from dispatcher.platforms.allocations import held, pool
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Bounds,
    Gone,
)
from dispatcher.platforms.allocations.pool import AllocationPool
from dispatcher.platforms.allocations.process import AllocationProcess, Load
from tests.support.processes import wait_until
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

S = AllocationState
CONFIG = AgentConfig(
    worker="q-1",
    slots=2,
    head=Endpoint("tcp://127.0.0.1:1"),
    epoch=1,
    run_folder="/run",
    experiment_folder="/e",
    trial=TrialSpec("/code", command="true", environment={"KEY": "env:SECRET_OF_OURS"}),
    weights_root="/w",
)


class Scheduler(Allocator):
    """A scheduler with the allocations that it was asked for. It is slow to see a cancellation
    where ``lingers``."""

    look_every_s = 0.01

    def __init__(self) -> None:
        self.lock = threading.Lock()
        self.listed: dict[str, Allocation] = {}
        self.orders: list[AllocationOrder] = []
        self.given: list[tuple[str, AgentConfig]] = []
        self.cancelled: list[tuple[str, float]] = []
        self.looks = 0
        self.closed = 0
        self.lingers = False
        self.first = S.WAITING
        self.fault: BackendError | None = None
        self.refusal: BackendError | None = None
        self.takes_it_all_the_same = False

    def submit(self, order: AllocationOrder) -> None:
        with self.lock:
            if self.refusal is not None and not self.takes_it_all_the_same:
                raise self.refusal
            self.orders.append(order)
            self.listed.setdefault(order.name, Allocation(order.name, self.first))
            if self.refusal is not None:
                raise self.refusal

    def look(self) -> Sequence[Allocation]:
        with self.lock:
            self.looks += 1
            if self.fault is not None:
                raise self.fault
            return list(self.listed.values())

    def tell(self, name: str, config: AgentConfig) -> None:
        self.given.append((name, config))

    def cancel(self, names: Sequence[str], grace_s: float) -> None:
        with self.lock:
            self.cancelled += [(name, grace_s) for name in names]
            for name in names:
                if name in self.listed and not self.lingers:
                    gone = {"state": S.ENDED, "gone": Gone.CANCELLED}
                    self.listed[name] = with_fields(self.listed[name], **gone)  # type: ignore[arg-type]

    def close(self) -> None:
        self.closed += 1

    def says(self, name: str, state: AllocationState, **more: Any) -> None:
        with self.lock:
            self.listed[name] = Allocation(name, state, **more)


class Head:
    """One head, with all workers of the service."""

    def __init__(self, scheduler: Scheduler, home: Path, workers: int, bounds: Bounds) -> None:
        self.scheduler = scheduler
        self.leads = True
        self.load = Load(1 << 30, True)
        self.pool = AllocationPool(lambda: scheduler, "lab", bounds, leads=lambda: self.leads)
        self.processes = [
            self.pool.process(f"q-{n}", home / f"q-{n}", slots=2, load=lambda: self.load)
            for n in range(1, workers + 1)
        ]
        self.losses: list[tuple[str, Loss]] = []

    def begin(self, epoch: int = 1) -> Head:
        for process in self.processes:
            process.ensure(replace(CONFIG, worker=process.place, epoch=epoch))
        return self

    def until(self, condition: Callable[[], object], what: str = "it happens") -> None:
        """Look as the engine does, and give up who is lost, until something is so."""

        def look() -> object:
            for process in self.processes:
                loss = process.look(0.0)
                if loss is not None:
                    self.losses.append((process.place, loss))
                    process.give_up()
            return condition()

        wait_until(look, what)

    def end(self) -> None:
        for process in self.processes:
            process.end(time.monotonic() + 100.0)

    def leave(self) -> None:
        for process in self.processes:
            process.leave()


@pytest.fixture(autouse=True)
def _no_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (held, pool):
        for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S", "HOPELESS_PAUSE_S"):
            monkeypatch.setattr(module, name, 0.01)
    monkeypatch.setattr(pool, "LONGEST_HOPELESS_PAUSE_S", 0.01)
    monkeypatch.setattr(held, "CANCEL_AGAIN_S", 0.05)


@pytest.fixture
def scheduler() -> Scheduler:
    return Scheduler()


@pytest.fixture
def new_head(scheduler: Scheduler, tmp_path: Path) -> Iterator[Callable[..., Head]]:
    made: list[Head] = []

    def make(workers: int = 1, bounds: Bounds | None = None) -> Head:
        made.append(Head(scheduler, tmp_path, workers, bounds or Bounds(workers, workers)))
        return made[-1]

    yield make
    for head in made:
        head.leads = False
        head.leave()


def waits(process: AllocationProcess) -> str | None:
    waiting = process.waiting()
    return None if waiting is None else waiting.reason


def test_one_order_for_each_worker_and_one_look_for_all(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    head = new_head(3).begin()
    first = head.processes[0]
    head.until(lambda: len(scheduler.orders) == 3)
    scheduler.says("lab-q-1-1", S.WAITING, reason="Priority")
    head.until(lambda: waits(first) == "Priority")
    assert first.pid is None
    scheduler.says("lab-q-1-1", S.RUNNING, ends_in_s=600.0)
    head.until(lambda: first.pid == 1)
    assert first.waiting() is None
    assert first.ends_at is not None
    assert {order.name for order in scheduler.orders} == {f"lab-q-{n}-1" for n in (1, 2, 3)}
    assert len({order.config.ticket for order in scheduler.orders}) == 3
    assert head.losses == []


def test_an_order_keeps_to_its_own_folder_and_names_no_secret(
    scheduler: Scheduler,
    new_head: Callable[..., Head],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET_OF_OURS", "s3cret")
    head = new_head().begin()
    head.until(lambda: scheduler.orders)
    (order,) = scheduler.orders
    assert order.config.experiment_folder == str(tmp_path / "q-1")
    assert order.config.run_folder == ""
    assert order.environment["SECRET_OF_OURS"] == "s3cret", "its agent looks it up there"
    assert "s3cret" not in str((order.config, order.arguments, order.log))
    assert "trial_runtime.agent" in " ".join(order.arguments)


@pytest.mark.parametrize("stage", ["ordered", "seen", "runs"])
def test_a_head_that_dies_between_order_and_join_leaves_one_allocation(
    scheduler: Scheduler, new_head: Callable[..., Head], stage: str
) -> None:
    """Mutation: each head orders anew what it has not heard of."""
    first = new_head().begin()
    first.until(lambda: scheduler.orders)
    if stage == "seen":
        first.until(lambda: waits(first.processes[0]) == "it was submitted")
    if stage == "runs":
        scheduler.says("lab-q-1-1", S.RUNNING)
        first.until(lambda: first.processes[0].pid == 1)
    first.leads = False  # it is dead
    second = new_head().begin(epoch=2)
    second.until(lambda: scheduler.given)
    looks = scheduler.looks
    second.until(lambda: scheduler.looks > looks + 5)
    assert [order.name for order in scheduler.orders] == ["lab-q-1-1"]
    assert [(name, config.epoch) for name, config in scheduler.given] == [("lab-q-1-1", 2)]
    assert scheduler.cancelled == []
    ordered, given = scheduler.orders[0].config, scheduler.given[0][1]
    assert given == replace(ordered, epoch=2), "the same, but for its head"
    assert second.processes[0].expects(1, given.ticket) is True
    assert second.processes[0].expects(1, "") is False


def test_an_order_that_was_refused_and_given_is_given_once(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """A scheduler answers 500, and has taken it: its name is in the list."""
    scheduler.refusal, scheduler.takes_it_all_the_same = PassingBackendError("500"), True
    head = new_head().begin()
    head.until(lambda: waits(head.processes[0]) == "500")
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 5)
    assert len({order.name for order in scheduler.orders}) == 1
    scheduler.says("lab-q-1-1", S.RUNNING)
    head.until(lambda: head.processes[0].pid == 1)
    assert head.losses == []


def test_a_refusal_that_somebody_has_to_mend_is_a_loss_and_is_tried_again(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    scheduler.refusal = PermanentBackendError("no such partition", where="slurm")
    head = new_head().begin()
    head.until(lambda: head.losses)
    assert head.losses == [("q-1", Loss("slurm: no such partition", hopeless=True))]
    scheduler.refusal = None
    head.begin()
    head.until(lambda: scheduler.orders)


def test_a_scheduler_that_is_away_costs_nothing(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """Mutation: what cannot be looked at counts as gone."""
    head = new_head(2).begin()
    head.until(lambda: len(scheduler.orders) == 2)
    scheduler.says("lab-q-1-1", S.RUNNING)
    head.until(lambda: head.processes[0].pid == 1)
    scheduler.fault = PassingBackendError("slurmctld does not answer")
    head.until(lambda: waits(head.processes[1]) == "slurmctld does not answer")
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 5)
    assert (head.processes[0].pid, head.losses) == (1, [])
    scheduler.fault = None
    head.until(lambda: waits(head.processes[1]) == "it was submitted")
    assert len(scheduler.orders) == 2


def test_a_login_that_has_expired_is_a_loss_where_nothing_is_had_yet(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    scheduler.fault = PermanentBackendError("401: the token has expired")
    head = new_head().begin()
    head.until(lambda: head.losses)
    assert head.losses == [("q-1", Loss("401: the token has expired", hopeless=True))]


def test_a_preempted_one_is_followed_by_the_next_when_it_is_asked_for(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """Mutation: the next one is ordered before its loss is reported, and is given up for it."""
    scheduler.first = S.RUNNING
    head = new_head().begin()
    (process,) = head.processes
    for number in (1, 2, 3):
        head.until(lambda n=number: process.pid == n)  # type: ignore[misc]
        ticket = scheduler.orders[-1].config.ticket
        scheduler.says(f"lab-q-1-{number}", S.ENDED, gone=Gone.PREEMPTED, reason="by 17")
        head.until(lambda n=number: len(head.losses) == n)  # type: ignore[misc]
        assert process.expects(1, ticket) is None, "nobody is asked for"
        head.begin()
        assert process.expects(1, ticket) is False, "it must leave"
    expected = Loss("its allocation was preempted: by 17", planned=True)
    assert [loss for _, loss in head.losses] == [expected] * 3
    assert scheduler.cancelled == [], "all had ended by themselves"


def test_one_that_is_given_up_is_cancelled_before_the_next_is_ordered(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """Mutation: two allocations of one worker at once."""
    scheduler.first, scheduler.lingers = S.RUNNING, True
    head = new_head().begin()
    (process,) = head.processes
    head.until(lambda: process.pid == 1)
    process.give_up(3.0)
    head.begin()
    head.until(lambda: scheduler.cancelled)
    assert scheduler.cancelled[0] == ("lab-q-1-1", 3.0)
    head.until(lambda: len(scheduler.cancelled) > 2, "it is asked again")
    assert waits(process) == "its last allocation has not ended yet"
    assert process.expects(1, scheduler.orders[0].config.ticket) is False
    assert len(scheduler.orders) == 1
    scheduler.says("lab-q-1-1", S.ENDED, gone=Gone.CANCELLED)
    head.until(lambda: process.pid == 2)
    assert head.losses == []


def test_strays_of_this_service_are_cancelled_and_nobody_elses(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    for name in ("lab-q-9-4", "lab-q-1-7", "labour-q-1-1", "lab2-q-1-1"):
        scheduler.says(name, S.RUNNING)
    scheduler.says("lab-q-3-1", S.ENDED, gone=Gone.FAILED)
    head = new_head().begin()
    head.until(lambda: len(scheduler.cancelled) == 2)
    assert sorted(scheduler.cancelled) == [("lab-q-1-7", 0.0), ("lab-q-9-4", 0.0)]


def test_the_end_leaves_nothing_in_the_queue_and_waits_for_no_one_in_it(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    head = new_head(3).begin()
    head.until(lambda: len(scheduler.orders) == 3)
    head.end()
    assert {each.state for each in scheduler.listed.values()} == {S.ENDED}
    assert scheduler.closed == 1


def test_the_end_waits_for_agents_that_leave_by_themselves(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    scheduler.first = S.RUNNING
    head = new_head().begin()
    (process,) = head.processes
    head.until(lambda: process.pid == 1)
    ended = threading.Thread(target=lambda: process.end(time.monotonic() + 100.0))
    ended.start()
    looks = scheduler.looks
    wait_until(lambda: scheduler.looks > looks + 2, "it is looked at")
    assert scheduler.cancelled == []
    scheduler.says("lab-q-1-1", S.ENDED, gone=Gone.FINISHED)
    ended.join(60)
    assert not ended.is_alive()
    assert (scheduler.cancelled, scheduler.closed) == ([], 1)


def test_a_head_that_leaves_or_does_not_lead_changes_nothing(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    head = new_head(2).begin()
    head.until(lambda: len(scheduler.orders) == 2)
    head.leave()
    assert (scheduler.cancelled, scheduler.closed) == ([], 1)
    second = new_head(2).begin(epoch=2)
    second.until(lambda: len(scheduler.given) == 2)
    second.leads = False
    second.end()
    assert scheduler.cancelled == []
    assert {each.state for each in scheduler.listed.values()} == {S.WAITING}


def test_as_many_as_trials_need_and_back_when_idle(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    scheduler.first = S.RUNNING
    head = new_head(3, Bounds(1, 3, idle_s=0.0))
    head.load = Load(0, True)
    head.begin()
    one, two, _ = head.processes
    head.until(lambda: one.pid == 1)
    head.until(lambda: two.waiting() is not None)
    waiting = two.waiting()
    assert isinstance(waiting, Waiting)
    assert waiting.reason == "", "it is not asked for"
    head.load = Load(2, True)
    one.expects(1, scheduler.orders[0].config.ticket)
    head.until(lambda: two.pid == 1)
    assert len(scheduler.orders) == 2
    head.load = Load(0, False)
    head.until(lambda: head.losses)
    assert head.losses == [("q-2", Loss("nothing was to run there", planned=True))]
    head.begin()
    head.until(lambda: scheduler.listed["lab-q-2-1"].state is S.ENDED)
    head.until(lambda: waits(two) == "")
    assert (one.pid, len(scheduler.orders)) == (1, 2)


def test_what_nobody_needs_any_more_leaves_the_queue_unreported(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    head = new_head(1, Bounds(0, 1, idle_s=0.0)).begin()
    head.until(lambda: scheduler.orders)
    head.load = Load(0, False)
    head.until(lambda: scheduler.cancelled)
    head.until(lambda: waits(head.processes[0]) == "")
    assert head.losses == []


def test_an_allocator_that_cannot_be_made_says_why(tmp_path: Path) -> None:
    def make() -> Scheduler:
        raise ValueError("no such thing")

    one = AllocationPool(make, "lab", Bounds(1, 1))
    process = one.process("q-1", tmp_path)
    process.ensure(CONFIG)
    wait_until(lambda: process.trouble, "it fails")
    loss = process.look(0.0)
    assert loss == Loss("ValueError: no such thing", hopeless=True)
    process.leave()
