"""A scheduler that takes a place back and lends another one by itself, under the same ticket."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.platforms.agents.process import Loss
from dispatcher.platforms.allocations.allocation import Gone
from dispatcher.platforms.allocations.incarnation import read_incarnation
from dispatcher.platforms.allocations.pool import AllocationPool
from dispatcher.platforms.allocations.process import Load
from tests.support.processes import wait_until
from tests.unit.platforms.allocations.test_held import DAY, S, Scene
from tests.unit.platforms.allocations.test_pool import CONFIG, Bounds, Scheduler

MOVED = Loss("its place was taken back: Stopping", planned=True, returns=True)


@pytest.fixture
def scene(tmp_path: Path) -> Scene:
    made = Scene(tmp_path, limit_s=100.0)
    made.order()
    made.seen(S.RUNNING, ends_in_s=600.0, renewed=True)
    made.hears(made.ticket)
    return made


def test_one_that_is_moved_keeps_its_ticket_and_is_not_ordered_anew(scene: Scene) -> None:
    """Mutations: it is recalled, so that a job that goes on is deleted; the next agent of it is
    sent away; it is not lost at all, and its trials are waited for."""
    name, held = scene.held.name, scene.held
    assert scene.seen(S.WAITING, reason="Stopping", renewed=True) == MOVED
    assert (held.number, held.reason, held.ends_at) == (None, "Stopping", None)
    assert (held.is_condemned, held.grace_s, held.needs_order) == (False, None, False)
    assert scene.seen(S.WAITING, reason="Pending", renewed=True) is None, "it is said once"
    assert scene.seen(S.STARTING, renewed=True) is None
    assert scene.hears(scene.ticket) is True
    assert scene.seen(S.RUNNING, renewed=True) is None
    assert (held.name, held.number) == (name, 1)
    record = read_incarnation(scene.home)
    assert record is not None
    assert (record.number, record.stage) == (1, "ordered"), "the next head knows nothing else"


def test_an_agent_that_speaks_knows_better(scene: Scene) -> None:
    """The next one may be there before its scheduler says so, whose word is old. Mutation: what
    has begun there is ended."""
    held = scene.held
    for state in (S.WAITING, S.STARTING):
        listed = listed_as(scene, state)
        assert held.seen(listed, scene.now, scene.now, speaks=True) is None
        assert held.number == 1
    assert held.seen(listed_as(scene, S.WAITING), scene.now, scene.now) == MOVED


def listed_as(scene: Scene, state: S) -> object:
    from dispatcher.platforms.allocations.allocation import Allocation

    return Allocation(scene.held.name or "", state, "Stopping", renewed=True)


def test_its_next_wait_has_the_limit_anew(scene: Scene) -> None:
    """Mutation: a job that has run for a day has waited for longer than any limit."""
    scene.now += DAY
    scene.seen(S.WAITING, reason="Pending", renewed=True)
    assert scene.held.overdue(scene.now + 99.0) is None
    loss = scene.held.overdue(scene.now + 101.0)
    assert loss == Loss("it has waited for its place for 100 s: Pending", hopeless=True)
    assert scene.held.is_condemned


def test_its_end_is_one_as_ever(scene: Scene) -> None:
    scene.seen(S.WAITING, reason="Pending", renewed=True)
    loss = scene.seen(S.ENDED, gone=Gone.FINISHED, renewed=True)
    assert loss == Loss("its agent has left")
    assert scene.held.needs_order


def test_the_next_head_waits_for_it(scene: Scene) -> None:
    """It is moved while no head leads. Mutation: it is lost, or ordered again."""
    scene.held.save()
    held = scene.next_head()
    assert scene.seen(S.WAITING, reason="Pending", renewed=True) is None
    assert held.reason == "Pending"
    assert scene.hears(scene.ticket) is True
    assert held.number == 1


def test_a_worker_that_is_moved_waits_and_nothing_is_cancelled(tmp_path: Path) -> None:
    """In its pool, until it runs again. Mutation: a loss ends what is wanted, and with it the
    allocation."""
    scheduler = Scheduler()
    pool = AllocationPool(lambda: scheduler, "lab", Bounds(1, 1))
    process = pool.process("q-1", tmp_path)
    process.ensure(CONFIG)
    try:
        wait_until(lambda: scheduler.orders, "it is ordered")
        (name,) = scheduler.listed
        scheduler.says(name, S.RUNNING, renewed=True)
        wait_until(lambda: process.pid == 1, "it runs")
        scheduler.says(name, S.WAITING, reason="Stopping", renewed=True)
        lost: list[Loss] = []

        def looks() -> bool:
            loss = process.look(1000.0)
            lost.extend([loss] if loss is not None else [])
            return bool(lost)

        wait_until(looks, "it is moved")
        assert lost == [MOVED]
        process.ensure(CONFIG)  # as the engine asks for it again
        wait_until(lambda: process.waiting(), "it waits")
        waiting = process.waiting()
        assert waiting is not None
        assert waiting.reason == "Stopping"
        scheduler.says(name, S.RUNNING, renewed=True)
        wait_until(lambda: process.pid == 1, "it runs again")
        assert (scheduler.cancelled, len(scheduler.orders)) == ([], 1)
    finally:
        process.leave()
        pool.close()


def test_a_place_whose_agent_was_asked_to_go_is_not_given_back(tmp_path: Path) -> None:
    """Nothing more may begin there, and its scheduler lends another one. Mutation: what is of no
    more use goes back, so that a job that is moved is deleted."""
    scheduler = Scheduler()
    pool = AllocationPool(lambda: scheduler, "lab", Bounds(1, 1))
    load = Load(1, False, 1, "its place ends too soon for another trial", going=True)
    process = pool.process("q-1", tmp_path, load=lambda: load)
    process.ensure(CONFIG)
    try:
        wait_until(lambda: scheduler.orders, "it is ordered")
        (name,) = scheduler.listed
        scheduler.says(name, S.RUNNING, renewed=True)
        wait_until(lambda: process.pid == 1, "it runs")
        assert process.look(0.0) is None
        load = load._replace(going=False)  # it has had all trials that it is for
        assert process.look(0.0) == Loss(load.spent, planned=True, leaves=True)
        scheduler.says(name, S.RUNNING)
        load = load._replace(going=True)
        wait_until(lambda: process.look(0.0), "another scheduler's is given back")
    finally:
        process.leave()
        pool.close()
