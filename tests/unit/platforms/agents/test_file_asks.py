"""The head's questions for files: to agents that know them, bounded, and each with an end."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import actions as a
from dispatcher.core.ids import TrialId
from dispatcher.platforms.agents.file_asks import ANSWER_S, MOST_ASKED, Asked, Wanted
from tests.unit.platforms.agents.test_waiting import Q, Scene
from trial_runtime import wire

WANTED = Wanted(3, 1, b"stdout", 10, 99)


class Files(Scene):
    """An agent that has joined, or not."""

    def joins(self, *serves: str, life: str = "a") -> None:
        self.runs()
        hello = wire.AgentHello(life, "q", 2, 1, [], 1, ticket="t1", start=life, serves=[*serves])
        self.driver.receive(wire.frame(wire.AgentFrame(1, [hello])))

    def ask(self) -> Asked:
        return self.driver.files.ask(WANTED)

    def questions(self) -> list[wire.FileAsked]:
        return [each for each in self.link.said if isinstance(each, wire.FileAsked)]

    def gives(self, given: wire.FileGiven) -> None:
        assert self.driver.receive(wire.frame(wire.AgentFrame(1, [given]))) == []


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return Files(tmp_path)


def test_an_agent_is_asked_and_its_answer_is_taken_once(files: Files) -> None:
    """Mutations: a question is counted as an order, so that the agent joins anew; whatever comes
    answers whatever was asked."""
    files.joins(wire.FILES)
    first, second = files.ask(), files.ask()
    one, other = files.questions()
    assert files.link.orders == 0
    assert one.number != other.number
    assert (one.trial, one.attempt, one.path, one.offset, one.limit) == (3, 1, b"stdout", 10, 99)
    files.gives(wire.FileGiven(7, b"strange"))
    files.gives(wire.FileGiven(other.number, b"yes", 13, "v", "i"))
    assert not files.driver.files.settled(first)
    assert files.driver.files.settled(second)
    files.gives(wire.FileGiven(other.number, b"again"))
    assert second.given == wire.FileGiven(other.number, b"yes", 13, "v", "i")


def test_an_agent_of_an_older_version_is_never_asked(files: Files) -> None:
    """It would take the whole frame for garbage, the orders in it included."""
    files.joins()
    assert "older version" in files.ask().trouble
    assert files.questions() == []


def test_who_has_not_joined_is_not_asked(files: Files) -> None:
    assert "not there" in files.ask().trouble
    assert files.questions() == []


def test_what_is_lost_on_the_way_is_given_up(files: Files) -> None:
    files.joins(wire.FILES)
    asked = files.ask()
    files.now += ANSWER_S - 0.1
    assert not files.driver.files.settled(asked)
    files.now += 0.2
    assert files.driver.files.settled(asked)
    assert "has not answered" in asked.trouble
    files.gives(wire.FileGiven(files.questions()[0].number, b"late"))
    assert asked.given is None


@pytest.mark.parametrize("way", ["lost", "replaced"])
def test_questions_end_with_their_agent(files: Files, way: str) -> None:
    """Mutation: the next agent at that place answers for one whose files are gone."""
    files.joins(wire.FILES)
    asked = files.ask()
    number = files.questions()[0].number
    if way == "replaced":
        files.process.expects = lambda pid, ticket: True  # type: ignore[method-assign]
        files.driver._joined = False
        files.joins(wire.FILES, life="b")
    else:
        files.driver.close(leave_running=False, deadline_s=0.0)
    assert files.driver.files.settled(asked)
    files.gives(wire.FileGiven(number, b"of another"))
    assert asked.given is None


def test_no_more_are_under_way_than_an_agent_takes(files: Files) -> None:
    files.joins(wire.FILES)
    asked = [files.ask() for _ in range(MOST_ASKED)]
    assert "at this moment" in files.ask().trouble
    assert len(files.questions()) == MOST_ASKED
    files.gives(wire.FileGiven(files.questions()[0].number))
    assert asked[0].over
    assert files.ask().trouble == ""


def test_orders_beside_questions_are_counted_alone(files: Files) -> None:
    files.joins(wire.FILES)
    files.driver.perform(a.StartAttempt(Q, TrialId(1), 1, "{}"))
    files.ask()
    files.driver.flush()
    assert files.link.orders == 1
