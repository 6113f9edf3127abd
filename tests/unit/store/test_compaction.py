"""A compacted journal says what it said before, for as long as it is needed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.errors import StoreError
from dispatcher.ports import Snapshot
from dispatcher.store import SqliteJournal, SqliteWeightsLedger, compaction
from dispatcher.store.compaction import Compaction
from dispatcher.store.faults import DamagedStore
from dispatcher.store.replay.folding import compact, fold_at_start, read_whole_past
from dispatcher.store.replay.history import replay
from dispatcher.store.verify import rebuild, verify
from tests.support.replaying import differences
from tests.unit.store.life import Life


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "journal.sqlite"


@pytest.fixture
def life(path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Life]:
    """Twenty trials are over, one runs, one request waits for it."""
    monkeypatch.setattr(compaction, "SLICE_ROWS", 7)
    monkeypatch.setattr(compaction, "SLICE_TRIALS", 3)
    journal = SqliteJournal.open(path)
    life = Life(journal)
    life.begin()
    for trial in range(20):
        life.whole(trial, parent=trial - 1 if trial else None, value=f"0.{trial}")
    life.propose(20, parent=19)
    life.say(e.AttemptStarted(TrialId(20), 1, 7))
    life.say(e.WaitStarted(TrialId(21), 1, (TrialId(20),)))
    yield life
    journal.close()


def _journal(life: Life) -> SqliteJournal:
    assert isinstance(life.journal, SqliteJournal)
    return life.journal


def _rows(life: Life) -> int:
    return int(_journal(life).query("SELECT count(*) FROM journal")[0][0])


def _fold(life: Life) -> Compaction:
    """As the engine does, beside which the tuner has just kept its state."""
    journal = _journal(life)
    journal.save_snapshot(Snapshot(journal.last, "{}"))
    made = Compaction(journal, rows_between=1)
    while made.tidy():
        pass
    made.offer(life.state, journal.last)
    return made


def _same(life: Life) -> None:
    journal = _journal(life)
    state, row = replay(journal, Compaction(journal).base())
    assert differences(life.state, state) == []
    assert row == journal.last
    found = verify(journal.path)
    assert found.ok, (found.damage, found.broken_at, [str(d) for d in found.differences])


def test_a_replay_from_the_base_leads_to_the_same(life: Life) -> None:
    before, last = _rows(life), _journal(life).last
    made = _fold(life)
    while made.tidy():
        pass
    assert _rows(life) == 2 < before, "the first row, and the last: the open request's wait"
    _same(life)
    assert life.say(e.Tick()) == last + 1, "numbers are not given again"
    _same(life)


def test_life_goes_on_and_is_folded_again(life: Life) -> None:
    for running in (20, 21, 22):
        made = _fold(life)
        while made.tidy():
            pass
        assert made.base_number() == _journal(life).last
        _same(life)
        life.run(running)
        life.deliver(running)  # lets the request go that waits for it
        life.propose(running + 1, parent=running)
        life.say(e.AttemptStarted(TrialId(running + 1), 1, 7))
        life.say(e.WaitStarted(TrialId(running + 2), 1, (TrialId(running + 1),)))
        life.say(*[e.Tick()] * 80)
        _same(life)


@pytest.mark.parametrize("steps", range(0, 26, 3))
def test_whoever_opens_it_in_the_midst_of_it_reads_the_same(life: Life, steps: int) -> None:
    made = _fold(life)
    more = True
    for _ in range(steps):
        more = made.tidy()
    life.run(20)
    life.deliver(20)
    state, _ = replay(_journal(life), Compaction(_journal(life)).base())
    assert differences(life.state, state) == []
    _same(life)
    assert more or steps > 10


def test_nothing_is_folded_before_enough_has_gathered(life: Life) -> None:
    journal = _journal(life)
    Compaction(journal, rows_between=10_000).offer(life.state, journal.last)
    assert Compaction(journal).base() is None
    few = Compaction(journal, rows_between=1)
    assert few.due(life.state, 3 * len(life.state.trials))
    assert not few.due(life.state, 3 * len(life.state.trials) - 1), "its price is spread over rows"


def test_no_base_is_made_while_rows_of_the_one_before_remain(life: Life) -> None:
    made = _fold(life)
    first = made.base_number()
    for _ in range(30):
        life.say(e.Tick(), e.Tick(), e.Tick(), e.Tick())
    made.offer(life.state, _journal(life).last)
    assert made.base_number() == first
    while made.tidy():
        pass
    made.offer(life.state, _journal(life).last)
    assert made.base_number() > first


def test_a_folded_row_that_changes_is_named(life: Life) -> None:
    made = _fold(life)
    while made.tidy():
        pass
    journal = _journal(life)
    journal.query("UPDATE trials SET parameters = '{\"x\":99}' WHERE id = 3")
    journal.query("UPDATE attempts SET cpu_s = 9 WHERE trial = 5")
    journal.query("DELETE FROM trials WHERE id = 7")
    found = [str(one) for one in verify(journal.path).differences]
    assert found == [f"trials {n}: has changed, or is gone, since its events were compacted"
                     for n in (3, 5, 7)]  # fmt: skip


def test_what_is_not_folded_is_still_made_again(life: Life) -> None:
    made = _fold(life)
    while made.tidy():
        pass
    journal = _journal(life)
    journal.query("UPDATE trials SET state = 'queued' WHERE id = 20")
    (found,) = verify(journal.path).differences
    assert str(found) == "trials 20: state is 'queued', the journal says 'running'"
    rebuild(journal.path)
    _same(life)


def test_a_base_with_a_flipped_bit_is_not_believed(life: Life) -> None:
    _fold(life)
    journal = _journal(life)
    journal.query(
        "UPDATE base_parts SET content = CAST(replace(CAST(content AS TEXT), 't/3', 't/4') AS BLOB)"
    )
    with pytest.raises(StoreError, match="does not fit its checksum"):
        replay(journal, Compaction(journal).base())
    assert "checksum" in verify(journal.path).broken_at


def test_retention_still_knows_likely_parents(life: Life) -> None:
    made = _fold(life)
    while made.tidy():
        pass
    ledger = SqliteWeightsLedger.open(_journal(life).path)
    assert ledger.awaited() == {20}
    ledger.close()


def _calls(life: Life) -> list[list[Any]]:
    journal = _journal(life)
    return read_whole_past(journal, Compaction(journal)).calls


def test_a_tuner_without_a_state_is_told_all_of_its_calls(life: Life) -> None:
    before = _calls(life)
    assert len(before) == 61, "an answer, a result and an end for each, and one answer more"
    assert compact(_journal(life))
    assert _rows(life) <= 2
    assert _calls(life) == before
    life.run(20)
    life.deliver(20)
    later = [["result", 20, '{"x":20}', "0.5"], ["end", 20, True, True]]
    assert _calls(life) == before + later
    assert compact(_journal(life))
    assert _calls(life) == before + later
    _same(life)


def test_calls_are_forgotten_once_the_tuner_keeps_a_state(life: Life) -> None:
    compact(_journal(life))
    made = _fold(life)
    while made.tidy():
        pass
    assert made.past_calls() != [], "the base is as of the same row: nothing was due"
    life.say(e.Tick())
    made.begin(life.state, _journal(life).last, made.seeds())
    assert made.past_calls() == []
    assert _calls(life) == []


def test_a_tuner_with_a_state_is_folded_up_to_it_and_told_the_calls_since(life: Life) -> None:
    journal = _journal(life)
    (row,) = journal.query("SELECT n FROM journal WHERE kind = 'EndDelivered' AND trial = 11")
    journal.save_snapshot(Snapshot(int(row[0]), '{"seen": 12}'))
    before = _calls(life)
    assert before[0][:2] == ["generate", 12]
    assert compact(journal)
    assert Compaction(journal).base_number() == row[0]
    assert _calls(life) == before
    assert not compact(journal), "there is nothing more to fold"
    _same(life)


def test_a_state_from_before_the_base_is_none(life: Life) -> None:
    """The calls since are folded away, so that a tuner given that one would lack them. Mutation:
    where the newest is damaged any older one will do."""
    journal = _journal(life)
    for trial in (5, 11):
        (row,) = journal.query(
            f"SELECT n FROM journal WHERE kind = 'EndDelivered' AND trial = {trial}"
        )
        journal.save_snapshot(Snapshot(int(row[0]), f'{{"seen": {trial + 1}}}'))
    assert compact(journal)
    journal.raw.execute("UPDATE snapshots SET state = '{}' WHERE state LIKE '%12%'")
    with pytest.raises(DamagedStore, match="no tuner state"):
        journal.latest_snapshot()


def test_a_head_folds_at_its_start_what_a_tuner_without_a_state_has_seen(life: Life) -> None:
    journal = _journal(life)
    before = _calls(life)
    for _ in range(2):
        made = Compaction(journal, rows_between=1)
        fold_at_start(journal, made, read_whole_past(journal, made))
        assert _calls(life) == before
        life.say(*[e.Tick()] * 70)
    fold_at_start(journal, made, read_whole_past(journal, made))
    assert made.base_number() == journal.last
    while made.tidy():
        pass
    assert _calls(life) == before
    _same(life)


def test_the_space_goes_back_to_the_disk(life: Life) -> None:
    journal = _journal(life)
    life.say(*[e.Tick()] * 5_000)
    journal.query("PRAGMA wal_checkpoint(TRUNCATE)")
    before = journal.path.stat().st_size
    compact(journal)
    assert journal.path.stat().st_size < before / 2


def test_when_it_began_and_what_came_last_are_still_told(life: Life) -> None:
    life.say(*[e.Tick()] * 3)
    asked = "SELECT min(at), max(at), max(n) FROM journal"
    before = _journal(life).query(asked)
    compact(_journal(life))
    assert _rows(life) == 3, "the first, the last, and a wait"
    assert _journal(life).query(asked) == before


def test_a_late_word_about_a_folded_trial_changes_its_row_rightfully(life: Life) -> None:
    """Its attempt's start, told after its end was folded, and itself folded in turn."""
    journal = _journal(life)
    journal.query("UPDATE attempts SET pid = NULL, started_at = NULL WHERE trial = 5")
    made = _fold(life)
    while made.tidy():
        pass
    life.say(e.AttemptStarted(TrialId(5), 1, 77), *[e.Tick()] * 80)
    assert journal.query("SELECT pid FROM attempts WHERE trial = 5") == [(77,)]
    _same(life)
    made = _fold(life)
    while made.tidy():
        pass
    assert made.base_number() == journal.last
    _same(life)
