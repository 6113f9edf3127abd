"""A store that 0.1.0 left behind, killed in the midst of its work, is taken up by what came after.

``store-0.1.0.tar.gz`` was recorded with that version: its head was killed while two trials ran,
its agent ended when the grace was over, and left their last words in its spool.
"""

from __future__ import annotations

import sqlite3
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from dispatcher import queries
from dispatcher.core import events as e
from dispatcher.core.ids import TrialId
from dispatcher.core.model import Phase, TrialState
from dispatcher.head.head import Head
from dispatcher.notices import Notice
from dispatcher.store import SqliteJournal
from dispatcher.store.copying import opened_to_read
from dispatcher.store.replay.folding import compact
from dispatcher.store.replay.stepping import step_through
from dispatcher.store.schema import SCHEMA_VERSION
from dispatcher.store.verify import verify
from tests.support.checker import check_store
from tests.support.followers import Follower, Holding, everything
from tests.support.processes import end_processes_of

HERE = Path(__file__).parent


@pytest.fixture
def folder(tmp_path: Path) -> Iterator[Path]:
    """The recorded experiment, at another place than it was made."""
    with tarfile.open(HERE / "store-0.1.0.tar.gz") as archive:
        archive.extractall(tmp_path, filter="data")
    (found,) = tmp_path.glob("generations-*")
    config = found / "experiment.json"
    text = config.read_text().replace("@CODE@", str(HERE / "code"))
    config.write_text(text.replace("@BASE@", str(tmp_path)))
    try:
        yield found
    finally:
        end_processes_of(found)


def follow(reader: queries.ExperimentReader, *, exact: bool) -> Holding:
    """All there is, by its changes: which an older store or head does not count."""
    follower = Follower(reader)
    follower.read_all(most=7)
    assert follower.exact is exact
    return follower.held


def test_it_is_looked_at_without_being_changed(folder: Path) -> None:
    before = (folder / "journal.sqlite").read_bytes()
    with queries.ExperimentReader.open(folder) as reader:
        summary = queries.experiment_summary(reader)
        assert follow(reader, exact=False) == everything(reader)
    assert summary.ended >= 5
    with opened_to_read(folder / "journal.sqlite") as journal:
        stepped = step_through(journal, trial=TrialId(1))
    assert stepped.refused == ""
    assert [move.after for row in stepped.rows for move in row.moves][-1] is TrialState.ENDED
    assert (folder / "journal.sqlite").read_bytes() == before


def test_it_is_migrated_after_a_backup_and_says_what_it_said(folder: Path) -> None:
    assert verify(folder / "journal.sqlite").ok
    backup = folder / "journal.sqlite.schema-0001.backup"
    for path, version in ((backup, "0001"), (folder / "journal.sqlite", SCHEMA_VERSION)):
        with sqlite3.connect(path) as store:
            assert store.execute("SELECT version_num FROM schema_version").fetchone() == (version,)
        store.close()
    assert compact(SqliteJournal.open(folder / "journal.sqlite"))
    assert verify(folder / "journal.sqlite").ok


def test_it_is_resumed_to_its_end(folder: Path) -> None:
    store = folder / "journal.sqlite"
    journal = SqliteJournal.open(store)
    rows = journal.last
    ended = {x.event.trial for x in journal.rows() if isinstance(x.event, e.EndDelivered)}
    journal.close()
    notices: list[Notice] = []
    assert Head(folder, on_notice=notices.append).run() is Phase.COMPLETED, notices
    assert check_store(store, over=True) == []
    assert verify(store).ok
    journal = SqliteJournal.open(store)
    later = [x.event for x in journal.rows(rows)]
    journal.close()
    assert not [x for x in later if isinstance(x, e.EndDelivered) and x.trial in ended]
    # Its agent's spool was read: what had ended before was not run again.
    attempts = [(x.trial, x.attempt) for x in later if isinstance(x, e.AttemptEnded)]
    assert {number for _, number in attempts} == {1}
    with queries.ExperimentReader.open(folder) as reader:
        values = [trial.value for trial in queries.list_trials(reader)]
        assert follow(reader, exact=True) == everything(reader)
    assert sorted(values) == [n // 2 + 1.0 for n in range(12)], "each inherited from its parent"
