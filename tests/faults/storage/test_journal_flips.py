"""One bit of the journal flips on the disk: it is found, or it was in nobody's value."""

from __future__ import annotations

import os
import sqlite3
from pathlib import Path
from typing import Any

import pytest

from dispatcher.errors import DispatcherError
from dispatcher.ports import Snapshot
from dispatcher.store.journal import SqliteJournal
from dispatcher.store.replay.history import replay
from dispatcher.store.schema import journalled_columns, trials
from dispatcher.store.verify import verify
from tests.faults.experiments import Experiment
from tests.faults.storage.flips import flips
from tests.support.processes import end_processes_of

FLIPS = int(os.environ.get("BEQUEATH_TEST_FLIPS", "400"))  # of each kind


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """The journal of a real experiment, as it lies on the disk when its head has ended."""
    base = tmp_path_factory.mktemp("flips")
    experiment = Experiment(base, trials=12)
    experiment.create()
    try:
        assert experiment.lead() == 0, experiment.stderr
    finally:
        end_processes_of(experiment.folder)
    path = experiment.folder / "journal.sqlite"
    journal = SqliteJournal.open(path)
    journal.save_snapshot(Snapshot(journal.last, '{"calls": [[1, 2.5], [3, 4.5]]}'))
    journal.close()
    assert verify(path).ok
    assert not path.with_name("journal.sqlite-wal").exists(), "all of it is in one file"
    return path.read_bytes()


def _content(path: Path) -> dict[str, list[Any]]:
    """What is believed of it, read without the store's own code."""
    raw = sqlite3.connect(path)
    try:
        # The journal's trial and attempt repeat what the payload says, for an index; when a
        # metric came is nobody's value. ``meta`` and pins have no
        # checksum (docs/reliability.md).
        columns = {
            "journal": "n, at, kind, payload",
            "metrics": "value, number",
            # The one column that verify cannot compare: see there.
            "trials": ", ".join(n for n in journalled_columns(trials) if n != "asked_at"),
            "attempts": "*",
            "snapshots": "*",
        }
        return {
            name: raw.execute(f"SELECT {wanted} FROM {name}").fetchall()
            for name, wanted in columns.items()
        }
    finally:
        raw.close()


def _is_found(path: Path) -> bool:
    try:
        return not verify(path).ok
    except DispatcherError as error:
        caught = error
    assert caught.where == str(path), "it is named which file"
    return True


def test_a_flipped_bit_is_found_by_verify_or_changes_nothing(tmp_path: Path, store: bytes) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(store)
    good = _content(path)
    found = 0
    missed: list[str] = []
    for at, bad in flips(store, FLIPS, seed=1):
        path.write_bytes(bad)
        if _is_found(path):
            found += 1
            continue
        now = _content(path)
        for table, rows in good.items():
            other = now.get(table)
            if other != rows:
                pairs = zip(rows, other or (), strict=False)
                missed.append(f"byte {at}, {table}: {[p for p in pairs if p[0] != p[1]][:1]}")
    assert not missed, "\n".join(missed)
    assert found > FLIPS // 10, "most of a store is in use"


def test_no_head_begins_with_what_a_flipped_bit_made_of_its_past(
    tmp_path: Path, store: bytes
) -> None:
    path = tmp_path / "journal.sqlite"
    path.write_bytes(store)
    journal = SqliteJournal.open(path)
    good, rows, snapshot = replay(journal), list(journal.rows()), journal.latest_snapshot()
    journal.close()
    errors: list[DispatcherError] = []
    for at, bad in flips(store, FLIPS, seed=2):
        path.write_bytes(bad)
        try:
            journal = SqliteJournal.open(path)
        except DispatcherError as error:
            errors.append(error)
            continue
        try:
            assert list(journal.rows()) == rows, f"byte {at}"
            assert replay(journal) == good, f"byte {at}"
            assert journal.latest_snapshot() == snapshot, f"byte {at}"
        except DispatcherError as error:
            errors.append(error)
        finally:
            journal.close()
    assert len(errors) > FLIPS // 20
    assert {error.where for error in errors} == {str(path)}, "it is named which file"
