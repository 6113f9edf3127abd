"""What changed since a cursor, exactly; and what is said where that cannot be known.

Random lives, compaction and resumes: ``tests/sim/test_followers.py``.
"""

from __future__ import annotations

import importlib
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.errors import StoreError, UserError
from dispatcher.queries import ExperimentReader, changes, cursor_now, journal_after, list_trials
from dispatcher.store import SqliteJournal, SqliteWeightsLedger
from dispatcher.store.copying import Committed, copy_store, note_removed
from dispatcher.store.replay.folding import compact
from dispatcher.store.verify import rebuild, verify
from dispatcher.store.weights_ledger import Removal
from tests.support.followers import Follower, everything
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life

#: The module, which the function of the same name hides in its package.
following = importlib.import_module("dispatcher.queries.changed")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return make_folder(tmp_path)


@pytest.fixture
def store(folder: Path) -> Path:
    return folder / "journal.sqlite"


@pytest.fixture
def life(store: Path) -> Iterator[Life]:
    """Three trials are over, the fourth runs."""
    with closing(SqliteJournal.open(store, epoch=1)) as journal:
        life = Life(journal)
        life.begin()
        for trial in range(3):
            life.whole(trial, parent=trial - 1 if trial else None)
        life.propose(3, parent=2)
        life.say(e.AttemptStarted(TrialId(3), 1, 7))
        yield life


@pytest.fixture
def follower(life: Life, folder: Path) -> Iterator[Follower]:
    with ExperimentReader.open(folder) as reader:
        follower = Follower(reader)
        follower.read_all()
        assert follower.held == everything(reader)
        assert follower.exact
        yield follower


def _journal(life: Life) -> SqliteJournal:
    assert isinstance(life.journal, SqliteJournal)
    return life.journal


def test_nothing_comes_while_nothing_changes(follower: Follower, life: Life) -> None:
    version = follower.reader.version()
    assert follower.read_all() == set()
    assert follower.reader.version() == version
    life.say(e.MetricReported(TrialId(3), 1, 1, "0.5"), durable=False)
    assert follower.reader.version() != version
    assert follower.read_all() == {(3, 1, 1)}
    assert follower.read_all() == set()


def test_a_trial_comes_that_no_event_names(follower: Follower, life: Life) -> None:
    """A request waits for a trial and another is asked for; the trial ends, the request goes on."""
    life.say(e.WaitStarted(TrialId(4), 1, (TrialId(3),)))
    assert follower.read_all() == {4, 5}
    row = _journal(life).last
    life.run(3)
    life.deliver(3)
    assert {3, 4} <= follower.read_all()
    assert follower.held[4][0].state == "open"
    assert {one.trial for one in journal_after(follower.reader, row).rows} == {3}
    assert follower.held == everything(follower.reader)


def test_a_commit_without_a_journal_row_is_not_missed(follower: Follower, life: Life) -> None:
    """Rows of trials that lag behind are written at rest, as of the journal row before."""
    row = _journal(life).last
    life.state.trials[TrialId(0)].losses += 1
    _journal(life).append([], [life.state.trials[TrialId(0)]], durable=False)
    assert _journal(life).last == row
    assert follower.read_all() == {0}
    life.state.trials[TrialId(1)].losses += 1
    _journal(life).append([], [life.state.trials[TrialId(1)]], durable=False)
    assert follower.read_all() == {1}


def test_what_is_written_as_it_was_has_not_changed(follower: Follower, life: Life) -> None:
    trials = [life.state.trials[TrialId(n)] for n in (0, 3)]
    _journal(life).append([], trials, durable=False)
    life.exit(2, 1)  # its end comes again
    assert follower.read_all() == set()


def test_metrics_of_an_attempt_come_before_its_end(life: Life, folder: Path) -> None:
    with ExperimentReader.open(folder) as reader:
        follower, over = Follower(reader), set()
        follower.read(1)
        while follower.more:
            for key in follower.read(1):
                if isinstance(key, int) and follower.held[key][0].state == "ended":
                    over.add(key)
                elif isinstance(key, tuple):
                    assert key[0] not in over
        assert over == {0, 1, 2}


def test_a_page_begins_with_a_reading_of_its_own(life: Life, folder: Path) -> None:
    with ExperimentReader.open(folder) as reader:
        with reader.moment():
            cursor = cursor_now(reader)
            life.say(e.MetricReported(TrialId(3), 1, 1, "0.5"))
            life.propose(4)
            assert list_trials(reader)[4].state == "open"
            assert changes(reader, cursor).trials == ()
        answer = changes(reader, cursor)
    assert [one.trial for one in answer.metrics] == [3]
    assert [one.trial.state for one in answer.trials if one.trial.id == 4] == ["running"]
    assert (answer.anew, answer.more, answer.exact) == (False, False, True)
    assert answer.row == _journal(life).last


def test_metrics_can_be_passed_over(life: Life, folder: Path) -> None:
    with ExperimentReader.open(folder) as reader:
        answer = changes(reader, metrics=False)
        assert answer.metrics == ()
        assert len(answer.trials) == len(life.state.trials)
        assert answer.cursor == cursor_now(reader)


def test_pins_and_removals_come_with_their_trial(follower: Follower, store: Path) -> None:
    ledger = SqliteWeightsLedger.open(store)
    assert ledger.pin(1, "the best", 5.0)
    assert follower.read_all() == {1}
    assert follower.held[1][2] == (False, None, "the best")
    assert ledger.unpin(1)
    assert not ledger.unpin(1)
    assert follower.read_all() == {1}
    assert ledger.intend_removal(
        [Removal("t/0", 0, 10, None), Removal("t/1", 1, 10, None)], 6.0
    ) == {0, 1}
    assert follower.read_all() == {0, 1}
    assert follower.held[1][2] == (True, None, None)
    ledger.removal_done("t/1", 7.0)
    ledger.removal_done("t/1", 8.0)
    ledger.removal_done("t/unknown", 9.0)
    assert follower.read_all() == {1}
    assert follower.held[1][2] == (True, 7.0, None)
    ledger.close()


def test_compaction_changes_nothing(follower: Follower, life: Life) -> None:
    assert compact(_journal(life))
    assert follower.read_all() == set()
    with ExperimentReader.open(follower.reader.folder) as reader:
        gone = journal_after(reader, 3)
        assert gone.gone_upto == _journal(life).last == gone.upto
        assert gone.rows == ()
        life.say(e.Tick(), e.Tick())
        later = journal_after(reader, gone.upto, most=1)
        assert ([one.kind for one in later.rows], later.gone_upto) == (["Tick"], 0)
        assert later.more
        assert journal_after(reader, later.upto).more is False
    life.run(3)
    assert 3 in follower.read_all()
    assert follower.held == everything(follower.reader)


def test_rebuilt_tables_are_read_again(follower: Follower, life: Life, store: Path) -> None:
    _journal(life).close()
    rebuild(store)
    assert verify(store).ok
    assert follower.read_all() == set(life.state.trials)
    assert follower.began == 1
    assert follower.held == everything(follower.reader)


def test_the_next_head_goes_on_counting(follower: Follower, life: Life, store: Path) -> None:
    life.say(e.MetricReported(TrialId(3), 1, 1, "0.5"))
    with closing(SqliteJournal.open(store, epoch=2)) as journal:
        later = Life.of(journal, life.state)
        later.say(e.HeadStarted(2), e.MetricReported(TrialId(3), 1, 2, "0.75"))
        assert follower.read_all() == {(3, 1, 1), (3, 1, 2)}
    assert follower.began == 1


def test_who_has_seen_what_the_power_took_begins_anew(
    follower: Follower, life: Life, store: Path, tmp_path: Path
) -> None:
    """So does whoever followed a store that was replaced by a backup."""
    copy_store(store, tmp_path / "then.sqlite")
    follower.reader.close()
    with ExperimentReader.open(store.parent) as reader:
        follower.reader = reader
        life.say(e.MetricReported(TrialId(3), 1, 1, "0.5"))
        assert follower.read_all() == {(3, 1, 1)}
    _journal(life).close()
    for log in store.parent.glob("journal.sqlite-*"):
        log.unlink()
    (tmp_path / "then.sqlite").replace(store)
    with closing(SqliteJournal.open(store, epoch=2)) as journal:
        for losses in (7, 8, 9):  # the count comes to where it was, and beyond
            life.state.trials[TrialId(3)].losses = losses
            journal.append([], [life.state.trials[TrialId(3)]], durable=True)
        with ExperimentReader.open(store.parent) as reader:
            follower.reader = reader
            follower.read_all()
            assert follower.began == 2
            assert follower.held == everything(reader)
            assert (3, 1, 1) not in follower.held


def test_a_cursor_from_before_a_backup_leads_on_in_it(
    follower: Follower, store: Path, tmp_path: Path
) -> None:
    copy = make_folder(tmp_path / "elsewhere") / "journal.sqlite"
    copy_store(store, copy)
    note_removed(copy, [Committed(1, "t/1", 10)])
    with ExperimentReader.open(copy.parent) as follower.reader:
        assert follower.read_all() == {1}
        assert follower.held[1][2][0]
        SqliteJournal.open(copy, epoch=2).close()
        assert follower.read_all() == set()
    assert follower.began == 1


def test_a_head_that_does_not_count_is_followed_by_reading_all(
    follower: Follower, life: Life, store: Path
) -> None:
    """A head of an older version goes on when a newer command has migrated its store."""
    with closing(sqlite3.connect(store)) as raw, raw:
        raw.execute("UPDATE meta SET value = '2' WHERE key = 'epoch'")
    follower.read_all(most=3)
    assert (follower.began, follower.exact) == (2, False)
    assert follower.held == everything(follower.reader)
    assert follower.read_all() == set(), "to its end, and to nothing then"
    assert follower.began == 2
    SqliteJournal.open(store, epoch=3).close()
    follower.read_all()
    assert (follower.began, follower.exact) == (3, True)


@pytest.mark.parametrize(
    "cursor",
    ["x", ".", "a.b", "a.1.2.3", "a.-1", "a.1.2.3.4.5", "a.²", "a." + "9" * 30, "a b.1", "a" * 500],
)
def test_a_cursor_that_is_none_is_refused(life: Life, folder: Path, cursor: str) -> None:
    with ExperimentReader.open(folder) as reader, pytest.raises(UserError, match="no cursor") as no:
        changes(reader, cursor)
    assert "begin anew" in no.value.hint


@pytest.mark.parametrize("cursor", ["feedfeedfeedfeed.3", "0.1", "0"])
def test_a_cursor_of_another_store_begins_anew(life: Life, folder: Path, cursor: str) -> None:
    with ExperimentReader.open(folder) as reader:
        if cursor == "0":
            cursor = cursor_now(reader) + "000"
        answer = changes(reader, cursor)
    assert answer.anew
    assert len(answer.trials) == len(life.state.trials)


@pytest.mark.parametrize("most", [0, -1, 10_001])
def test_bounds_are_kept(life: Life, folder: Path, most: int) -> None:
    with ExperimentReader.open(folder) as reader:
        with pytest.raises(UserError, match="at once"):
            changes(reader, most=most)
        with pytest.raises(UserError, match="at once"):
            journal_after(reader, most=most)


def test_an_answer_holds_so_much_text_and_no_more(
    follower: Follower, life: Life, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(following, "MOST_TEXT", 10_000)
    life.propose(4, parameters=f'{{"text": "{40_000 * "x"}"}}')
    life.say(*(e.MetricReported(TrialId(3), 1, seq, f'"{8_000 * "y"}"') for seq in range(1, 6)))
    answers = [follower.read(1_000)]
    while follower.more:
        answers.append(follower.read(1_000))
    metrics = [len([key for key in answer if isinstance(key, tuple)]) for answer in answers]
    assert metrics == [2, 2, 1], "and none is passed over"
    assert 4 in answers[0]
    assert follower.held == everything(follower.reader)


def test_numbers_that_are_none_are_an_error_of_the_store(life: Life, folder: Path) -> None:
    _journal(life).raw.execute("UPDATE trials SET touched = 'soon' WHERE id = 1")
    with ExperimentReader.open(folder) as reader:
        with pytest.raises(StoreError, match="count of changes") as no:
            changes(reader)
        assert "rebuild" in no.value.hint
    _journal(life).raw.execute("UPDATE trials SET touched = 1.5 WHERE id = 1")
    with ExperimentReader.open(folder) as reader, pytest.raises(StoreError, match="no number"):
        changes(reader)


@pytest.mark.parametrize("number", ["'soon'", "x'00'", "-1", "9223372036854775807", "1e300"])
@pytest.mark.parametrize("table", ["trials", "metrics"])
def test_a_count_that_cannot_be_is_named_and_mended(
    life: Life, store: Path, table: str, number: str
) -> None:
    key = "id = 1" if table == "trials" else "trial = 1 AND seq = 2"
    _journal(life).raw.execute(f"UPDATE {table} SET touched = {number} WHERE {key}")
    found = verify(store)
    assert found.damage == ("the number of the newest change cannot be in 1 rows",)
    if number != "-1":
        with pytest.raises(StoreError, match="count of changes cannot be") as no:
            SqliteJournal.open(store, epoch=2)
        assert "verify --rebuild" in no.value.hint
    rebuild(store)
    assert verify(store).ok
    with (
        closing(SqliteJournal.open(store, epoch=3)),
        ExperimentReader.open(store.parent) as reader,
    ):
        follower = Follower(reader)
        follower.read_all(most=2)
        assert follower.held == everything(reader)


def test_an_event_that_cannot_be_read_names_its_row(life: Life, folder: Path) -> None:
    _journal(life).raw.execute("UPDATE journal SET payload = x'c1' WHERE n = 4")
    with ExperimentReader.open(folder) as reader, pytest.raises(StoreError, match="row 4"):
        journal_after(reader)
