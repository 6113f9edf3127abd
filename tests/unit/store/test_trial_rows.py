"""The read models say what happened, and go on saying it when the core has forgotten."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import EndReason, FailReason
from dispatcher.store import SqliteJournal
from dispatcher.store.values import number_of
from tests.unit.store.life import DIGEST, Life

T = TrialId


@pytest.fixture
def life(tmp_path: Path) -> Iterator[Life]:
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    life = Life(journal)
    life.begin()
    yield life
    journal.close()


def _row(life: Life, trial: int) -> dict[str, Any]:
    assert isinstance(life.journal, SqliteJournal)
    cursor = life.journal.raw.cursor()
    cursor.row_factory = sqlite3.Row
    return dict(cursor.execute("SELECT * FROM trials WHERE id = ?", (trial,)).fetchone())


def _attempts(life: Life, trial: int) -> list[tuple[Any, ...]]:
    assert isinstance(life.journal, SqliteJournal)
    return life.journal.raw.execute(
        "SELECT attempt, worker, pid, end_reason, exit_code, text, cpu_s FROM attempts "
        "WHERE trial = ? ORDER BY attempt",
        (trial,),
    ).fetchall()


def test_an_ended_trial_keeps_what_the_core_drops(life: Life) -> None:
    life.whole(0)
    life.whole(1, parent=0, value='{"default": 0.75}')
    assert life.state.trials[T(1)].parameters == ""
    row = _row(life, 1)
    assert row["state"] == "ended"
    assert row["outcome"] == "succeeded"
    assert row["parameters"] == '{"x":1}'
    assert (row["save_path"], row["restore_path"], row["parent"]) == ("t/1", "t/0", 0)
    assert (row["final"], row["told"]) == ('{"default": 0.75}',) * 2
    assert row["number"] == 0.75
    assert row["verdict"] == ""
    assert (row["weights_digest"], row["weights_nbytes"]) == (DIGEST, 1234)
    assert (row["cpu_s"], row["wall_s"]) == (1.5, 2.0)
    assert row["asked_at"] < row["proposed_at"] < row["started_at"] < row["ended_at"]
    assert _attempts(life, 1) == [(1, "local", 4001, "finished", 0, None, 1.5)]


def test_a_retried_trial_adds_up_and_keeps_both_attempts(life: Life) -> None:
    life.propose(0)
    life.say(e.AttemptStarted(T(0), 1, 41))
    life.exit(0, 1, EndReason.FAILED, text="Traceback: one")
    row = _row(life, 0)
    assert (row["state"], row["error"]) == ("backoff", "Traceback: one")
    assert row["ended_at"] is None
    life.now += 1000
    life.say(e.Tick())
    life.run(0, "0.9", attempt=2)
    life.deliver(0)
    row = _row(life, 0)
    assert (row["outcome"], row["error"], row["end_reason"]) == ("succeeded", None, "finished")
    assert (row["cpu_s"], row["attempt"], row["failures"]) == (3.0, 2, 1)
    assert _attempts(life, 0) == [
        (1, "local", 41, "failed", 1, "Traceback: one", 1.5),
        (2, "local", 4000, "finished", 0, None, 1.5),
    ]


def test_words_of_a_superseded_attempt_change_its_own_row_only(life: Life) -> None:
    life.propose(0)
    life.say(e.AttemptStarted(T(0), 1, 41))
    life.say(e.WorkerLost(life.state.trials[T(0)].worker or "", "gone"))  # type: ignore[arg-type]
    life.now += 1000
    life.begin()
    life.say(e.AttemptStarted(T(0), 2, 42))
    before = _row(life, 0)
    life.exit(0, 1, EndReason.FAILED, text="late")
    after = _row(life, 0)
    assert after.pop("touched") > before.pop("touched"), "readers see attempts with their trial"
    assert after == before
    assert _attempts(life, 0)[0] == (1, "local", 41, "failed", 1, "late", 1.5)


def test_a_request_that_fails_keeps_its_traceback(life: Life) -> None:
    life.say(e.RequestFailed(T(0), e.RequestEnd.ERROR, "Traceback: tuner"))
    row = _row(life, 0)
    assert (row["outcome"], row["error"]) == ("no trial", "Traceback: tuner")
    assert row["verdict"] == FailReason.NO_TRIAL
    assert row["ended_at"] is not None


def test_an_error_of_the_tuner_stands_beside_the_trials_own(life: Life) -> None:
    life.propose(0)
    life.run(0)
    life.deliver(0, error="Traceback: receive_trial_result")
    row = _row(life, 0)
    assert (row["error"], row["tuner_error"]) == (None, "Traceback: receive_trial_result")


def test_a_failed_parent_names_the_chain(life: Life) -> None:
    life.propose(0)
    life.say(e.AttemptStarted(T(0), 1))
    life.propose(1, parent=0)
    life.say(e.TrialStopRequested(T(0), EndReason.KILLED))
    life.exit(0, 1, EndReason.KILLED)
    life.deliver(0)
    life.deliver(1)
    row = _row(life, 1)
    assert row["verdict"] == FailReason.FAILED
    assert row["verdict_chain"] == "[0]"


def test_a_number_that_was_not_told_is_none(life: Life) -> None:
    life.propose(0)
    life.say(e.AttemptStarted(T(0), 1))
    life.say(e.FinalReported(T(0), 1, 1, "0.5"))
    assert _row(life, 0)["number"] == 0.5
    life.exit(0, 1, EndReason.FAILED)
    assert _row(life, 0)["number"] == 0.5  # reported, then crashed: told all the same


@pytest.mark.parametrize(
    "text, number",
    [
        ("1", 1.0),
        ("-2.5e3", -2500.0),
        ('{"default": 3, "other": 4}', 3.0),
        ('{"loss": 3}', None),
        ('{"default": "x"}', None),
        ("true", None),
        ("null", None),
        ("[1]", None),
        ("NaN", None),
        ("1e999", None),
        ('{"default": ' + "9" * 400 + "}", None),
        ("{", None),
        ("[" * 100_000, None),
        ("", None),
    ],
)
def test_what_a_value_is_worth(text: str, number: float | None) -> None:
    assert number_of(text) == number
