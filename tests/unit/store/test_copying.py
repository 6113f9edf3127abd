"""A store is copied wherever it lies."""

from __future__ import annotations

import tarfile
from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.errors import StoreError
from dispatcher.store import SqliteJournal
from dispatcher.store.copying import committed_weights, copy_store, opened_to_read
from tests.unit.store.life import Life

UPGRADE = Path(__file__).parents[2] / "upgrade"


@pytest.mark.parametrize("name", ["plain", "c#", "what?mode=rwc", "100%25 done", "a&b=c"])
def test_below_a_folder_of_any_name(tmp_path: Path, name: str) -> None:
    folder = tmp_path / name
    folder.mkdir()
    journal = SqliteJournal.open(folder / "journal.sqlite")
    life = Life(journal)
    life.begin()
    life.whole(0)
    copy_store(folder / "journal.sqlite", tmp_path / "copy.sqlite")
    assert [(x.trial, x.path) for x in committed_weights(folder / "journal.sqlite")] == [(0, "t/0")]
    rows = list(journal.rows())
    journal.close()
    copied = SqliteJournal.open(tmp_path / "copy.sqlite")
    assert list(copied.rows()) == rows
    assert isinstance(rows[0].event, e.ExperimentCreated)
    copied.close()
    strangers = {path.name for path in tmp_path.iterdir()} - {name}
    assert all(each.startswith("copy.sqlite") for each in strangers)


def test_a_store_is_read_as_of_one_moment_while_its_head_writes(tmp_path: Path) -> None:
    journal = SqliteJournal.open(tmp_path / "journal.sqlite")
    life = Life(journal)
    life.begin()
    with opened_to_read(tmp_path / "journal.sqlite") as reader:
        life.whole(0)
        assert len(list(reader.rows())) == reader.last < journal.last
    journal.close()


def test_of_a_store_that_is_older_a_copy_is_read(tmp_path: Path) -> None:
    with tarfile.open(UPGRADE / "store-0.1.0.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (store,) = tmp_path.glob("*/journal.sqlite")
    before = store.read_bytes()
    with opened_to_read(store) as reader:
        assert len(list(reader.rows())) == reader.last
        copy = reader.path
    assert copy != store
    assert not copy.exists()
    assert store.read_bytes() == before


@pytest.mark.parametrize("content", [b"no store", b"SQLite format 3\0" + b"x" * 5000])
def test_what_is_no_store_is_refused(tmp_path: Path, content: bytes) -> None:
    store = tmp_path / "journal.sqlite"
    store.write_bytes(content)
    with pytest.raises(StoreError) as caught, opened_to_read(store):
        pass
    assert caught.value.where == str(store)
