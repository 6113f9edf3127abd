"""Threads that stand still are told from threads that compute."""

from __future__ import annotations

import threading
from queue import SimpleQueue
from typing import Any

import pytest

from dispatcher.core.actions import Deliver
from dispatcher.core.events import DeliveryStandsStill, ForeignWaitOver, ForeignWaitSeen
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Verdict
from dispatcher.tuner_host.delivery import Delivery
from dispatcher.tuner_host.foreign_waits import (
    DELIVERY_LOOK_MAX_S,
    DELIVERY_LOOK_S,
    LOOK_MAX_S,
    LOOK_S,
    ForeignWaits,
    StillDelivery,
    ThreadOfOurs,
    ran_ns,
)
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.run_token import RunToken

SEEN, OVER = ForeignWaitSeen(TrialId(3)), ForeignWaitOver(TrialId(3))


class Bench:
    """A request whose thread's processor time is set by the test."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ran_ms = 0.0
        self.said: SimpleQueue[Any] = SimpleQueue()
        self.run_token = RunToken(lambda: self.now)
        self.waits = ForeignWaits(self.run_token, lambda: self.now, self.ran)
        self.request = Request(3, self.said.put, thread=1, native_thread=1)
        assert self.run_token.may_enter(self.request)

    def ran(self, request: ThreadOfOurs) -> int:
        return int(self.ran_ms * 1e6)

    def after(self, elapsed_s: float, ran_ms: float) -> list[Any]:
        """What is said at looks that follow, the thread having run for so long."""
        self.waits.look()
        self.now += elapsed_s
        self.ran_ms += ran_ms
        self.waits.look()
        return [self.said.get() for _ in range(self.said.qsize())]


def test_told_once_and_when_it_is_over() -> None:
    bench = Bench()
    assert bench.after(LOOK_S, 50) == []  # nothing to compare with yet
    assert bench.after(LOOK_S, 20) == []
    assert bench.after(LOOK_S, 0.01) == [SEEN]
    assert bench.after(LOOK_MAX_S, 0.01) == []
    assert bench.after(LOOK_MAX_S, 500) == [OVER]


def test_threads_that_share_the_interpreter_do_not_stand_still() -> None:
    bench = Bench()
    for _ in range(10):
        assert bench.after(LOOK_S, 1.5) == []


def test_a_new_entry_begins_anew() -> None:
    bench = Bench()
    bench.after(LOOK_S, 0)
    bench.run_token.block(bench.request)
    assert bench.waits.look() is None
    bench.run_token.go_on(bench.request)
    assert bench.after(LOOK_S / 2, 0) == []
    assert bench.after(LOOK_S, 0) == []
    assert bench.after(LOOK_S, 0) == [SEEN]


def test_no_hurry_where_nothing_is_new() -> None:
    bench = Bench()
    for _ in range(20):
        bench.after(LOOK_MAX_S, 0)
    assert bench.waits.look() == pytest.approx(LOOK_MAX_S)
    bench.run_token.may_enter(Request(4, bench.said.put, thread=2, native_thread=2))
    assert bench.waits.look() == pytest.approx(LOOK_S)


class DeliveryBench:
    """The thread that delivers, in a call of request 9, with a result behind it."""

    def __init__(self) -> None:
        self.now = 0.0
        self.ran_ms = 0.0
        self.said: list[Any] = []
        none: Any = None
        self.delivery = Delivery(none, none, none, none, {}, print, print)
        self.delivery.request = 9
        self.still = StillDelivery(
            self.delivery,
            self.said.append,
            lambda ident: "tuner.py:4 (wait())",
            lambda: self.now,
            lambda thread: int(self.ran_ms * 1e6),
        )

    def after(self, elapsed_s: float, ran_ms: float) -> list[Any]:
        """What is said at a look that follows, the thread having run for so long."""
        self.said.clear()
        self.now += elapsed_s
        self.ran_ms += ran_ms
        self.still.look()
        return list(self.said)


def test_a_result_behind_a_call_that_stands_still_is_named_with_the_line() -> None:
    bench = DeliveryBench()
    assert bench.still.look() is None
    bench.delivery.put(Deliver(TrialId(5), "{}", "1", True, Verdict(), False, False))
    assert bench.after(0, 0) == []
    line = "in generate_parameters of request 9, at tuner.py:4 (wait())"
    assert bench.after(DELIVERY_LOOK_S, 1) == [DeliveryStandsStill(TrialId(5), line)]
    assert bench.after(DELIVERY_LOOK_S, 1) == []
    assert bench.after(DELIVERY_LOOK_S, 900) == [DeliveryStandsStill(TrialId(5), over=True)]


def test_the_next_delivery_that_stands_still_is_named_as_well(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mutation: a new delivery begins as the one before ended, and its deadlock has no name."""
    bench, due = DeliveryBench(), TrialId(5)
    monkeypatch.setattr(bench.delivery, "next_due", lambda: due)
    bench.after(0, 0)
    assert [each.trial for each in bench.after(DELIVERY_LOOK_S, 1)] == [5]
    due = TrialId(6)
    assert bench.after(0, 900) == []
    (still,) = bench.after(DELIVERY_LOOK_S, 1)
    assert (still.trial, still.over) == (6, False)


def test_a_delivery_that_moves_by_turns_is_named_less_and_less_often() -> None:
    bench = DeliveryBench()
    bench.delivery.put(Deliver(TrialId(5), "{}", "1", True, Verdict(), False, False))
    said = 0
    for second in range(600):
        said += len(bench.after(1.0, 0.0 if second % 2 else 900.0))
    assert said < 600 / DELIVERY_LOOK_MAX_S + 20


def test_the_kernels_figures() -> None:
    """A thread in an Event does not run; the one that looks does."""
    ready, release = threading.Event(), threading.Event()
    sleeper = Request(1, print)

    def sleep() -> None:
        sleeper.thread = threading.get_ident()
        sleeper.native_thread = threading.get_native_id()
        ready.set()
        release.wait(120)

    thread = threading.Thread(target=sleep)
    thread.start()
    assert ready.wait(120)
    me = Request(2, print, threading.get_ident(), threading.get_native_id())
    moved = True
    while moved:  # once it has reached its wait, it does not run at all
        before, mine = ran_ns(sleeper), ran_ns(me)
        assert mine is not None
        while ran_ns(me) == mine:  # counted at the kernel's next tick
            sum(range(10_000))
        moved = ran_ns(sleeper) != before
    release.set()
    thread.join()
