"""One look at the store finds what has ended, on whatever worker, and takes as long as the news."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher.attempt_files.ended_attempts import EndedAttempts
from dispatcher.queries import ExperimentReader
from tests.unit.queries.evolution import evolve, make_folder

TRIALS = 13


@pytest.fixture
def store(tmp_path: Path) -> Path:
    folder = make_folder(tmp_path / "kept")
    evolve(folder, TRIALS)
    return folder / "journal.sqlite"


@pytest.fixture
def reader(store: Path) -> Iterator[ExperimentReader]:
    with ExperimentReader.open(store.parent) as made:
        yield made


def change(store: Path, attempt: str, trial: str, number: int) -> None:
    """Change a trial as the journal does: each transaction counts on."""
    with sqlite3.connect(store) as raw:
        raw.execute(f"UPDATE attempts SET {attempt} WHERE trial = ?", (number,))
        raw.execute(
            f"UPDATE trials SET {trial}, touched = (SELECT max(touched) + 1 FROM trials) "
            "WHERE id = ?",
            (number,),
        )


def test_each_end_is_found_once(store: Path, reader: ExperimentReader) -> None:
    """Mutations: a look begins at the beginning; one that goes on counts."""
    change(store, "end_reason = NULL", "state = 'running'", 4)
    ended = EndedAttempts(reader, 0)
    found = {each.trial for each in ended.look()}
    assert found == set(range(TRIALS)) - {4}
    assert ended.bound == 4
    assert ended.look() == []
    change(store, "worker = 'far'", "state = 'ended'", 4)
    (only,) = ended.look()
    assert (only.worker, only.name) == ("far", "4.1")
    assert ended.bound >= TRIALS
    assert ended.look() == []


def test_what_is_of_no_interest_is_not_read(reader: ExperimentReader) -> None:
    assert {each.trial for each in EndedAttempts(reader, 9).look()} == set(range(9, TRIALS))


def test_a_look_at_news_walks_by_the_count_of_changes(reader: ExperimentReader) -> None:
    """Mutation: all trials that there are are walked each time."""
    from dispatcher.attempt_files import ended_attempts

    query = ended_attempts.ENDED.format(touched="t.touched")
    plan = [row[3] for row in reader.rows(f"EXPLAIN QUERY PLAN {query}", (7, 0))]
    assert "trials_by_touch (touched>?)" in plan[0]
    assert "trial=?" in plan[1]
