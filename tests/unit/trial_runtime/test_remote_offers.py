"""Offers to shared stores on a root that is no folder: copied first, and said once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tests.support.workers import LOCAL
from trial_runtime import facts, trial_wire, wire
from trial_runtime.agent.attempt import Attempt, Phase
from trial_runtime.agent.attempts.remote_offers import RemoteOffers
from trial_runtime.session_file import SessionFile

OFFERED = trial_wire.Offered("omega", 0, "omega/3.1-0a", "d1", 10)
Done = Callable[[Any, Exception | None], None]


class Bench:
    """Offers, a helper that does what it is told when the test says so, and what is said on."""

    def __init__(self) -> None:
        self.jobs: list[Done] = []
        self.relayed: list[wire.Offered] = []
        self.told: list[wire.OfferAnswered] = []
        session = SessionFile(1, "ipc://none", "3.1.secret", 3, 1, "/none", "{}")
        self.attempt = Attempt(facts.StartAttempt(LOCAL, 3, 1, "{}"), session, "", Phase.RUNNING)
        self.offers = RemoteOffers(
            None,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
            self,  # type: ignore[arg-type]
        )

    def submit(self, job: Callable[[], Any], done: Done) -> None:
        self.jobs.append(done)

    def offered(self, attempt: Attempt, offer: wire.Offered) -> None:
        """In place of the reports to the head."""
        self.relayed.append(offer)

    def tell(self, attempt: Attempt, messages: list[wire.OfferAnswered]) -> None:
        """In place of the trials' endpoint."""
        self.told.extend(messages)


def test_what_is_offered_again_while_it_is_copied_is_copied_once() -> None:
    bench = Bench()
    bench.offers.offer(bench.attempt, OFFERED)
    bench.offers.offer(bench.attempt, OFFERED)
    assert len(bench.jobs) == 1
    assert bench.relayed == []
    bench.jobs[0](None, None)
    assert bench.relayed == [OFFERED]
    bench.offers.offer(bench.attempt, OFFERED)
    assert len(bench.jobs) == 1, "it is there"
    assert bench.relayed == [OFFERED, OFFERED]


def test_a_copy_that_ends_after_its_attempt_is_nobody_s_word() -> None:
    bench = Bench()
    bench.offers.offer(bench.attempt, OFFERED)
    bench.attempt.phase = Phase.OVER
    bench.offers.forget(bench.attempt)
    bench.jobs[0](None, None)
    assert bench.relayed == [], "its end was its last word"
    assert bench.offers._there == {}
    assert bench.offers._under_way == set()
