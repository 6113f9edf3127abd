"""Who leads after a take-over, and who is refused."""

from __future__ import annotations

import json
import threading
from pathlib import Path

import pytest

from dispatcher.errors import ExperimentBusy
from dispatcher.folders.names import CHANGE_LOCK_NAME, LEADER_NAME
from dispatcher.store import SqliteJournal
from dispatcher.store.leadership import Leadership, claimed_epoch, read_leader
from dispatcher.store.lock_file import LockFile


def never() -> bool:
    """A head that does not answer."""
    return False


def test_a_head_that_steps_down_is_followed(tmp_path: Path) -> None:
    first = Leadership.acquire(tmp_path)

    def steps_down() -> bool:
        first.release()
        return True

    with Leadership.take_over(tmp_path, step_down=steps_down) as second:
        assert second.epoch == 2
        assert second.holds
        assert not second.end_predecessor()  # nothing was fenced


def test_a_head_that_does_not_answer_has_lost_the_lead(tmp_path: Path) -> None:
    first = Leadership.acquire(tmp_path)
    assert first.holds
    second = Leadership.take_over(tmp_path, step_down=never)
    assert (first.holds, second.holds) == (False, True)
    assert second.epoch == first.epoch + 1
    with pytest.raises(ExperimentBusy):
        Leadership.acquire(tmp_path)
    first.release()  # its end changes nothing
    with pytest.raises(ExperimentBusy):
        Leadership.acquire(tmp_path)
    second.release()


def test_without_a_head_a_take_over_is_a_resume(tmp_path: Path) -> None:
    def asked() -> bool:
        raise AssertionError("there is nobody to ask")

    with Leadership.take_over(tmp_path, step_down=asked) as lead:
        assert lead.epoch == 1


def test_of_two_that_mean_the_same_head_one_takes_over(tmp_path: Path) -> None:
    """Both have seen it lead and not answer. Mutation: leaders are not compared."""
    first = Leadership.acquire(tmp_path)
    both = threading.Barrier(2, timeout=120)
    won: list[Leadership] = []
    lost: list[ExperimentBusy] = []

    def meet() -> bool:
        both.wait()
        return False

    def take_over() -> None:
        try:
            won.append(Leadership.take_over(tmp_path, step_down=meet))
        except ExperimentBusy as error:
            lost.append(error)

    threads = [threading.Thread(target=take_over) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (len(won), len(lost)) == (1, 1)
    assert read_leader(tmp_path) == won[0].leader
    assert not first.holds
    won[0].release()
    first.release()


def test_a_head_of_an_older_bequeath_cannot_be_fenced(tmp_path: Path) -> None:
    """Its journal asks for no epoch: it would go on writing."""
    first = Leadership.acquire(tmp_path)
    record = json.loads((tmp_path / LEADER_NAME).read_text())
    del record["fenced"], record["started"]
    (tmp_path / LEADER_NAME).write_text(json.dumps(record))
    with pytest.raises(ExperimentBusy, match="older bequeath"):
        Leadership.take_over(tmp_path, step_down=never)
    assert first.holds
    first.release()


def test_while_the_lead_changes_hands_others_wait_their_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dispatcher.store.leadership.CHANGE_PATIENCE_S", 0.05)
    change = LockFile.take(tmp_path / CHANGE_LOCK_NAME, 0.0)
    assert change is not None
    with pytest.raises(ExperimentBusy, match="just taking the lead"):
        Leadership.acquire(tmp_path)
    change.release()
    Leadership.acquire(tmp_path).release()


def test_the_journal_remembers_the_epoch(tmp_path: Path) -> None:
    path = tmp_path / "journal.sqlite"
    assert claimed_epoch(path) == 0
    SqliteJournal.open(path).close()
    assert claimed_epoch(path) == 0
    SqliteJournal.open(path, epoch=4).close()
    assert claimed_epoch(path) == 4
    path.write_bytes(b"no database")
    assert claimed_epoch(path) == 0
