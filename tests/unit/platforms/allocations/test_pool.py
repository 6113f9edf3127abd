"""Workers of one service over a scheduler that a test plays: its list is all that they see."""

from __future__ import annotations

import asyncio
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
from dispatcher.platforms.allocations import cancelling, held, turns
from dispatcher.platforms.allocations import pool as pool_module
from dispatcher.platforms.allocations import process as process_module
from dispatcher.platforms.allocations.allocation import (
    Allocation,
    AllocationOrder,
    AllocationState,
    Allocator,
    Bounds,
    Gone,
)
from dispatcher.platforms.allocations.incarnation import RECORD
from dispatcher.platforms.allocations.pool import AllocationPool
from dispatcher.platforms.allocations.process import AllocationProcess, Load
from dispatcher.platforms.allocations.section import AllocationService
from dispatcher.platforms.allocations.sweeping import sweep
from dispatcher.platforms.given import Given
from dispatcher.platforms.platform import AllocationPlatform
from tests.support.processes import wait_until
from trial_runtime.agent.config import AgentConfig, TrialSpec
from trial_runtime.endpoint import Endpoint

S = AllocationState
SPENT = "its place ends too soon for another trial"
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
        self.closed = self.cleared = 0
        self.lingers = False
        self.first = S.WAITING
        self.fault: BackendError | None = None
        self.refusal: BackendError | None = None
        self.takes_it_all_the_same = False
        self.stuck: dict[str, Exception] = {}  # names that cannot be cancelled, and why

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
            for name in names:
                if name in self.stuck:
                    raise self.stuck[name]
            self.cancelled += [(name, grace_s) for name in names]
            for name in names:
                if name in self.listed and not self.lingers:
                    gone = {"state": S.ENDED, "gone": Gone.CANCELLED}
                    self.listed[name] = with_fields(self.listed[name], **gone)  # type: ignore[arg-type]

    def clear(self) -> None:
        assert not self.closed
        self.cleared += 1

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
    for module in (held, process_module, turns):
        for name in ("FIRST_PAUSE_S", "LONGEST_PAUSE_S", "HOPELESS_PAUSE_S"):
            monkeypatch.setattr(module, name, 0.01)
    monkeypatch.setattr(turns, "LONGEST_HOPELESS_PAUSE_S", 0.01)
    monkeypatch.setattr(turns, "SHORTEST_LOOK_S", 0.01)
    monkeypatch.setattr(cancelling, "CANCEL_AGAIN_S", 0.05)


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


def test_the_end_of_a_place_is_a_moment_of_the_clock_that_the_core_goes_by(
    scheduler: Scheduler, tmp_path: Path
) -> None:
    """The machine's own clock may be stepped by hours while a head leads. Mutation: that clock."""

    class Lent(AllocationPlatform[AllocationService]):
        def allocator(self, service: Any) -> Allocator:
            return scheduler

    class Drivers:
        def agent(self, process: Any) -> Any:
            return process

        def shared(self, section: Any, make: Callable[[], Any]) -> Any:
            return make()

        def load(self) -> Load:
            return Load(1, True)

        def now(self) -> float:
            return 5_000.0

    def nothing() -> Any:
        raise AssertionError("nothing is brought anywhere")

    section = AllocationService()
    given = Given("q-1", section, section, CONFIG, tmp_path, None, nothing, str)
    process: Any = Lent().driver(given, Drivers())  # type: ignore[arg-type]
    process.ensure(CONFIG)
    wait_until(lambda: scheduler.orders, "it is ordered")
    scheduler.says(scheduler.orders[0].name, S.RUNNING, ends_in_s=600.0)
    wait_until(lambda: process.pid == 1, "it runs")
    assert process.ends_at == 5_600.0
    process.end(time.monotonic())


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


class Bulk(Scheduler):
    """One that takes several orders in a request, all or none."""

    most_at_once = 2

    def __init__(self) -> None:
        super().__init__()
        self.requests: list[set[str]] = []

    def submit_many(self, orders: Sequence[AllocationOrder]) -> None:
        self.requests.append({order.name for order in orders})
        for order in orders:
            self.submit(order)


def test_orders_of_one_turn_are_one_request_where_a_scheduler_takes_many(tmp_path: Path) -> None:
    """As many as it takes; what was refused is asked for again. Mutation: a request for each."""
    scheduler = Bulk()
    scheduler.refusal = PassingBackendError("busy")
    head = Head(scheduler, tmp_path, 5, Bounds(5, 5)).begin()
    head.until(lambda: len(scheduler.requests) >= 4)
    assert scheduler.orders == []
    assert "busy" in (waits(head.processes[1]) or "")
    scheduler.refusal = None
    head.until(lambda: len(scheduler.orders) == 5)
    assert {order.name for order in scheduler.orders} == {f"lab-q-{n}-1" for n in range(1, 6)}
    assert {len(names) for names in scheduler.requests} == {2}
    assert head.losses == []
    head.leads = False
    head.leave()


def test_an_order_that_was_refused_and_given_is_given_once(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """A scheduler answers 500, and has taken it: its name is in the list."""
    scheduler.refusal, scheduler.takes_it_all_the_same = PassingBackendError("500"), True
    head = new_head().begin()
    head.until(lambda: waits(head.processes[0]) == "it was submitted")
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
    process.give_up(0.1)
    head.begin()
    head.until(lambda: scheduler.cancelled)
    assert scheduler.cancelled[0] == ("lab-q-1-1", 0.0)
    head.until(lambda: len(scheduler.cancelled) > 2, "it is asked again")
    assert waits(process) == "its last allocation has not ended yet"
    assert process.expects(1, scheduler.orders[0].config.ticket) is False
    assert len(scheduler.orders) == 1
    scheduler.says("lab-q-1-1", S.ENDED, gone=Gone.CANCELLED)
    head.until(lambda: process.pid == 2)
    assert head.losses == []


def test_a_wanted_end_is_on_record_before_it_is_asked_for(
    scheduler: Scheduler, new_head: Callable[..., Head], tmp_path: Path, monkeypatch: Any
) -> None:
    """Mutation: the pool saves after it has cancelled; a head killed between leaves no word of
    it."""
    scheduler.first = S.RUNNING
    head = new_head().begin()
    (process,) = head.processes
    head.until(lambda: process.pid == 1)
    records: list[bytes] = []
    cancel = scheduler.cancel

    def noting(names: Sequence[str], grace_s: float) -> None:
        records.append((tmp_path / "q-1" / RECORD).read_bytes())
        cancel(names, grace_s)

    monkeypatch.setattr(scheduler, "cancel", noting)
    process.give_up(0.0)
    head.until(lambda: records)
    assert b'"condemned"' in records[0]


def test_one_that_was_asked_to_leave_is_not_cancelled_before_it_can(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """Mutation: it ends as cancelled in the scheduler's books."""
    scheduler.first = S.RUNNING
    head = new_head().begin()
    (process,) = head.processes
    head.until(lambda: process.pid == 1)
    process.give_up(600.0)
    head.begin()
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 5)
    scheduler.says("lab-q-1-1", S.ENDED, gone=Gone.FINISHED)
    head.until(lambda: process.pid == 2)
    process.give_up(600.0)
    head.end()
    assert scheduler.cancelled == [("lab-q-1-2", 0.0)], "it is not waited for at the end"
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
    assert head.losses == [("q-2", Loss("nothing was to run there", planned=True, leaves=True))]
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
    worker = one.process("q-1", tmp_path)
    worker.ensure(CONFIG)
    wait_until(lambda: worker.trouble, "it fails")
    loss = worker.look(0.0)
    text = "allocator() of its platform failed: ValueError: no such thing"
    assert loss == Loss(text, hopeless=True)
    worker.leave()


@pytest.mark.parametrize("fault", [PassingBackendError, PermanentBackendError, KeyError])
def test_a_stray_that_cannot_be_cancelled_stops_nobody(
    scheduler: Scheduler, new_head: Callable[..., Head], fault: type[Exception]
) -> None:
    """Anybody may give a job our name. Mutation: an error of one call is one of the turn."""
    scheduler.says("lab-q-9-1", S.RUNNING)
    scheduler.says("lab-q-9-2", S.RUNNING)
    scheduler.stuck["lab-q-9-1"] = fault("Invalid user id for job lab-q-9-1")
    head = new_head(2).begin()
    head.until(lambda: len(scheduler.orders) == 2)
    head.until(lambda: scheduler.cancelled == [("lab-q-9-2", 0.0)])
    assert head.losses == []
    head.end()
    assert {job.state for name, job in scheduler.listed.items() if "q-9" not in name} == {S.ENDED}


def test_one_that_cannot_be_cancelled_says_so_and_stops_no_other(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    scheduler.first = S.RUNNING
    head = new_head(3).begin()
    one, two, three = head.processes
    head.until(lambda: one.pid and two.pid and three.pid)
    scheduler.stuck["lab-q-1-1"] = PermanentBackendError("scancel: access denied")
    for process in (one, two):
        process.give_up()
    head.begin()
    head.until(lambda: two.pid == 2, "the one beside it is cancelled and comes again")
    text = "its last allocation has not ended yet; scancel: access denied"
    head.until(lambda: waits(one) == text)
    assert (three.pid, head.losses) == (1, [])
    del scheduler.stuck["lab-q-1-1"]
    head.until(lambda: one.pid == 2)


def test_what_could_not_be_told_is_told_again(
    scheduler: Scheduler, new_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    """An agent that never learns the address of its head is lost, with all that it runs. Mutation:
    noted before it was done."""
    scheduler.first = S.RUNNING
    first = new_head(2).begin()
    first.until(lambda: all(each.pid for each in first.processes))
    first.leave()
    faults = [PassingBackendError("its disk is away"), PermanentBackendError("read-only")]
    tell = scheduler.tell

    def fails_at_first(name: str, config: AgentConfig) -> None:
        if name == "lab-q-1-1" and faults:
            raise faults.pop(0)
        tell(name, config)

    monkeypatch.setattr(scheduler, "tell", fails_at_first)
    second = new_head(2).begin(epoch=2)
    second.until(lambda: len(scheduler.given) == 2)
    assert [name for name, _ in scheduler.given] == ["lab-q-2-1", "lab-q-1-1"]
    assert second.processes[0].trouble == ""


def test_an_order_that_was_refused_for_good_is_not_there(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """Mutation: its worker is given up, and with it the next order, which has waited in vain."""
    scheduler.refusal, scheduler.first = PermanentBackendError("no such partition"), S.RUNNING
    head = new_head().begin()
    head.until(lambda: head.losses)
    scheduler.refusal = None
    head.begin()
    head.until(lambda: head.processes[0].pid)
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 20)
    assert (scheduler.cancelled, len(scheduler.orders)) == ([], 1)
    assert head.processes[0].expects(1, scheduler.orders[0].config.ticket) is True


def test_the_end_after_a_refusal_waits_for_nothing(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    scheduler.refusal = PermanentBackendError("no such partition")
    head = new_head().begin()
    head.until(lambda: head.losses)
    head.end()
    assert (scheduler.closed, scheduler.cancelled) == (1, [])


def test_what_is_listed_late_does_not_outlive_its_experiment(
    scheduler: Scheduler, new_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The order is given, the experiment ends, then the list has it. Mutation: gone by absence."""
    late: dict[str, Allocation] = {}

    def submit(order: AllocationOrder) -> None:
        scheduler.orders.append(order)
        late[order.name] = Allocation(order.name, S.WAITING)

    monkeypatch.setattr(scheduler, "submit", submit)
    head = new_head().begin()
    head.until(lambda: scheduler.orders)
    (process,) = head.processes
    ended = threading.Thread(target=lambda: process.end(time.monotonic() + 100.0))
    ended.start()
    looks = scheduler.looks
    wait_until(lambda: scheduler.looks > looks + 2, "it is looked for")
    assert not process.is_over
    with scheduler.lock:
        scheduler.listed.update(late)
    ended.join(60)
    assert not ended.is_alive()
    assert scheduler.listed["lab-q-1-1"].gone is Gone.CANCELLED


def test_what_is_left_behind_keeps_nobody_from_tidying_up(
    scheduler: Scheduler, new_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The list has one for ever: its end is not waited for, and the allocator is closed, which
    removes what has ended. Mutation: the pool's thread goes on until its program ends."""
    monkeypatch.setattr(pool_module, "CLOSE_S", 0.1)
    scheduler.lingers = True
    head = new_head(2).begin()
    head.until(lambda: len(scheduler.orders) == 2)
    for process in head.processes:
        process.end(time.monotonic())
    ours = {"lab-q-1-1", "lab-q-2-1"}
    wait_until(lambda: {name for name, _ in scheduler.cancelled} == ours, "both are cancelled")
    assert scheduler.closed == 0
    head.pool.close()
    wait_until(lambda: scheduler.closed == 1, "its allocator is closed")
    assert scheduler.cleared == 0, "one is there that may need it"


def test_the_end_asks_often_where_a_scheduler_has_not_answered_for_long(
    scheduler: Scheduler, new_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: the pause goes on growing while somebody waits."""
    monkeypatch.setattr(turns, "END_PAUSE_S", 0.02)
    head = new_head().begin()
    head.until(lambda: scheduler.orders)
    monkeypatch.setattr(turns, "LONGEST_PAUSE_S", 1000.0)
    scheduler.fault = PassingBackendError("it does not answer")
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 3)
    (process,) = head.processes
    ended = threading.Thread(target=lambda: process.end(time.monotonic() + 1000.0))
    ended.start()
    looks = scheduler.looks
    wait_until(lambda: scheduler.looks > looks + 20, "it is asked again and again")
    scheduler.fault = None
    ended.join(60)
    assert not ended.is_alive()


def test_a_program_that_is_missing_is_named(
    scheduler: Scheduler, new_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: our record is to blame."""

    def submit(order: AllocationOrder) -> None:
        raise FileNotFoundError(2, "No such file or directory", "sbatch")

    monkeypatch.setattr(scheduler, "submit", submit)
    head = new_head().begin()
    head.until(lambda: head.losses)
    text = "submit() of its platform failed: sbatch: No such file or directory"
    assert head.losses[0] == ("q-1", Loss(text, hopeless=True))


def test_a_record_that_cannot_be_written_is_named_and_nothing_is_ordered(
    scheduler: Scheduler, new_head: Callable[..., Head], tmp_path: Path
) -> None:
    (tmp_path / "q-1" / "allocation.json").mkdir(parents=True)
    head = new_head().begin()
    head.until(lambda: waits(head.processes[0]) not in (None, "", "it was submitted"))
    reason = waits(head.processes[0])
    assert reason is not None
    assert reason.startswith("cannot note its allocation in ")
    assert "allocation.json" in reason
    assert (scheduler.orders, head.losses) == ([], [])


def test_whoever_needs_no_place_is_not_lost_for_a_login_that_has_expired(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """Mutation: an experiment without queued trials fails, since nobody could be asked for a place
    that nobody wanted."""
    scheduler.fault = PermanentBackendError("401: the token has expired")
    head = new_head(2, Bounds(0, 2))
    head.load = Load(0, False)
    head.begin()
    head.until(lambda: waits(head.processes[0]) == "401: the token has expired")
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 5)
    assert head.losses == []
    head.load = Load(1, False)
    head.until(lambda: head.losses, "one is needed now")
    assert head.losses[0] == ("q-1", Loss("401: the token has expired", hopeless=True))


def test_a_look_that_returns_nothing_at_all_says_so(
    scheduler: Scheduler, new_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: it counts as one that was not made, and nothing is ever ordered."""
    monkeypatch.setattr(scheduler, "look", lambda: None)
    head = new_head().begin()
    head.until(lambda: head.losses)
    assert head.losses[0][1].reason.startswith("look() of its platform failed: TypeError")


@pytest.mark.parametrize("kind", [PassingBackendError, PermanentBackendError, OSError, KeyError])
def test_reasons_that_are_no_utf8_and_endless_can_be_written_down(
    scheduler: Scheduler,
    new_head: Callable[..., Head],
    monkeypatch: pytest.MonkeyPatch,
    kind: type[Exception],
) -> None:
    """Programs say what they say. Mutation: the journal cannot hold it, and the head ends."""

    def refuse(_order: AllocationOrder) -> None:
        raise kind("caf\udce9" + "x" * 1_000_000)

    monkeypatch.setattr(scheduler, "submit", refuse)
    head = new_head().begin()
    head.until(lambda: head.processes[0].trouble)
    text = head.processes[0].trouble
    assert "caf" in text
    assert len(text.encode()) < 5000


def test_a_wait_whose_reason_is_no_utf8_can_be_written_down(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """Mutation: the journal cannot hold it, and the head ends."""
    head = new_head().begin()
    head.until(lambda: scheduler.orders)
    scheduler.says("lab-q-1-1", S.WAITING, reason="caf\udce9")
    head.until(lambda: waits(head.processes[0]) == "caf\\udce9", "its reason is shown")


@pytest.mark.parametrize(
    "odd",
    [
        {"reason": None},
        {"reason": b"Resources"},
        {"waiting_s": None},
        {"waiting_s": "12:00"},
        {"waiting_s": float("inf")},
        {"waiting_s": float("nan")},
        {"ends_in_s": "1-00:00:00"},
        {"ends_in_s": 10**400},
        {"gone": 3},
        {"state": None},
        {"name": 7},
    ],
)
def test_an_allocation_of_wrong_types_is_refused_where_it_is_made(odd: dict[str, Any]) -> None:
    """Mutation: it breaks a turn in the middle, and nobody hears of those behind it."""
    with pytest.raises(TypeError, match="an allocation with something else than"):
        Allocation(**{"name": "lab-1", "state": S.RUNNING, **odd})


def test_the_words_of_an_allocation_are_taken_for_what_they_name() -> None:
    """A platform of another package writes ``"ended"``. Mutations: its probe has never ended, so
    that no trial ever begins; a word that nobody knows is an end, or an error."""
    ended: Any = {"state": "ended", "gone": "out of memory"}
    allocation = Allocation("lab-1", **ended)
    assert allocation.state is S.ENDED
    assert allocation.gone is Gone.OUT_OF_MEMORY
    odd: Any = {"state": "COMPLETING", "gone": "SIGBUS"}
    allocation = Allocation("lab-1", **odd)
    assert (allocation.state, allocation.gone) == (S.UNKNOWN, None)
    assert allocation == Allocation("lab-1", S.UNKNOWN)


def test_an_allocation_without_end_or_with_one_behind_us_is_one() -> None:
    """Clocks differ."""
    Allocation("lab-1", S.RUNNING, waiting_s=-3.5, ends_in_s=-1)
    Allocation("lab-1", S.RUNNING, ends_in_s=float("inf"))


@pytest.mark.parametrize("every_s", [0, -1.0, float("nan"), float("inf"), 1e300])
def test_a_scheduler_is_asked_in_good_measure_whatever_its_platform_says(
    scheduler: Scheduler,
    new_head: Callable[..., Head],
    monkeypatch: pytest.MonkeyPatch,
    every_s: float,
) -> None:
    """Mutation: it is asked without a pause, or never again, or its thread ends."""
    monkeypatch.setattr(turns, "SHORTEST_LOOK_S", 0.2)
    monkeypatch.setattr(turns, "LONGEST_LOOK_S", 0.3)
    monkeypatch.setattr(scheduler, "look_every_s", every_s)
    head = new_head().begin()
    begun = time.monotonic()
    head.until(lambda: scheduler.looks >= 4)
    assert time.monotonic() - begun >= 0.5
    assert head.losses == []


@pytest.mark.parametrize("kind", [SystemExit, asyncio.CancelledError])
@pytest.mark.parametrize("method", ["look", "submit", "cancel"])
def test_code_that_would_end_its_program_does_not_end_our_thread(
    scheduler: Scheduler,
    new_head: Callable[..., Head],
    monkeypatch: pytest.MonkeyPatch,
    method: str,
    kind: type[BaseException],
) -> None:
    """A library calls ``sys.exit``, a task is cancelled. Mutation: nobody asks the scheduler any
    more, and all workers wait for ever."""
    scheduler.says("lab-q-9-1", S.RUNNING)  # a stray, to be cancelled
    was, errors = getattr(scheduler, method), [kind("2")]

    def exits_once(*arguments: Any) -> Any:
        if errors:
            raise errors.pop()
        return was(*arguments)

    monkeypatch.setattr(held, "UNSEEN_S", 0.0)
    monkeypatch.setattr(scheduler, method, exits_once)
    head = new_head().begin()
    head.until(lambda: not errors and (head.losses or method == "cancel"), "it has failed")
    head.begin(2)
    head.until(lambda: scheduler.orders, "its order is given")
    head.until(lambda: scheduler.cancelled, "the stray is cancelled")
    for _, loss in head.losses:
        assert loss.reason == f"{method}() of its platform failed: {kind.__name__}: 2"


def test_a_name_that_is_listed_is_not_used_anew(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """A record was lost: its allocation is cancelled, and the next must not be called like it."""
    scheduler.says("lab-q-1-1", S.RUNNING)
    head = new_head().begin()
    head.until(lambda: scheduler.orders)
    assert scheduler.orders[0].name == "lab-q-1-2"
    assert scheduler.cancelled == [("lab-q-1-1", 0.0)]


def test_a_call_that_never_returns_is_a_reason(
    scheduler: Scheduler, new_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    let_go = threading.Event()
    monkeypatch.setattr(turns, "HANGS_S", 0.0)
    monkeypatch.setattr(scheduler, "look", lambda: let_go.wait(60) and [])
    head = new_head().begin()
    try:
        head.until(lambda: waits(head.processes[0]) == "look() of its platform has not returned")
    finally:
        let_go.set()


def test_nothing_is_ordered_while_nobody_knows_what_is_there(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    head = new_head(2, Bounds(1, 2))
    head.load = Load(0, True)
    head.begin()
    head.until(lambda: scheduler.orders)
    scheduler.fault = PassingBackendError("it does not answer")
    head.until(lambda: head.processes[1].trouble == "it does not answer")
    head.load = Load(9, True)
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 5)
    assert len(scheduler.orders) == 1
    scheduler.fault = None
    head.until(lambda: len(scheduler.orders) == 2)


def test_an_order_is_not_given_for_whoever_was_given_up_meanwhile(
    scheduler: Scheduler, new_head: Callable[..., Head], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mutation: it is given, and cancelled."""
    head, submit = new_head(2), scheduler.submit

    def submits(order: AllocationOrder) -> None:
        head.processes[1].give_up()
        submit(order)

    monkeypatch.setattr(scheduler, "submit", submits)
    with head.pool.lock:
        head.begin()
    head.until(lambda: scheduler.orders)
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 5)
    assert [order.name for order in scheduler.orders] == ["lab-q-1-1"]
    assert scheduler.cancelled == []


def test_what_a_dead_head_has_left_is_swept_by_its_label(scheduler: Scheduler) -> None:
    """Mutations: another service's; what has ended; what all share goes before they are gone."""
    for name in ("lab-q-1-1", "lab-q-2-7", "labour-q-1-1"):
        scheduler.says(name, S.WAITING)
    scheduler.says("lab-q-3-1", S.ENDED)
    assert sweep(scheduler, "lab") == ["lab-q-1-1", "lab-q-2-7"]
    assert {name for name, _ in scheduler.cancelled} == {"lab-q-1-1", "lab-q-2-7"}
    assert (scheduler.cleared, scheduler.closed) == (0, 1)
    scheduler.closed = 0
    assert sweep(scheduler, "lab") == []
    assert (scheduler.cleared, scheduler.closed) == (1, 1)


@pytest.mark.parametrize("how", ["ends", "leaves", "is left behind"])
def test_what_all_share_is_removed_when_none_is_left(
    scheduler: Scheduler, new_head: Callable[..., Head], how: str
) -> None:
    """Mutations: it is removed where one goes on for the next head, or may still be there."""
    scheduler.listed["lab-old-1"] = Allocation("lab-old-1", S.RUNNING)
    if how == "is left behind":
        scheduler.stuck["lab-old-1"] = PassingBackendError("not now")
    head = new_head(2).begin()
    head.until(lambda: len(scheduler.orders) == 2 and scheduler.looks > 3)
    if how == "leaves":
        head.leave()
    else:
        head.end()
    wait_until(lambda: scheduler.closed, "its thread has ended")
    assert scheduler.cleared == (how == "ends")


def test_a_place_in_which_nothing_may_begin_any_more_is_given_back_for_the_next(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """Not while something runs there. Mutations: it idles until its wall time; what never had a
    trial is followed at once by the next."""
    scheduler.first = S.RUNNING
    head = new_head().begin()
    (one,) = head.processes
    head.until(lambda: one.pid == 1)
    head.load = Load(3, True, begun=1, spent=SPENT)
    looks = scheduler.looks
    head.until(lambda: scheduler.looks > looks + 5)
    assert head.losses == []
    head.load = Load(3, False, begun=1, spent=SPENT)
    head.until(lambda: head.losses)
    assert head.losses == [("q-1", Loss(SPENT, planned=True, leaves=True))]
    head.load = Load(3, False)
    head.begin()
    head.until(lambda: one.pid == 2)
    assert one.waiting() is None

    monkey = held.FIRST_PAUSE_S, held.LONGEST_PAUSE_S
    held.FIRST_PAUSE_S = held.LONGEST_PAUSE_S = 600.0
    try:
        head.load = Load(3, False, begun=0, spent=SPENT)
        head.until(lambda: len(head.losses) == 2)
        head.begin()
        head.until(lambda: scheduler.listed["lab-q-1-2"].state is S.ENDED)
        head.until(lambda: "ended too soon for any trial" in (waits(one) or ""))
    finally:
        held.FIRST_PAUSE_S, held.LONGEST_PAUSE_S = monkey
    assert len(scheduler.orders) == 2


def test_an_order_that_is_refused_for_longer_than_the_limit_is_a_loss(
    scheduler: Scheduler, new_head: Callable[..., Head]
) -> None:
    """A quota of nothing. Mutation: only what is listed has a limit."""
    scheduler.refusal = PassingBackendError("exceeded quota: pods=0")
    head = new_head(1, Bounds(1, 1, limit_s=0.2)).begin()
    head.until(lambda: waits(head.processes[0]) == "exceeded quota: pods=0")
    head.until(lambda: head.losses)
    loss = head.losses[0][1]
    assert (loss.hopeless, loss.planned) == (True, False)
    assert loss.reason.endswith("s: exceeded quota: pods=0")
