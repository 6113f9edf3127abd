"""A result that lacks an objective: what the store says of its trial, and says again."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.queries import ExperimentReader, best, trial
from dispatcher.store import SqliteJournal
from dispatcher.store.verify import verify
from tests.unit.queries.evolution import make_folder
from tests.unit.store.life import Life


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = make_folder(tmp_path)
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal, objectives=("default", "size"))
    life.begin()
    for number, value in enumerate(('{"default": 1, "size": 2}', "5.0")):
        life.propose(number)
        life.run(number, value)
        life.deliver(number)
    journal.close()
    return folder


def test_the_row_says_what_it_lacks_and_has_no_result(folder: Path) -> None:
    """Mutation: the note of the attempt's end, which comes in the same batch, is written last."""
    with ExperimentReader.open(folder) as reader:
        one = trial(reader, 1).trial
        assert (one.outcome, one.success, one.value) == ("failed", False, None)
        assert one.error == "its result has no number 'size', which is an objective"
        assert one.end_reason == "finished"
        assert [each.id for each in best(reader, 5)] == [0]


def test_a_replay_finds_the_same(folder: Path) -> None:
    found = verify(folder / "journal.sqlite")
    assert not found.differences
    assert not found.damage
