"""A store of schema 0003, in which nobody could write notes, is read as it is and takes them.

``store-schema-0003.sqlite.gz`` was written by that version: eight trials that are over, and a pin.
"""

from __future__ import annotations

import gzip
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher import queries
from dispatcher.queries import ExperimentReader, TrialFilter
from dispatcher.store.notes import Annotations
from dispatcher.store.verify import verify
from tests.support.followers import Follower, everything

HERE = Path(__file__).parent


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(gzip.decompress((HERE / "store-schema-0003.sqlite.gz").read_bytes()))
    return path


def test_it_is_read_without_being_changed(store: Path) -> None:
    before = store.read_bytes()
    with ExperimentReader.open(store.parent) as reader:
        follower = Follower(reader)
        follower.read_all(most=3)
        assert follower.held == everything(reader)
        assert queries.annotations_of(reader, 3) == queries.GivenAnnotations((), False, ())
        none = TrialFilter(condition="tag=null and starred=false")
        assert len(queries.list_trials(reader, none)) == len(queries.list_trials(reader))
        assert not any(one.tags or one.notes for one in queries.flat_trials(reader))
        assert queries.experiment_summary(reader).notes == ()
    assert store.read_bytes() == before


def test_the_first_note_migrates_it_under_its_followers(store: Path) -> None:
    with ExperimentReader.open(store.parent) as reader:
        follower = Follower(reader)
        follower.read_all()
        with closing(Annotations.open(store)) as kept:
            kept.add_note(3, "good")
            kept.change_tags(3, ["good"], [])
        # This one opened the store of before, and reads on in it.
        assert follower.read_all() == {3}
        assert follower.held[3][0].tags == ()
        reader.look_at_schema()
        assert queries.trial(reader, 3).trial.tags == ("good",)
    assert store.with_name("journal.sqlite.schema-0003.backup").is_file()
    assert verify(store).ok
    with ExperimentReader.open(store.parent) as reader:
        assert queries.trial(reader, 3).trial.tags == ("good",)
        assert [one.text for one in queries.trial(reader, 3).notes] == ["good"]
