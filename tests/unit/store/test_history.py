"""The calls that rebuild a tuner, as they are gathered from a journal."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason
from dispatcher.core.settings import TunerErrorPolicy
from dispatcher.store import SqliteJournal
from dispatcher.store.replay.history import read_past
from tests.unit.store.life import Life

T = TrialId


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    life = Life(journal, on_tuner_error=TunerErrorPolicy.CONTINUE)
    life.begin()
    yield life
    journal.close()


def told(life: Life, *kinds: str) -> list[list[object]]:
    calls = read_past(life.journal, calls_after=0).calls
    return [call for call in calls if call[0] in kinds]


def offers(
    life: Life, trial: int, base: int, word: str = "a", attempt: int = 1
) -> e.VersionOffered:
    path = f"omega/{trial}.{attempt}-{word}"
    return e.VersionOffered(T(trial), attempt, 9, "omega", base, path, f"{trial}{word}", 10)


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


def test_only_versions_that_came_to_be_are_told_again(tmp_path: Path) -> None:
    """Offers that were refused, said again, late or of an attempt that is given up have a row as
    well. Mutation: the tuner is told of versions that are not, under numbers of others', and the
    newest that it knows of goes back."""
    journal = SqliteJournal.open(tmp_path / "stores.sqlite")
    life = Life(journal, trial_retries=1)
    life.begin()
    for trial in (0, 1):
        life.propose(trial)
        life.say(e.AttemptStarted(T(trial), 1, 4000 + trial))
    life.say(offers(life, 0, 0), offers(life, 1, 0))  # the second one comes too late
    life.say(offers(life, 1, 1, "b"), offers(life, 0, 0))  # its answer was lost
    life.say(offers(life, 0, 7, "c"))  # of a version that is not
    life.exit(0, reason=EndReason.FAILED)
    life.say(offers(life, 0, 2, "d"))  # late
    life.say(e.Tick())
    life.say(e.AttemptStarted(T(0), 2, 5000), offers(life, 0, 2, "e"))  # of the one before
    life.say(offers(life, 0, 2, "f", attempt=2))
    try:
        assert life.state.trials[T(0)].attempt == 2
        assert len(life.state.stores["omega"]) == 3
        assert told(life, "version") == [
            ["version", 0, "omega", 1],
            ["version", 1, "omega", 2],
            ["version", 0, "omega", 3],
        ]
    finally:
        journal.close()


def test_what_a_tuner_said_that_is_gone_is_not_told_again(life: Life) -> None:
    """Its successor is asked and told anew, and says so itself. Mutation: a result counts twice in
    a tuner that is rebuilt, or a proposal is repeated that was never accepted."""
    life.propose(0)
    life.run(0)
    life.say(e.DataImported("[1]"))
    life.say(e.TunerHostLost("gone"))
    life.say(e.Proposed(T(1), '{"x":"of a process that is gone"}', "t/1"))
    life.say(e.ResultDelivered(T(0)), e.EndDelivered(T(0)), e.ImportDelivered(1))
    kinds = ("generate", "result", "end", "import")
    before: list[list[object]] = [["generate", 0, '{"x":0}']]
    assert told(life, *kinds) == before
    life.say(e.TunerHostReady())
    life.deliver(0)
    (number,) = life.state.imports
    life.say(e.ImportDelivered(number), e.ImportDelivered(number))  # once
    life.propose(1)
    assert told(life, *kinds) == [
        *before,
        ["result", 0, '{"x":0}', "0.5"],
        ["end", 0, True, True],
        ["import", number, "[1]"],
        ["generate", 1, '{"x":1}'],
    ]
