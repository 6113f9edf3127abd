"""The gate with real threads, and no process around it."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from queue import SimpleQueue
from typing import Any

import pytest

from dispatcher.core.actions import AnswerWait
from dispatcher.core.events import EndDelivered, WaitGivenUp, WaitStarted
from dispatcher.core.ids import TrialId
from dispatcher.core.model import FailReason, Verdict
from dispatcher.tuner_host import gate as gate_module
from dispatcher.tuner_host.gate import FIRST_LET_GO, Gate
from dispatcher.tuner_host.request import Request
from dispatcher.tuner_host.run_token import RunToken
from dispatcher.tuner_host.wait import PendingWait
from tuners.errors import (
    ParentFailed,
    SelfWait,
    WaitCancelled,
    WaitNotAllowed,
    WaitTimeout,
)

OK = Verdict()
PATIENCE_S = 120.0


class Waiter(threading.Thread):
    """A request thread that waits once and keeps what came of it."""

    def __init__(self, bench: Bench, trial: int, body: Callable[[Gate], Any]) -> None:
        super().__init__(daemon=True)
        self.request = Request(trial, bench.said.put)
        self._bench = bench
        self._body = body
        self.outcome: Any = None

    def run(self) -> None:
        gate = self._bench.gate
        assert self._bench.run_token.may_enter(self.request)
        gate.enter(self.request)
        try:
            self.outcome = self._body(gate)
        except BaseException as error:  # noqa: BLE001 - looked at by the test
            self.outcome = error
        gate.leave(self.request)
        self._bench.run_token.leave(self.request)

    def result(self) -> Any:
        self.join(PATIENCE_S)
        assert not self.is_alive()
        return self.outcome


class Bench:
    def __init__(self) -> None:
        self.now = 100.0
        self.run_token = RunToken(lambda: self.now)
        self.gate = Gate(self.run_token, make_way=lambda: self.make_way())
        self.make_way: Callable[[], None] = lambda: None
        self.said: SimpleQueue[Any] = SimpleQueue()
        self.waiters: list[Waiter] = []

    def wait(
        self, trial: int, *parents: int, mode: str = "all", timeout: float | None = None
    ) -> Waiter:
        return self.run(trial, lambda gate: gate.wait(parents, mode, timeout))

    def run(self, trial: int, body: Callable[[Gate], Any]) -> Waiter:
        self.gate.opened(trial)
        waiter = Waiter(self, trial, body)
        self.waiters.append(waiter)
        waiter.start()
        return waiter

    def heard(self) -> Any:
        return self.said.get(timeout=PATIENCE_S)


@pytest.fixture
def bench() -> Iterator[Bench]:
    bench = Bench()
    yield bench
    bench.gate.close("the test is over")
    for waiter in bench.waiters:
        while waiter.is_alive():
            bench.now += 1.0
            bench.run_token.overdue()
            waiter.join(0.01)


def test_a_wait_is_said_and_ends_with_the_gate(bench: Bench) -> None:
    child = bench.wait(5, 3)
    assert bench.heard() == WaitStarted(TrialId(5), 1, (TrialId(3),), "all")
    assert bench.gate.waiting(5) == "3"
    bench.gate.open(3, OK, [EndDelivered(TrialId(3))], bench.said.put)
    assert bench.heard() == EndDelivered(TrialId(3))
    assert child.result() == [3]
    assert bench.gate.waiting(5) == ""


def test_the_first_of_many_go_before_the_last_are_answered(bench: Bench) -> None:
    children = [bench.wait(10 + n, 3) for n in range(FIRST_LET_GO + 5)]
    for _ in children:
        bench.heard()
    still: list[set[int]] = []
    bench.make_way = lambda: still.append(bench.gate.blocked())
    bench.gate.open(3, OK)
    assert [child.result() for child in children] == [[3]] * len(children)
    assert [len(each) for each in still] == [5]


def test_a_wait_whose_time_passes_while_its_gate_opens_is_over_as_the_head_has_it(
    bench: Bench,
) -> None:
    """The head draws its conclusion from the parent's end, which was said before. Mutation: the
    thread raises ``WaitTimeout``, and says that it gave up, in the middle of the opening."""
    children = [bench.wait(10 + n, 3) for n in range(FIRST_LET_GO + 1)]
    for _ in children:
        bench.heard()

    def time_passes() -> None:
        (last,) = bench.gate.blocked()
        wait = bench.gate._waits[last]
        bench.gate._give_up(wait)  # as its own thread does
        wait.ticket.release()

    bench.make_way = time_passes
    bench.gate.open(3, OK)
    assert [child.result() for child in children] == [[3]] * len(children)
    assert bench.said.empty()


def test_a_request_that_leaves_late_leaves_the_wait_of_its_next_asking(bench: Bench) -> None:
    """Its answer is said before it leaves, so the head may have asked again: "not now" after a
    result has come. Mutation: it takes along whatever waits under its number."""
    late = Request(5, bench.said.put)
    bench.gate.enter(late)  # answered, and its thread has not gone on since
    bench.gate.opened(5)
    child = Waiter(bench, 5, lambda gate: gate.wait((3,), "all", None))
    child.start()  # nobody but the gate knows of it: lost, it would hold up the bench's end
    assert isinstance(bench.heard(), WaitStarted)
    bench.gate.leave(late)
    assert bench.gate.waiting(5) == "3"
    bench.gate.open(3, OK)
    assert child.result() == [3]


def test_what_has_ended_here_is_known_without_asking(bench: Bench) -> None:
    bench.gate.open(3, OK)
    bench.gate.open(4, Verdict(FailReason.KILLED))
    assert bench.wait(5, 3).result() == [3]
    failed = bench.wait(6, 3, 4).result()
    assert isinstance(failed, ParentFailed)
    assert (failed.parent, failed.reason) == (4, "killed")
    assert bench.wait(7, 4, 3, mode="any").result() == [3]
    # Nobody is asked; whose weights may be wanted is said, for retention.
    said = [bench.said.get(timeout=PATIENCE_S) for _ in range(bench.said.qsize())]
    assert all(isinstance(each, WaitStarted) and each.answered for each in said)
    assert [(each.trial, each.parents) for each in said] == [(5, (3,)), (6, (3, 4)), (7, (4, 3))]


def test_whom_a_request_has_waited_for_is_said_once(bench: Bench) -> None:
    bench.gate.open(3, OK)
    waiter = bench.run(5, lambda gate: [gate.wait((3,), "all", None) for _ in range(100)])
    assert waiter.result() == [[3]] * 100
    assert bench.said.qsize() == 1
    assert bench.said.get() == WaitStarted(TrialId(5), 1, (TrialId(3),), answered=True)


def test_all_fails_with_the_first_failure(bench: Bench) -> None:
    child = bench.wait(5, 1, 2)
    bench.heard()
    bench.gate.open(2, Verdict(FailReason.NO_TRIAL, (TrialId(9),)))
    failed = child.result()
    assert isinstance(failed, ParentFailed)
    assert (failed.parent, failed.reason, failed.chain) == (2, "no trial", (2, 9))


def test_any_fails_with_the_last_failure(bench: Bench) -> None:
    bench.gate.opened(1)
    bench.gate.opened(2)
    child = bench.wait(5, 1, 2, mode="any")
    bench.heard()
    bench.gate.open(1, Verdict(FailReason.FAILED))
    assert bench.gate.waiting(5) == "1, 2"
    bench.gate.open(2, Verdict(FailReason.LOST))
    assert isinstance(child.result(), ParentFailed)


def test_answers_are_matched_by_ticket(bench: Bench) -> None:
    child = bench.wait(5, 3)
    bench.heard()
    bench.gate.answer(AnswerWait(TrialId(5), 2, "unknown", parent=TrialId(3)))
    assert bench.gate.waiting(5) == "3"
    bench.gate.answer(AnswerWait(TrialId(5), 1, "granted", (TrialId(3),)))
    assert child.result() == [3]
    bench.gate.answer(AnswerWait(TrialId(5), 1, "self"))


def test_timeouts(bench: Bench) -> None:
    bench.gate.opened(3)
    late = bench.wait(5, 3, timeout=0.01)
    assert isinstance(late.result(), WaitTimeout)
    assert bench.heard() == WaitStarted(TrialId(5), 1, (TrialId(3),), "all")
    assert bench.heard() == WaitGivenUp(TrialId(5), 1)
    assert isinstance(bench.wait(6, 3, timeout=0).result(), WaitTimeout)
    assert bench.said.empty()  # known to be pending: nobody needs to be asked
    assert not bench.run_token.is_running()


@pytest.mark.parametrize("timeout", [0, 1e-6])
def test_a_poll_for_what_only_the_head_knows_waits_for_its_answer(
    bench: Bench, timeout: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A parent that ended under the process before this one. Mutation: a tuner that polls is told
    for ever that it has not ended."""
    monkeypatch.setattr(gate_module, "ANSWER_S", PATIENCE_S)
    for trial in range(5, 25):
        child = bench.wait(trial, 3, timeout=timeout)
        assert bench.heard() == WaitStarted(TrialId(trial), 1, (TrialId(3),), "all")
        bench.gate.answer(AnswerWait(TrialId(trial), 1, "granted", (TrialId(3),)))
        assert child.result() == [3]
    assert bench.said.empty()


@pytest.mark.parametrize(
    "parents, asked",
    [((3,), True), ((1,), False), ((1, 2), False), ((1, 3), True), ((1, 4), False)],
    ids=str,
)
@pytest.mark.parametrize("mode", ["all", "any"])
@pytest.mark.parametrize("timeout", [0, 1e-6, 60.0, 3600.0, float("inf")])
def test_how_long_a_wait_stands(
    bench: Bench, timeout: float, mode: str, parents: tuple[int, ...], asked: bool
) -> None:
    """To the letter, but for parents of which the head alone may know that they ended: its answer
    needs a moment. Mutations: those are not waited for; that moment is taken off a longer timeout,
    or added to it; all short timeouts are as long as that moment; no end at all is too long for
    the system."""
    for known in (1, 2, 4):
        bench.gate.opened(known)  # 3 is from before
    bench.gate.open(4, OK if mode == "all" else Verdict(FailReason.FAILED))
    wait = PendingWait(Request(5, bench.said.put), 1, parents, mode)
    least_s = gate_module.ANSWER_S if asked else 0.0
    expected = min(max(timeout, least_s), threading.TIMEOUT_MAX)
    assert bench.gate._patience(wait, timeout) == expected
    assert wait.timed
    forever = PendingWait(Request(6, bench.said.put), 1, parents, mode)
    assert bench.gate._patience(forever, None) == -1.0
    assert not forever.timed


def test_of_a_parent_from_before_the_head_is_asked_again_when_the_others_have_ended(
    bench: Bench,
) -> None:
    """By then it has taken the wait off its books. Mutation: the thread stands for ever."""
    bench.gate.opened(9)
    bench.gate.opened(10)
    child = bench.wait(20, 3, 9, 10)
    assert bench.heard() == WaitStarted(TrialId(20), 1, tuple(map(TrialId, (3, 9, 10))), "all")
    for ticket, ended in ((2, 9), (3, 10)):
        bench.gate.open(ended, OK)
        told = bench.said.get_nowait()
        assert told == WaitStarted(TrialId(20), ticket, tuple(map(TrialId, (3, 9, 10))), "all")
    bench.gate.answer(AnswerWait(TrialId(20), 1, "unknown", parent=TrialId(3)))  # of a former one
    bench.gate.answer(AnswerWait(TrialId(20), 3, "granted", tuple(map(TrialId, (3, 9, 10)))))
    assert child.result() == [3, 9, 10]


def test_of_parents_of_this_process_the_head_is_asked_once(bench: Bench) -> None:
    bench.gate.opened(9)
    bench.gate.opened(10)
    child = bench.wait(20, 9, 10)
    bench.heard()
    bench.gate.open(9, OK)
    bench.gate.open(10, OK)
    assert child.result() == [9, 10]
    assert bench.said.empty()


def test_a_poll_asks_nobody_where_all_is_known(bench: Bench) -> None:
    """Mutation: of one parent that has ended here and one that has not, the head is asked."""
    bench.gate.opened(3)
    bench.gate.opened(4)
    bench.gate.open(4, OK)
    assert isinstance(bench.wait(5, 3, 4, timeout=0).result(), WaitTimeout)
    assert bench.said.empty()
    assert bench.wait(6, 3, 4, mode="any", timeout=0).result() == [4]


def test_cancelled_once_and_for_all(bench: Bench) -> None:
    def stubborn(gate: Gate) -> int:
        for attempt in range(3):
            try:
                gate.wait((3,), "all", None)
            except WaitCancelled:
                refused = attempt
        return refused

    child = bench.run(5, stubborn)
    bench.heard()
    bench.gate.cancel(child.request)
    assert child.result() == 2
    assert bench.heard() == WaitGivenUp(TrialId(5), 1)
    assert bench.said.empty()


def test_where_no_wait_is_allowed(bench: Bench) -> None:
    with pytest.raises(WaitNotAllowed, match="runs no generate_parameters"):
        bench.gate.wait((3,), "all", None)
    with pytest.raises(WaitNotAllowed, match="because"):
        Gate(bench.run_token, refusal="because").wait((3,), "all", None)
    assert isinstance(bench.wait(5, 4, 5).result(), SelfWait)


def test_the_run_token_lets_one_go_at_a_time(bench: Bench) -> None:
    """Each holds the run token until it returns or waits again; the next is let go by that."""
    running: list[int] = []
    most: list[int] = []

    def body(trial: int) -> Callable[[Gate], None]:
        def run(gate: Gate) -> None:
            gate.wait((0,), "all", None)
            running.append(trial)
            most.append(len(running))
            sum(range(2_000))  # long enough for others to get in, if they could
            running.remove(trial)
            if trial % 2:
                gate.wait((1,), "all", None)

        return run

    bench.gate.opened(1)
    children = [bench.run(trial, body(trial)) for trial in range(10, 60)]
    for _ in children:
        bench.heard()
    bench.gate.open(0, OK)
    for child in children[::2]:
        assert child.result() is None
    bench.gate.open(1, OK)
    for child in children:
        assert child.result() is None
    assert most == [1] * len(children)


def test_a_holder_that_sleeps_loses_the_run_token_in_time(bench: Bench) -> None:
    asleep, wake = threading.Event(), threading.Event()

    def sleeper(gate: Gate) -> None:
        gate.wait((0,), "all", None)
        asleep.set()
        assert wake.wait(PATIENCE_S)

    first = bench.run(1, sleeper)
    bench.heard()
    second = bench.wait(2, 0)
    bench.heard()
    bench.gate.open(0, OK)
    assert asleep.wait(PATIENCE_S)
    assert bench.run_token.overdue() == pytest.approx(0.005)
    assert second.is_alive()
    bench.now += 0.006
    bench.run_token.overdue()
    assert second.result() == [0]
    wake.set()
    first.result()


def test_nobody_is_let_go_during_a_snapshot(bench: Bench) -> None:
    child = bench.wait(5, 3)
    bench.heard()
    while bench.run_token.is_running():
        pass  # the thread is on its last steps into the wait
    assert bench.run_token.try_pause()
    bench.gate.open(3, OK)
    assert not bench.run_token.may_enter(Request(6, bench.said.put))
    assert child.is_alive()
    assert not bench.run_token.is_running()
    bench.run_token.resume()
    assert child.result() == [3]


def test_no_snapshot_while_a_request_runs(bench: Bench) -> None:
    request = Request(6, bench.said.put)
    assert bench.run_token.may_enter(request)
    assert not bench.run_token.try_pause()
    bench.run_token.leave(request)
    assert bench.run_token.try_pause()
