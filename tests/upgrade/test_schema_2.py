"""A store of schema 0002, in which nobody counted changes, is followed before and after.

``store-schema-0002.sqlite.gz`` was written by that version: twelve trials that are over and folded
into a base, one that ran in its second attempt when the base was made and is over since, a request
that waited for it, a pin and a removal.
"""

from __future__ import annotations

import gzip
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from dispatcher.attempt_files.ended_attempts import EndedAttempts
from dispatcher.core import events as e
from dispatcher.ports import Snapshot
from dispatcher.queries import ExperimentReader
from dispatcher.store import SqliteJournal, SqliteWeightsLedger
from dispatcher.store.compaction import Compaction
from dispatcher.store.replay.folding import compact
from dispatcher.store.replay.history import replay
from dispatcher.store.schema import SCHEMA_VERSION
from dispatcher.store.verify import rebuild, verify
from tests.support.followers import Follower, everything
from tests.unit.store.life import Life

HERE = Path(__file__).parent


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(gzip.decompress((HERE / "store-schema-0002.sqlite.gz").read_bytes()))
    return path


@pytest.fixture
def follower(store: Path) -> Iterator[Follower]:
    with ExperimentReader.open(store.parent) as reader:
        yield Follower(reader)


def test_it_is_read_without_being_changed(store: Path, follower: Follower) -> None:
    before = store.read_bytes()
    follower.read_all(most=2)
    assert follower.held == everything(follower.reader)
    assert not follower.exact
    assert follower.read_all() == set()
    assert follower.held[9][2] == (False, None, "the best")
    assert follower.held[1][2] == (True, 7.0, None)
    assert store.read_bytes() == before


def test_files_of_its_attempts_are_found_though_nobody_counts(
    store: Path, follower: Follower
) -> None:
    """Mutation: the count of changes is taken for granted."""
    ended = EndedAttempts(follower.reader, 0)
    found = ended.look()
    assert {each.trial for each in found} >= set(range(12))
    assert [each for each in found if each.trial >= ended.bound] == ended.look()


def test_it_is_migrated_and_what_was_folded_still_fits(store: Path) -> None:
    found = verify(store)
    assert found.ok, [str(one) for one in found.differences]
    assert found.trials == 16
    with closing(sqlite3.connect(store)) as raw:
        version = raw.execute("SELECT version_num FROM schema_version").fetchone()
        assert version == (SCHEMA_VERSION,)
        assert raw.execute("SELECT sum(touched), count(*) FROM metrics").fetchone() == (0, 39)
    assert store.with_name("journal.sqlite.schema-0002.backup").is_file()
    rebuild(store)
    assert verify(store).ok
    with closing(SqliteJournal.open(store)) as journal:
        journal.save_snapshot(Snapshot(journal.last, "{}"))
        assert compact(journal)
    assert verify(store).ok


def test_its_next_head_counts(store: Path) -> None:
    with (
        closing(SqliteJournal.open(store, epoch=4)) as journal,
        ExperimentReader.open(store.parent) as reader,
    ):
        follower = Follower(reader)
        follower.read_all(most=2)
        assert follower.exact
        state, _ = replay(journal, Compaction(journal).base())
        life = Life.of(journal, state)
        life.say(e.HeadStarted(4))
        life.begin()
        follower.read_all()
        life.propose(13, parent=12)
        assert 13 in follower.read_all()
        assert follower.began == 1
        assert follower.held == everything(reader)


def test_an_older_head_goes_on_beside_a_newer_command(store: Path) -> None:
    """Its statements name the columns that it knows. Its changes are not counted, and followers
    hear that; the next head counts."""
    with closing(sqlite3.connect(store, isolation_level=None)) as older:
        older.execute("UPDATE trials SET since = since WHERE id = 13")
        ledger = SqliteWeightsLedger.open(store)
        assert ledger.pin(5, "kept by a newer command", 9.0)
        ledger.close()
        with ExperimentReader.open(store.parent) as reader:
            follower = Follower(reader)
            follower.read_all(most=5)
            older.execute("UPDATE trials SET state = 'queued' WHERE id = 13")
            older.execute(
                "INSERT INTO metrics (trial, attempt, seq, final, at, value, number, counted) "
                "VALUES (13, 1, 1, 0, 1.0, '0.5', 0.5, 1)"
            )
            assert not follower.exact
            assert follower.held != everything(reader)
            begun = Follower(reader)
            begun.read_all(most=5)
            assert begun.held == everything(reader)
            SqliteJournal.open(store, epoch=4).close()
            follower.read_all()
            assert (follower.began, follower.exact) == (2, True)
            assert follower.held == everything(reader)
