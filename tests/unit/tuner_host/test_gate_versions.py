"""Waits for versions of shared stores, with real threads, and what a tuner holds."""

from __future__ import annotations

import pytest

from dispatcher.core.actions import AnswerWait
from dispatcher.core.events import VersionsHeld, WaitGivenUp, WaitStarted
from dispatcher.core.ids import TrialId
from dispatcher.core.model import FailReason
from dispatcher.tuner_host import gate
from dispatcher.tuner_host.gate import Gate
from dispatcher.tuner_host.run_token import RunToken
from tests.unit.tuner_host.test_gate import PATIENCE_S, Bench, bench  # noqa: F401 - a fixture
from tuners.errors import (
    ParentFailed,
    SelfWait,
    UnknownParent,
    VersionTimeout,
    WaitCancelled,
    WaitNotAllowed,
    WaitTimeout,
)


def wait(bench: Bench, trial: int, number: int = 0, by: int | None = None, timeout=None):  # type: ignore[no-untyped-def]  # noqa: F811
    return bench.run(trial, lambda gate: gate.wait_for_version("omega", number, by, timeout))


def test_a_number_wakes_all_that_wait_for_it_and_no_others(bench: Bench) -> None:  # noqa: F811
    early = [wait(bench, trial, 2) for trial in range(1, 20)]
    for _ in early:
        assert isinstance(bench.heard(), WaitStarted)
    late = wait(bench, 30, 3)
    assert bench.heard() == WaitStarted(TrialId(30), 1, (), "version", "omega", 3)
    assert bench.gate.waiting(30) == "version 3 of the shared store 'omega'"
    bench.gate.tell_version("other", 9, 0)
    bench.gate.tell_version("omega", 1, 0)
    assert len(bench.gate.blocked()) == 20
    bench.gate.tell_version("omega", 2, 0)
    assert {each.result() for each in early} == {2}
    assert bench.gate.blocked() == {30}
    assert wait(bench, 31, 2).result() == 2, "known without asking"
    bench.gate.tell_version("omega", 5, 0)
    assert late.result() == 5, "the newest there is"
    assert bench.gate._of_store == {}


def test_by_a_trial_only_its_own_or_what_the_head_knows(bench: Bench) -> None:  # noqa: F811
    first, second = wait(bench, 5, by=3), wait(bench, 6, by=4)
    bench.heard()
    bench.heard()
    bench.gate.tell_version("omega", 1, 3)
    assert first.result() == 1
    assert bench.gate.blocked() == {6}
    bench.gate.answer(AnswerWait(TrialId(6), 1, "granted", version=1))
    assert second.result() == 1, "published under a process before this one"
    bench.gate.answer(AnswerWait(TrialId(6), 1, "granted", version=1))  # late, and nothing


def test_a_trial_that_published_none_fails_the_wait(bench: Bench) -> None:  # noqa: F811
    child = wait(bench, 5, by=3)
    bench.heard()
    answer = AnswerWait(TrialId(5), 1, "failed", parent=TrialId(3), reason=FailReason.NO_VERSION)
    bench.gate.answer(answer)
    failed = child.result()
    assert isinstance(failed, ParentFailed)
    assert (failed.parent, failed.reason) == (3, "published no version")


def test_a_timeout_a_cancellation_and_what_cannot_be(bench: Bench) -> None:  # noqa: F811
    gone = wait(bench, 5, 2, timeout=0.01).result()
    assert isinstance(gone, VersionTimeout)
    assert isinstance(gone, WaitTimeout)
    assert "no version 2 of the shared store 'omega' after 0.01 s" in str(gone)
    assert isinstance(bench.heard(), WaitStarted)
    assert isinstance(bench.heard(), WaitGivenUp)
    assert isinstance(wait(bench, 6, by=6).result(), SelfWait)
    assert isinstance(wait(bench, 7, by=-1).result(), UnknownParent)
    stopped = wait(bench, 8, 2)
    bench.heard()
    bench.gate.close("the experiment is stopping")
    assert isinstance(stopped.result(), WaitCancelled)
    serial = Gate(RunToken(), refusal="one call at a time")
    with pytest.raises(WaitNotAllowed, match="one call at a time"):
        serial.wait_for_version("omega", 1, None, None)


@pytest.mark.parametrize("requested", [True, False], ids=["asked here", "from before"])
def test_a_poll_for_a_publisher_waits_for_the_head(
    bench: Bench,  # noqa: F811
    requested: bool,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Who has published is known to the head alone. Mutation: a tuner that polls is told for ever
    that it has not."""
    monkeypatch.setattr(gate, "ANSWER_S", PATIENCE_S)
    if requested:
        bench.gate.opened(3)
    bench.gate.tell_version("omega", 4, None)
    for trial in range(5, 25):
        child = wait(bench, trial, by=3, timeout=0)
        assert bench.heard() == WaitStarted(TrialId(trial), 1, (TrialId(3),), "version", "omega")
        bench.gate.answer(AnswerWait(TrialId(trial), 1, "granted", version=4))
        assert child.result() == 4
    assert bench.said.empty()


def test_what_is_held_is_said_in_the_thread_of_a_request(bench: Bench) -> None:  # noqa: F811
    bench.run(5, lambda gate: gate.hold("omega", (2, 3))).result()
    assert bench.heard() == VersionsHeld("omega", (2, 3))
    with pytest.raises(WaitNotAllowed, match="Call hold in generate_parameters"):
        bench.gate.hold("omega", (2,))
