"""Threads are used again, started in order, and tried again when the system has none."""

from __future__ import annotations

import threading
from collections.abc import Callable
from queue import SimpleQueue

import pytest

from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.request_threads import BACK_OFF_S, RequestThreads
from dispatcher.tuner_host.run_token import RunToken

PATIENCE_S = 120.0


def ignore(event: object) -> None:
    pass


class Bench:
    def __init__(self) -> None:
        self.now = 0.0
        self.notes: list[str] = []
        self.ran: SimpleQueue[int] = SimpleQueue()
        self.release = threading.Event()
        self.hold: set[int] = set()
        self.run_token = RunToken()
        self.threads = RequestThreads(self.run, self.run_token, self.notes.append, lambda: self.now)
        self.entered: list[int] = []

    def note_entries(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """Keep the order in which the run token lets requests in."""
        enter = self.run_token.may_enter

        def noted(request: Request) -> bool:
            let_in = enter(request)
            if let_in:
                self.entered.append(request.trial)
            return let_in

        monkeypatch.setattr(self.run_token, "may_enter", noted)

    def run(self, request: Request) -> None:
        self.ran.put(request.trial)
        if request.trial in self.hold:
            assert self.release.wait(PATIENCE_S)
        self.run_token.leave(request)

    def next(self) -> int:
        return self.ran.get(timeout=PATIENCE_S)


def test_all_enter_in_order_of_opening_and_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """What they do once they are in overlaps."""
    bench = Bench()
    bench.note_entries(monkeypatch)
    bench.hold = set(range(0, 100, 3))
    for trial in range(100):
        bench.threads.open(Request(trial, ignore))
    assert sorted(bench.next() for _ in range(100)) == list(range(100))
    assert bench.entered == list(range(100))
    bench.release.set()


def test_a_request_that_was_not_started_can_be_withdrawn() -> None:
    bench = Bench()
    assert bench.run_token.try_pause()
    first, second = Request(0, ignore), Request(1, ignore)
    bench.threads.open(first)
    bench.threads.open(second)
    assert bench.threads.withdraw(first)
    assert not bench.threads.withdraw(first)
    bench.run_token.resume()
    bench.threads.kick()
    assert bench.next() == 1
    assert bench.ran.empty()


def refusing(start: Callable[[threading.Thread], None], refuse: set[str]) -> object:
    def attempt(thread: threading.Thread) -> None:
        if refuse and thread.name.startswith("tuner-req"):
            raise RuntimeError("can't start new thread")
        start(thread)

    return attempt


def test_running_out_of_threads_is_told_and_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.hold = {0}
    refuse: set[str] = set()
    monkeypatch.setattr(threading.Thread, "start", refusing(threading.Thread.start, refuse))
    bench.threads.open(Request(0, ignore))
    assert bench.next() == 0
    refuse.add("all")
    bench.threads.open(Request(1, ignore))
    bench.threads.open(Request(2, ignore))
    assert bench.threads.overdue() == BACK_OFF_S
    assert bench.ran.empty()
    (note,) = bench.notes
    assert "refuses to start another thread" in note
    assert "1 are there, requests that wait for one: 1" in note
    bench.now += BACK_OFF_S
    assert bench.threads.overdue() == 2 * BACK_OFF_S  # tried, refused, told once only
    assert len(bench.notes) == 1
    assert not bench.threads.crowded()
    refuse.clear()
    bench.now += 2 * BACK_OFF_S
    bench.threads.overdue()
    assert {bench.next(), bench.next()} == {1, 2}
    assert "gives threads again" in bench.notes[1]
    bench.release.set()


def test_a_thread_that_is_done_takes_what_waits(monkeypatch: pytest.MonkeyPatch) -> None:
    bench = Bench()
    bench.hold = {0}
    refuse: set[str] = set()
    monkeypatch.setattr(threading.Thread, "start", refusing(threading.Thread.start, refuse))
    bench.threads.open(Request(0, ignore))
    assert bench.next() == 0
    refuse.add("all")
    for trial in (1, 2, 3):
        bench.threads.open(Request(trial, ignore))
    bench.release.set()
    assert [bench.next() for _ in range(3)] == [1, 2, 3]
