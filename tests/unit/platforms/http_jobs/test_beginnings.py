"""When jobs began, where no list says it: by when they were last seen to wait."""

from __future__ import annotations

from dispatcher.errors import PassingBackendError
from dispatcher.platforms.allocations.allocation import AllocationState
from dispatcher.platforms.http_jobs.beginnings import Beginnings
from dispatcher.platforms.http_jobs.jobs import ServiceJob

STATES = {"waits": AllocationState.WAITING, "runs": AllocationState.RUNNING}


class Service:
    """Knows when jobs began, while it is there."""

    def __init__(self) -> None:
        self.now, self.asked, self.is_away = 100.0, [""][1:], False
        self.beginnings = Beginnings(STATES, lambda: self.now, self.ask)

    def ask(self, name: str) -> float | None:
        self.asked.append(name)
        if self.is_away:
            raise PassingBackendError("away")
        return {"a": 40.0, "b": 50.0}.get(name)

    def look(self, words: dict[str, str], *, asks: bool = True) -> dict[str, float | None]:
        jobs = [ServiceJob(name, name, word) for name, word in words.items()]
        return {x.name: x.started_at for x in self.beginnings.of(jobs, asks=asks)}


def test_one_that_was_seen_to_wait_began_not_before() -> None:
    """Mutation: the moment of the first look at which it runs, when it may have run for long."""
    service = Service()
    service.beginnings.ordered("a")
    service.now = 110.0
    assert service.look({"a": "waits"}) == {"a": 110.0}
    service.now = 130.0
    assert service.look({"a": "runs"}) == {"a": 110.0}
    service.now = 150.0
    assert service.look({"a": "runs"}) == {"a": 110.0}
    assert service.asked == []


def test_those_of_a_head_before_are_asked_about_one_at_a_look() -> None:
    """Mutation: a question for each of a thousand jobs."""
    service = Service()
    both = {"a": "runs", "b": "runs"}
    assert service.look(both, asks=False) == {"a": None, "b": None}
    assert service.look(both) == {"a": 40.0, "b": None}
    assert service.look(both) == {"a": 40.0, "b": 50.0}
    assert service.look(both) == {"a": 40.0, "b": 50.0}
    assert service.asked == ["a", "b"]


def test_what_cannot_be_asked_stops_no_look() -> None:
    service = Service()
    service.is_away = True
    assert service.look({"a": "runs"}) == {"a": None}
    service.is_away = False
    assert service.look({"a": "runs"}) == {"a": 40.0}
