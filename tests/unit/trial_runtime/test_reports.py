"""What attempts report becomes rows of the journal, so each may report a bounded number."""

from __future__ import annotations

from typing import Any

import pytest

from dispatcher.platforms.agents.message_check import MessageCheck
from tests.support.workers import LOCAL
from trial_runtime import facts, wire
from trial_runtime.agent.attempt import Attempt
from trial_runtime.agent.attempts.remote_offers import MOST_AT_ONCE
from trial_runtime.agent.config import TrialSpec
from trial_runtime.agent.link.reports import Reports
from trial_runtime.session_file import SESSION_VERSION, SessionFile


class Words:
    """An outbox that keeps what is added."""

    def __init__(self) -> None:
        self.said: list[Any] = []

    def add(self, word: Any, *, urgent: bool) -> None:
        self.said.append(word)


@pytest.fixture
def outbox() -> Words:
    return Words()


@pytest.fixture
def reports(outbox: Words) -> Reports:
    return Reports(TrialSpec(".", max_metrics=10), outbox)  # type: ignore[arg-type]


@pytest.fixture
def attempt() -> Attempt:
    session = SessionFile(SESSION_VERSION, "", "", 3, 1, "/nowhere", "{}")
    return Attempt(facts.StartAttempt(LOCAL, 3, 1, "{}"), session, "")


def weights(number: int) -> wire.PublishedMessage:
    return wire.PublishedMessage(f"{number:064x}", "bequeath", number)


def test_final_metrics_count_like_others(reports: Reports, outbox: Words, attempt: Attempt) -> None:
    """Mutation: one attempt journals megabytes a second by its result."""
    taken = [reports.final(attempt, str(number)) for number in range(100)]
    assert taken == [True] * 11 + [False] * 89
    assert [word.value for word in outbox.said] == [str(number) for number in range(11)]


def test_a_first_final_metric_is_taken_after_too_many_others(
    reports: Reports, outbox: Words, attempt: Attempt
) -> None:
    taken = [reports.metric(attempt, "0.5") for _ in range(100)]
    assert taken == [True] * 10 + [False] * 90
    assert reports.final(attempt, "0.25")
    assert not reports.final(attempt, "0.5")
    assert outbox.said[-1] == facts.FinalReported(3, 1, 11, "0.25")


def test_of_too_many_weights_the_newest_are_told_at_the_end(
    reports: Reports, outbox: Words, attempt: Attempt
) -> None:
    """Children check them by the digest told last. Mutation: later ones are dropped."""
    for number in range(100):
        reports.published(attempt, weights(number))
    assert len(outbox.said) == 10
    reports.last(attempt)
    assert len(outbox.said) == 11
    assert outbox.said[-1].weights.digest == weights(99).digest
    assert [word.seq for word in outbox.said] == list(range(1, 12))
    reports.last(attempt)
    assert len(outbox.said) == 11, "once is enough"


def test_a_trial_may_save_as_often_as_it_reports(reports: Reports, attempt: Attempt) -> None:
    """Its file allows so many metrics. Mutation: weights take their place, and it fails."""
    for number in range(10):
        assert reports.metric(attempt, "0.5")
        reports.published(attempt, weights(number))
    assert attempt.unreported is None


def test_the_head_takes_all_that_an_agent_may_say(
    reports: Reports, outbox: Words, attempt: Attempt
) -> None:
    """Versions on their way to a remote root are counted when they are there."""
    check = MessageCheck("far", TrialSpec(".", max_metrics=10), lambda: 0.0)
    check.given(3, 1)
    check.judge(facts.AttemptStarted(3, 1, 77))
    while attempt.metrics < 9:
        reports.metric(attempt, "0.5")
    assert reports.has_room(attempt)
    for number in range(MOST_AT_ONCE):
        reports.offered(attempt, wire.Offered("omega", 0, f"omega/3.1-{number}", "ab", 1))
    for number in range(20):
        reports.published(attempt, weights(number))
    reports.final(attempt, "0.5")
    reports.last(attempt)
    for word in outbox.said:
        check.judge(word)


def test_all_kinds_are_bounded(reports: Reports, outbox: Words, attempt: Attempt) -> None:
    while reports.has_room(attempt):
        reports.metric(attempt, "0.5")
        reports.final(attempt, "0.5")
        reports.published(attempt, weights(1))
        reports.offered(attempt, wire.Offered("omega", 0, "omega/3.1-0", "ab", 1))
    for _ in range(100):
        reports.metric(attempt, "0.5")
        reports.final(attempt, "0.5")
        reports.published(attempt, weights(2))
    reports.last(attempt)
    assert len(outbox.said) <= 2 * 10 + 4
