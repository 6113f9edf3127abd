"""A store is copied wherever it lies."""

from __future__ import annotations

from pathlib import Path

import pytest

from dispatcher.core import events as e
from dispatcher.store import SqliteJournal
from dispatcher.store.copying import committed_weights, copy_store
from tests.unit.store.life import Life


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
