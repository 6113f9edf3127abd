"""The calls that rebuild a tuner, as they are gathered from a journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.core.settings import TunerErrorPolicy
from dispatcher.past.history import read_past
from dispatcher.store import SqliteJournal
from tests.unit.store.life import Life

T = TrialId


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    life = Life(journal, on_tuner_error=TunerErrorPolicy.CONTINUE)
    life.begin()
    yield life
    journal.close()


def gates(life: Life) -> list[list[object]]:
    calls = read_past(life.journal, calls_after=0).calls
    return [call for call in calls if call[0] == "gate"]


def test_a_request_that_ends_without_a_trial_opens_its_gate_again_in_its_place(life: Life) -> None:
    """Whatever ended it: an exception, a user, a parent, a proposal that is refused."""
    life.say(e.RequestFailed(T(0), e.RequestEnd.ERROR, "ValueError: no"))
    life.say(e.WaitStarted(T(1), 1, (T(2),)), e.TrialStopRequested(T(1), EndReason.KILLED))
    life.say(e.RequestFailed(T(2), e.RequestEnd.ABANDONED, "", T(0)))
    life.say(e.Proposed(T(3), "{}", "t/3", "nobody/s"))
    assert gates(life) == [
        ["gate", 0, "no trial", []],
        ["gate", 1, "no trial", []],
        ["gate", 2, "no trial", [0]],
        ["gate", 3, "no trial", []],
    ]
    life.propose(4)
    calls = read_past(life.journal, calls_after=0).calls
    assert [call[:2] for call in calls[-3:]] == [["generate", 3], ["gate", 3], ["generate", 4]]


def test_not_now_that_becomes_no_more_ends_them_by_a_joint_rule(life: Life) -> None:
    life.say(e.RequestFailed(T(0), e.RequestEnd.NOT_NOW))
    life.say(e.RequestFailed(T(1), e.RequestEnd.NOT_NOW))
    assert [call[1] for call in gates(life)] == [0, 1]


def test_waits_that_the_head_refused_come_before_the_request_that_is_repeated(life: Life) -> None:
    life.say(e.WaitStarted(T(0), 1, (T(99),)), e.WaitStarted(T(1), 1, (T(0),)))
    life.say(e.WaitStarted(T(0), 2, (T(1),), "any"))
    life.say(e.WaitStarted(T(2), 1, (T(98),)), e.RequestFailed(T(2), e.RequestEnd.NOT_NOW))
    life.say(e.Proposed(T(0), "{}", "t/0"))
    calls = read_past(life.journal, calls_after=0).calls
    assert calls == [
        ["refused", 0, [99], "all", "", 0, "unknown", 99, "", []],
        ["refused", 0, [1], "any", "", 0, "cycle", None, "", [0, 1, 0]],
        ["generate", 0, "{}"],
    ]
