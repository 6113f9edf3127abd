"""The journal keeps what it was given, in order, and tells it again."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId, WorkerId
from dispatcher.core.model import EndReason, Trial, TrialState, Weights
from dispatcher.core.settings import Settings
from dispatcher.errors import StoreError
from dispatcher.ports import JournalEntry, Snapshot
from dispatcher.store import SqliteJournal
from dispatcher.store.early_stops import rows_as_judged
from dispatcher.store.replay.history import read_past
from tests.unit.store.life import Life

T = TrialId


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def journal(path: Path) -> Iterator[SqliteJournal]:
    opened = SqliteJournal.open(path)
    yield opened
    opened.close()


def _table(path: Path, query: str) -> list[tuple[object, ...]]:
    reader = sqlite3.connect(f"file:{path}?mode=ro", uri=True)
    try:
        return reader.execute(query).fetchall()
    finally:
        reader.close()


def test_events_come_back_as_they_were(journal: SqliteJournal) -> None:
    events: list[e.Event] = [
        e.ExperimentCreated(Settings(2, 8, max_trials=5)),
        e.WorkerJoined(WorkerId("local"), 2, ((T(1), 1),)),
        e.Proposed(T(1), '{"x":1}', "t/1", None),
        e.AttemptEnded(T(1), 1, EndReason.FAILED, exit_code=3, text="ä", weights=None),
        e.WeightsPublished(T(1), 2, 9, Weights("ab", "bequeath", 7)),
        e.StopRequested(e.StopKind.NOW, "user"),
    ]
    last = journal.append(
        [JournalEntry(float(i), x) for i, x in enumerate(events)], [], durable=True
    )
    rows = list(journal.rows())
    assert [row.event for row in rows] == events
    assert [row.number for row in rows] == list(range(1, last + 1))
    assert [row.at for row in rows] == [float(i) for i in range(len(events))]
    assert [row.event for row in journal.rows(after=4)] == events[4:]


def test_numbers_go_on_after_opening_again(path: Path) -> None:
    first = SqliteJournal.open(path)
    assert first.append([JournalEntry(1.0, e.HeadStarted(1))], [], durable=True) == 1
    first.close()
    again = SqliteJournal.open(path)
    assert again.append([JournalEntry(2.0, e.HeadStarted(2))], [], durable=False) == 2
    again.close()
    again.close()


def test_metrics_leave_no_row_and_finals_leave_two(journal: SqliteJournal, path: Path) -> None:
    entries = [
        JournalEntry(1.0, e.MetricReported(T(1), 1, 1, '{"default": 0.25, "loss": 2}')),
        JournalEntry(2.0, e.FinalReported(T(1), 1, 2, "0.5")),
        JournalEntry(3.0, e.MetricReported(T(1), 1, 3, '"late"'), counted=False),
        JournalEntry(3.5, e.StacksReported({1: "File ..."})),
    ]
    assert journal.append(entries, [], durable=True) == 1
    assert [type(row.event) for row in journal.rows()] == [e.FinalReported]
    assert _table(path, "SELECT trial, attempt, seq, final, number, counted FROM metrics") == [
        (1, 1, 1, 0, 0.25, 1),
        (1, 1, 2, 1, 0.5, 1),
        (1, 1, 3, 0, None, 0),
    ]


def test_a_metric_that_comes_twice_is_kept_once(journal: SqliteJournal, path: Path) -> None:
    journal.append([JournalEntry(1.0, e.MetricReported(T(1), 1, 1, "1"))], [], durable=True)
    again = JournalEntry(2.0, e.MetricReported(T(1), 1, 1, "2"), counted=False)
    journal.append([again], [], durable=True)
    assert _table(path, "SELECT value, counted FROM metrics") == [("1", 1)]


def test_an_empty_batch_writes_nothing(journal: SqliteJournal) -> None:
    assert journal.append([], [], durable=True) == 0
    assert list(journal.rows()) == []


def test_a_batch_is_whole_or_not_there(journal: SqliteJournal, path: Path) -> None:
    broken = Trial(T(1), TrialState.OPEN, 1.0, parameters=object())  # type: ignore[arg-type]
    with pytest.raises(StoreError):
        journal.append([JournalEntry(1.0, e.HeadStarted(1))], [broken], durable=True)
    assert list(journal.rows()) == []
    assert journal.append([JournalEntry(1.0, e.HeadStarted(1))], [], durable=True) == 1


def test_durable_batches_wait_for_the_disk_and_others_do_not(journal: SqliteJournal) -> None:
    for durable, mode in ((True, 2), (False, 1), (False, 1), (True, 2)):
        journal.append([JournalEntry(1.0, e.Tick())], [], durable=durable)
        assert journal.raw.execute("PRAGMA synchronous").fetchone() == (mode,)
    assert journal.raw.execute("PRAGMA journal_mode").fetchone() == ("wal",)


def test_running_attempts_get_back_the_last_of_their_intermediates(
    journal: SqliteJournal,
) -> None:
    life = Life(journal)
    life.begin()
    life.propose(0)
    life.run(0)  # ended: not asked for
    life.propose(1)
    life.say(e.AttemptStarted(T(1), 1))
    life.say(e.MetricReported(T(1), 1, 1, "0.1"), e.MetricReported(T(1), 1, 4, "0.4"))
    life.say(e.FinalReported(T(1), 1, 5, "0.5"))
    assert journal.last_metric(1, 1) == (4, "0.4")
    assert journal.last_metric(1, 2) is None
    state = read_past(journal).state
    left = [(trial.last_seq, trial.last_intermediate) for trial in state.trials.values()]
    assert left[:2] == [(0, None), (4, "0.4")]


def test_an_early_stop_is_judged_by_its_last_metric_in_a_replay_too(
    journal: SqliteJournal,
) -> None:
    from dispatcher import core

    life = Life(journal, early_stop_keeps_result=True)
    life.begin()
    life.propose(0)
    life.say(e.AttemptStarted(T(0), 1))
    life.say(
        e.MetricReported(T(0), 1, 1, "0.1"),
        e.MetricReported(T(0), 1, 2, "0.7"),
        e.WeightsPublished(T(0), 1, 3, Weights("ab", "bequeath", 7)),
        e.TrialStopRequested(T(0), EndReason.STOPPED_EARLY),
    )
    life.exit(0, reason=EndReason.STOPPED_EARLY)
    assert life.state.trials[T(0)].result == "0.7"

    state = core.new_state(life.state.settings)
    for row in rows_as_judged(journal, 0):
        core.apply(state, row.event, row.at)
    assert state.trials[T(0)].result == "0.7"
    assert not [x for x in journal.rows() if isinstance(x.event, e.MetricReported)]
    journal.raw.execute("UPDATE metrics SET value = '0.9' WHERE seq = 2")
    with pytest.raises(StoreError, match=r"row 8 cannot be replayed: the metric .* has changed"):
        list(rows_as_judged(journal, 0))


def test_the_newest_two_snapshots_are_kept(journal: SqliteJournal, path: Path) -> None:
    assert journal.latest_snapshot() is None
    for number in (3, 5, 9):
        journal.save_snapshot(Snapshot(number, f'{{"n":{number}}}'))
    assert journal.latest_snapshot() == Snapshot(9, '{"n":9}')
    assert _table(path, "SELECT n FROM snapshots ORDER BY n") == [(5,), (9,)]


def test_facts_about_the_experiment(journal: SqliteJournal) -> None:
    assert journal.get_meta("experiment") is None
    journal.set_meta("experiment", "abc")
    journal.set_meta("experiment", "abd")
    assert journal.get_meta("experiment") == "abd"


def test_a_reader_sees_the_last_commit_while_the_writer_is_in_a_transaction(
    journal: SqliteJournal, path: Path
) -> None:
    journal.append([JournalEntry(1.0, e.Tick())], [], durable=False)
    journal.raw.execute("BEGIN IMMEDIATE")
    journal.raw.execute("DELETE FROM journal")
    assert _table(path, "SELECT count(*) FROM journal") == [(1,)]
    journal.raw.execute("ROLLBACK")


def test_a_row_nobody_can_read_names_itself(journal: SqliteJournal) -> None:
    journal.append([JournalEntry(1.0, e.Tick()), JournalEntry(2.0, e.Tick())], [], durable=True)
    journal.raw.execute("UPDATE journal SET kind = 'FromTheFuture', crc = NULL WHERE n = 2")
    with pytest.raises(StoreError, match=r"row 2.*FromTheFuture"):
        list(journal.rows())
